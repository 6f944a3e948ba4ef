"""Work on shards by Ray: on the cores of this machine, or on those of a cluster.

A handle is Ray's reference to an object that lies where it was made. Ray chooses the node of a task by where its
arguments are, writes objects to disk where memory is full, and makes lost ones again from the tasks that they came
from. There is no scheduler here.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, Self

import numpy as np

from craftrl.arguments import check_kind, check_whole
from craftrl.distributed.executor import Handle, added, check_handles, check_submitted
from craftrl.distributed.ray_connection import connected
from craftrl.distributed.ray_faults import told_plainly
from craftrl.distributed.ray_nodes import check_nodes
from craftrl.errors import InvalidParameterError, require
from craftrl.progress import tell

__all__ = ["RayExecutor"]

LARGE = 64 * 2**10  # bytes of an argument that travels once, however many tasks it is for
KEPT = 16  # arguments, the latest ones of either size, of which that is known
TRANSIENT = [ConnectionError, TimeoutError]  # what a network does now and then; errors of ours are never tried again


class RayExecutor:
    """Pure functions as tasks of one core each; values stay in Ray's object store.

    address      None: a Ray of its own, on this machine, which ends with the executor. HOST:PORT or "auto": the cluster
                 there, which stays. ray://HOST:PORT: the same through Ray's client, from a machine outside. Where this
                 process is connected to Ray already, None and "auto" mean that connection.
    workers      how many cores a Ray of its own has; None: all
    store_bytes  how much of its values a Ray of its own keeps in memory; what is more goes to disk. None: 30% of what
                 is free at the start
    fan_in       how many values are added in one task: a sum of n takes about log(n) / log(fan_in) rounds
    retries      how often a task is tried again after its worker or node died, or what it had made was lost

    Arguments must not be changed once they are given. A handle must be an argument of its own, not part of one.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        workers: int | None = None,
        store_bytes: int | None = None,
        fan_in: int = 8,
        retries: int = 10,
    ) -> None:
        check_whole("fan_in", fan_in, 2)
        check_whole("retries", retries)
        self._ray = ray = require("ray", "ray")
        self._fan_in = fan_in
        self._large: OrderedDict[int, tuple[Any, Handle]] = OrderedDict()
        self._small: OrderedDict[int, tuple[Any, Any]] = OrderedDict()
        self._named: dict[str, Any] = {}
        options = {"num_cpus": 1, "max_retries": retries, "retry_exceptions": TRANSIENT}
        self._apply = ray.remote(**options)(_apply)
        self._add = ray.remote(**options)(_add)  # a queue of its own: sums need not wait for all that is counted
        with ExitStack() as stack:
            stack.enter_context(connected(ray, address, workers, store_bytes))
            self.workers = check_nodes(ray)
            self._connection = stack.pop_all()
        self._is_open = True

    def submit(self, function: Callable[..., Any], *args: Any) -> Handle:
        self._check_open()
        check_submitted(function)
        return self._task(function).remote(self._once(function), *map(self._once, args))

    def get(self, handles: Sequence[Handle]) -> list[Any]:
        self._check_open()
        self._check_handles(handles)
        self._wait(handles)
        with told_plainly(self._ray):
            return [_owned(value) for value in self._ray.get(list(handles))]

    def total(self, handles: Sequence[Handle]) -> Any:
        self._check_open()
        self._check_handles(handles, 1)
        level = list(handles)
        while len(level) > 1:
            groups = [level[i : i + self._fan_in] for i in range(0, len(level), self._fan_in)]
            level = [group[0] if len(group) == 1 else self._add.remote(*group) for group in groups]
        self._wait(handles)
        return self.get(level)[0]

    def close(self) -> None:
        """End what was started here: a Ray of its own, or the connection to a cluster."""
        self._is_open = False
        self._large.clear()
        self._small.clear()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _wait(self, handles: Sequence[Handle]) -> None:
        """Whoever watches hears every second how much is done; values stay where they are."""
        waiting = list(dict.fromkeys(handles))  # Ray refuses to wait for one thing twice
        n = len(waiting)
        while waiting:
            _, waiting = self._ray.wait(waiting, num_returns=len(waiting), timeout=1.0, fetch_local=False)
            if waiting:
                tell(f"{n - len(waiting)} of {n} parts")

    def _task(self, function: Callable[..., Any]) -> Any:
        """A task that bears the name of its function, where Ray shows what it does."""
        name = getattr(function, "__name__", type(function).__name__)
        if name not in self._named:
            self._named[name] = self._apply.options(name=name)
        return self._named[name]

    def _once(self, value: Any) -> Any:
        """A large value is put into the object store when it is first an argument; from then on its handle stands for
        it. The latest values are kept, with what stands for them, so that no others can have their ids."""
        if isinstance(value, (self._ray.ObjectRef, int, str, type(None))):
            return value
        for known in (self._large, self._small):
            if id(value) in known:
                known.move_to_end(id(value))
                return known[id(value)][1]
        is_large = _size(value) >= LARGE
        known = self._large if is_large else self._small
        known[id(value)] = value, self._ray.put(value) if is_large else value
        if len(known) > KEPT:
            known.popitem(last=False)
        return known[id(value)][1]

    def _check_handles(self, handles: Sequence[Handle], least: int = 0) -> None:
        check_handles(handles, least)
        for handle in handles:
            check_kind("Each of handles", handle, self._ray.ObjectRef, "what submit gives")

    def _check_open(self) -> None:
        if not self._is_open:
            raise InvalidParameterError("The executor must be open; it was closed; make another RayExecutor.")


def _apply(function: Callable[..., Any], *args: Any) -> Any:
    """A task has one core, so compiled loops have one thread in it."""
    os.environ["CRAFTRL_NUM_THREADS"] = "1"
    return function(*args)


def _add(*values: Any) -> Any:
    return added(*values)


def _owned(value: Any) -> Any:
    """Arrays in the object store are read-only, and stay there as long as they are used; copies are one's own."""
    if isinstance(value, np.ndarray):
        return value if value.flags.writeable else value.copy()
    return tuple(map(_owned, value)) if type(value) is tuple else value


def _size(value: Any) -> int:
    """How many bytes travel with an argument; its arrays are not copied to find out."""
    from ray import cloudpickle

    buffers: list[Any] = []
    text = cloudpickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return len(text) + sum(buffer.raw().nbytes for buffer in buffers)
