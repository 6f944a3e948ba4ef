"""Ray, started here or joined at an address: quietly, within seconds or not at all, and left again."""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from craftrl.distributed.versions import check_versions, versions_elsewhere
from craftrl.errors import InvalidParameterError, require

__all__ = ["check_somebody_there", "joined_ray"]

PATIENCE = 3.0  # seconds that a machine may take to answer at all
STORE_BYTES = 128 * 2**20  # of a Ray that is started here for small values


@contextmanager
def joined_ray(address: str | None = None, workers: int | None = None) -> Iterator[Any]:
    """The package ray, connected to the cluster at `address`, or to one of `workers` cores that is started here.

    A Ray that this process is connected to already is used, and stays.
    """
    ray = require("ray", "ray")
    with redirect_stdout(sys.stderr):  # Ray prints its complaints where a command prints its results
        ours = not ray.is_initialized()
        if ours:
            _connect(ray, address, workers)
        try:
            _check_nodes(ray)
            yield ray
        finally:
            if ours:
                ray.shutdown()


def check_somebody_there(what: str, address: str) -> None:
    """Raise where nothing listens at an address such as host:port; Ray itself would wait for two minutes."""
    found = re.fullmatch(r"(?:\w+://)?\[?(?P<host>[^\[\]/]+?)\]?:(?P<port>\d{1,5})", address)
    if found is None:
        raise InvalidParameterError(f"The address of {what} must be host:port; {address!r} was given.")
    try:
        socket.create_connection((found["host"], int(found["port"])), timeout=PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise _nobody(what, address, error) from error


def _connect(ray: Any, address: str | None, workers: int | None) -> None:
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        small = {"include_dashboard": False, "object_store_memory": STORE_BYTES}
        ray.init(address="local", num_cpus=workers, **small, **quiet)
        return
    if address != "auto":
        check_somebody_there("a Ray cluster", address)
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise _nobody("a Ray cluster", address, error) from error


def _check_nodes(ray: Any) -> None:
    """The versions of one worker on every machine."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    probe = ray.remote(num_cpus=0)(versions_elsewhere())
    nodes = [node for node in ray.nodes() if node["Alive"]]
    asked = {
        node["NodeManagerAddress"]: probe.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        ).remote()
        for node in nodes
    }
    check_versions(dict(zip(asked, ray.get(list(asked.values())))))


def _nobody(what: str, address: str, error: BaseException) -> InvalidParameterError:
    reason = " ".join(str(error).split())[:160]
    return InvalidParameterError(
        f"There must be {what} at the address; there is none at {address} ({reason}); start one, or correct the "
        "address."
    )
