"""Dask, started here or joined at an address."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from craftrl.distributed.versions import check_versions, versions_elsewhere
from craftrl.errors import ClusterError, InvalidParameterError, require

__all__ = ["joined_dask"]

PATIENCE = 5  # seconds that a scheduler may take to answer


@contextmanager
def joined_dask(address: str | None, count: int) -> Iterator[Any]:
    """A client of the cluster at `address`, or of one of `count` processes that is started here."""
    distributed = require("distributed", "dask")
    if address is not None:
        with _client(distributed, address) as client:
            _check_workers(client, address)
            yield client
        return
    local = {"dashboard_address": "127.0.0.1:0", "host": "127.0.0.1", "silence_logs": logging.CRITICAL}
    with (
        distributed.LocalCluster(n_workers=count, threads_per_worker=1, **local) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        client.wait_for_workers(count)
        yield client


def _client(distributed: Any, address: str) -> Any:
    try:
        return distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"A Dask cluster must answer at {address}; none does ({error}); start one with dask scheduler, or leave "
            "out the address."
        ) from error


def _check_workers(client: Any, address: str) -> None:
    """At least one worker, each of one thread, and the versions that we have."""
    threads = client.nthreads()
    if not threads:
        raise InvalidParameterError(
            f"The Dask cluster must have workers; {address} has none; start some with: dask worker {address} "
            "--nthreads 1"
        )
    several = [worker for worker, n in threads.items() if n > 1]
    if several:
        raise InvalidParameterError(
            f"Dask workers must have one thread each, since runs change what a process shares; {several[0]} has "
            f"{threads[several[0]]}; start them with --nthreads 1 and --nworkers for more of them."
        )
    answers = client.run(versions_elsewhere(), on_error="return")
    silent = [worker for worker, found in answers.items() if not isinstance(found, dict)]
    if silent:
        raise ClusterError(
            f"Every worker must be able to say its versions; {silent[0]} is not ({answers[silent[0]]!r}); install the "
            "same Python, NumPy and craftrl everywhere."
        )
    check_versions(list(answers), list(answers.values()))
