"""Who carries out the runs of a sweep: this process, processes beside it, or a cluster of Ray or Dask.

joblib hands out the runs. What a run gives comes back to this process as soon as it ended, since workers on other
machines do not see this one's disk.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass
from functools import partial
from typing import Any

from craftrl.arguments import check_whole
from craftrl.errors import ClusterError, CraftError, InvalidParameterError, require

__all__ = ["BACKENDS", "Carry", "Workers"]

BACKENDS = ("loky", "ray", "dask")
RETRIES = 3  # how often a run is begun again when its worker dies
THREADS = ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB", "NUMBA", "NUMEXPR", "CRAFTRL")

Carry = Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[Any]]


@dataclass(frozen=True)
class Workers:
    """How many workers there are, and where.

    count    None: one, or in a cluster at an address all that it has
    backend  loky: processes of this machine; ray, dask: a cluster
    address  of a cluster that runs already; without it one is started here, with `count` workers
    """

    count: int | None = None
    backend: str = "loky"
    address: str | None = None

    def check(self) -> None:
        """Raise for what can be known to be wrong before any work: arguments, a missing package."""
        if self.count is not None:
            check_whole("workers", self.count, 1)
        if self.backend not in BACKENDS:
            raise InvalidParameterError(f"backend must be one of {', '.join(BACKENDS)}; {self.backend!r} was given.")
        if self.backend == "loky":
            if self.address is not None:
                raise InvalidParameterError(
                    f"An address goes with a cluster; {self.address!r} was given; add --backend ray or --backend dask."
                )
            return
        require("distributed" if self.backend == "dask" else "ray", self.backend)

    def carry(self) -> AbstractContextManager[Carry]:
        """Within the block, a function: carry(function, items) gives function(item) of each as soon as it is done."""
        if self.backend == "ray":
            return _on_ray(self.address, self.count)
        if self.backend == "dask":
            return _on_dask(self.address, self.count)
        return nullcontext(_here if self.count in (None, 1) else _processes(int(self.count or 1)))


# -- this machine ------------------------------------------------------------------------------------------------


def _here(function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    return map(function, items)


def _processes(count: int) -> Carry:
    # Idle workers soon leave, so that a killed sweep does not leave them behind for long.
    return _through_joblib(count, backend="loky", n_jobs=count, inner_max_num_threads=1, idle_worker_timeout=20)


def _through_joblib(count: int, **config: Any) -> Carry:
    def carry(function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        from joblib import Parallel, delayed, parallel_config

        with parallel_config(**config):
            # One run each at a time: a worker that is done takes the next, and none waits behind a long one.
            parallel = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch=count)
            yield from parallel(delayed(function)(item) for item in items)

    return carry


# -- clusters ----------------------------------------------------------------------------------------------------
#
# Threads of joblib, each of which waits for a task of the cluster. Ray's and Dask's own backends for joblib would do
# with less code, and worse: Ray's gives no result before all are done, queues runs behind busy workers and loses the
# sweep with one of them; Dask's waits for ever for a run that kills its workers. Tasks have none of this: the cluster
# places them, and begins them again where a worker died.


@contextmanager
def _on_ray(address: str | None, count: int | None) -> Iterator[Carry]:
    ray = require("ray", "ray")
    from craftrl.distributed.ray_executor import RayExecutor

    started = (count or 1) if address is None and not ray.is_initialized() else None
    # Ray prints what became of its workers where a command prints its results.
    with redirect_stdout(sys.stderr), RayExecutor(address, workers=started, retries=RETRIES) as executor:
        count = _at_most("Ray", count, executor.workers)

        def ask(function: Callable[[Any], Any], item: Any) -> Any:
            return executor.get([executor.submit(_elsewhere, ray.cloudpickle.dumps((function, item)))])[0]

        yield _asking(count, ask)


@contextmanager
def _on_dask(address: str | None, count: int | None) -> Iterator[Carry]:
    distributed = require("distributed", "dask")
    from cloudpickle import dumps  # which comes with Dask

    from craftrl.reproduce.dask_cluster import joined_dask

    with joined_dask(address, count or 1) as client:
        count = _at_most("Dask", count, len(client.nthreads()))

        def ask(function: Callable[[Any], Any], item: Any) -> Any:
            future = client.submit(_elsewhere, dumps((function, item)), pure=False)
            try:
                return future.result()
            except distributed.scheduler.KilledWorker as error:
                raise ClusterError(
                    "Every run must come to its end; workers died over one of them, time and again; see Dask's logs; "
                    "finished rows are kept, and the same command continues."
                ) from error

        yield _asking(count, ask)


def _asking(count: int, ask: Callable[[Callable[[Any], Any], Any], Any]) -> Carry:
    def carry(function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        return _through_joblib(count, backend="threading", n_jobs=count)(partial(ask, function), items)

    return carry


def _at_most(what: str, count: int | None, there: int) -> int:
    if there < (count or 1):
        raise InvalidParameterError(
            f"The {what} cluster must have as many cores as workers are asked for; it has {there}, and {count or 1} "
            "were asked for; ask for fewer with --workers, or add some."
        )
    return count or there


# -- in the workers ----------------------------------------------------------------------------------------------


def _elsewhere(packed: bytes) -> Any:
    """One run in a worker of a cluster, which unpacks it itself and so can say what it has not."""
    import pickle

    try:
        function, item = pickle.loads(packed)
    except (ImportError, AttributeError) as error:
        raise CraftError(
            f"Every worker must have the code of the study; one has not ({error}); install it there, or put a clone "
            "at the same place on every machine."
        ) from error
    with _one_thread():
        return function(item)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Whatever starts threads of its own keeps to one, in packages loaded already and in those still to come."""
    from threadpoolctl import threadpool_limits

    names = [f"{name}_NUM_THREADS" for name in THREADS]
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        with threadpool_limits(1):
            yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
