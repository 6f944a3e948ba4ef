"""A Ray of our own, started quietly on this machine, or a connection to a cluster that is there."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from craftrl.arguments import check_whole
from craftrl.distributed.ray_address import (
    AUTH,
    check_answers,
    nobody,
    on_one_line,
    parsed,
    read_environment_again,
)
from craftrl.distributed.ray_folders import own_folder
from craftrl.errors import ClusterError, InvalidParameterError

__all__ = ["connected"]

LEAST_STORE = 80 * 2**20  # bytes; Ray starts with no less
MOST_WORKERS = 1024  # on one machine: each is a process, and Ray starts all of them at once
OOM_RETRIES = 5  # of a task that needed more memory than there was; Ray would try for ever
QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}

_asked_for_tokens = False  # by a Ray of this process, now or before


@contextmanager
def connected(
    ray: ModuleType, address: str | None, workers: int | None, store_bytes: int | None, gpus: int | None = 0
) -> Iterator[None]:
    """A connection within the block; what was there before stays as it was.

    gpus  how many a Ray of its own has; None for all of this machine
    """
    host = parsed(address)
    _check_local(workers, store_bytes, address)
    if ray.is_initialized():
        _check_same(ray, address, workers, store_bytes)
        yield
        return
    with _as_it_was() as on_sigterm, _in_silence():
        if address is None:
            with _own(ray, workers, store_bytes, gpus), _ending_in_order(on_sigterm):
                yield
            return
        check_answers(address, *host, asked_for_tokens=_asked_for_tokens)
        _join(ray, address)
        try:
            with _ending_in_order(on_sigterm):
                yield
        finally:
            ray.shutdown()


def _check_local(workers: int | None, store_bytes: int | None, address: str | None) -> None:
    for name, value, least, most in (
        ("workers", workers, 1, MOST_WORKERS),
        ("store_bytes", store_bytes, LEAST_STORE, None),
    ):
        if value is not None:
            check_whole(name, value, least, most)
            if address is not None:
                raise InvalidParameterError(
                    f"{name} is for a Ray on this machine; the one at {address} has what it has, and all of it is "
                    "used; leave it out."
                )


def _check_same(ray: ModuleType, address: str | None, workers: int | None, store_bytes: int | None) -> None:
    """Of a connection that the caller made, nothing can be chosen any more."""
    there = ray.get_runtime_context().gcs_address
    if address not in (None, "auto", there) or workers is not None or store_bytes is not None:
        raise InvalidParameterError(
            f"This process is connected to the Ray at {there} already, which is used as it is; leave out address and "
            "workers, or call ray.shutdown() first."
        )


@contextmanager
def _as_it_was() -> Iterator[Any]:
    """Ray changes variables of the environment, a level of logging and what SIGTERM does; afterwards they are back.

    Gives what SIGTERM did before.
    """
    names = {name for name in os.environ if name.startswith("RAY_")} | {"PYTHONPATH"}
    before = {name: os.environ.get(name) for name in names}
    level = logging.getLogger("ray").level
    in_main = threading.current_thread() is threading.main_thread()
    on_sigterm = signal.getsignal(signal.SIGTERM)
    try:
        yield on_sigterm
    except SystemExit as leaving:  # what Ray does at SIGTERM while it starts; whoever answered before answers now
        if leaving.code == signal.SIGTERM and callable(on_sigterm):
            on_sigterm(signal.SIGTERM, None)
        raise
    finally:
        for name in {name for name in os.environ if name.startswith("RAY_")} | names:
            value = before.get(name)
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})
        read_environment_again()
        logging.getLogger("ray").setLevel(level)
        if in_main and on_sigterm is not None:
            signal.signal(signal.SIGTERM, on_sigterm)


@contextmanager
def _in_silence() -> Iterator[None]:
    """Ray prints on standard output that a worker died, even if told to log nothing; the work is done again."""
    worker = import_module("ray._private.worker")
    before = getattr(worker, "_worker_logs_enabled", True)
    worker._worker_logs_enabled = False  # type: ignore[attr-defined]
    try:
        yield
    finally:
        worker._worker_logs_enabled = before  # type: ignore[attr-defined]


@contextmanager
def _ending_in_order(on_sigterm: Any) -> Iterator[None]:
    """SIGTERM alone would end the process with Ray's files still there; a program that answers it goes on doing so.

    `on_sigterm` is what answered before Ray took it over, and answers again in the end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGTERM, on_sigterm if callable(on_sigterm) else _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if on_sigterm is None else on_sigterm)


def _leave(signum: int, frame: object) -> None:
    raise SystemExit(128 + signum)


@contextmanager
def _own(ray: ModuleType, workers: int | None, store_bytes: int | None, gpus: int | None) -> Iterator[None]:
    """A Ray whose files, values on disk among them, lie in a folder that goes with it.

    Its workers find what this process finds. Unless RAY_AUTH_MODE says otherwise, it takes work only from whoever has
    the user's token, as is Ray's default: other users of the machine have it not.
    """
    from joblib import cpu_count  # knows about affinities and containers

    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    cores = workers or cpu_count()
    with own_folder() as folder:
        try:
            _start(ray, cores, gpus, store_bytes, folder)
            global _asked_for_tokens
            _asked_for_tokens |= os.environ.get(AUTH) == "token"
            yield
        finally:
            ray.shutdown()


def _start(ray: ModuleType, cores: int, gpus: int | None, store_bytes: int | None, folder: str) -> None:
    try:
        ray.init(
            "local",
            num_cpus=cores,
            num_gpus=gpus,
            object_store_memory=store_bytes,
            include_dashboard=False,
            _temp_dir=folder,
            _system_config={"task_oom_retries": OOM_RETRIES},
            **QUIET,
        )
    except Exception as error:
        raise ClusterError(
            f"A Ray of {cores} workers must start on this machine; it did not ({on_one_line(error)}); check its memory "
            f"and the space in {folder}."
        ) from error


def _join(ray: ModuleType, address: str) -> None:
    try:
        ray.init(address, **QUIET)
    except ImportError as error:
        raise ClusterError(
            f"Ray's client must be installed for {address}; it is not ({on_one_line(error)}); install it with: pip "
            "install 'ray[client]', or run the command on a machine of the cluster."
        ) from error
    except Exception as error:
        raise nobody(address, on_one_line(error)) from error
