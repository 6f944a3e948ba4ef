"""A Ray of our own, started quietly on this machine, or a connection to a cluster that is there.

Ray tries for minutes to reach an address where nothing is, and then may end the whole process. So whether a cluster
answers is asked first, by a process of its own.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from craftrl.arguments import check_whole, shown
from craftrl.errors import ClusterError, InvalidParameterError

__all__ = ["connected"]

PATIENCE = 10.0  # seconds in which a cluster must answer
LEAST_STORE = 80 * 2**20  # bytes; Ray starts with no less
LONGEST_TEMP = 24  # letters: Ray makes sockets below that folder, whose paths may have 107
OOM_RETRIES = 5  # of a task that needed more memory than there was; Ray would try for ever
QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
KNOCK = "import sys, ray; ray._raylet.GcsClient(address=sys.argv[1])"


@contextmanager
def connected(ray: ModuleType, address: str | None, workers: int | None, store_bytes: int | None) -> Iterator[None]:
    """A connection within the block; what was there before stays as it was."""
    host = _parsed(address)
    _check_local(workers, store_bytes, address)
    if ray.is_initialized():
        _check_same(ray, address, workers, store_bytes)
        yield
        return
    with _as_it_was():
        if address is None:
            with _own(ray, workers, store_bytes):
                _end_in_order()
                yield
            return
        _check_answers(address, *host)
        _join(ray, address)
        try:
            _end_in_order()
            yield
        finally:
            ray.shutdown()


def _parsed(address: str | None) -> tuple[str, int]:
    """Host and port; of none where the address has none."""
    if address in (None, "auto"):
        return "", 0
    if isinstance(address, str):
        host, _, port = address.removeprefix("ray://").rpartition(":")
        if host and not set("/@ ") & set(host) and port.isdecimal() and 0 < int(port) < 2**16:
            return host.strip("[]"), int(port)
    raise InvalidParameterError(
        f"address must be HOST:PORT, ray://HOST:PORT or 'auto'; {shown(address)} was given; leave it out for a Ray on "
        "this machine."
    )


def _check_local(workers: int | None, store_bytes: int | None, address: str | None) -> None:
    for name, value, least in (("workers", workers, 1), ("store_bytes", store_bytes, LEAST_STORE)):
        if value is not None:
            check_whole(name, value, least)
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
def _as_it_was() -> Iterator[None]:
    """Ray changes variables of the environment, a level of logging and what SIGTERM does; afterwards they are back.

    SIGTERM alone would end the process with Ray's files still there, so within the block it ends it in order.
    """
    names = {name for name in os.environ if name.startswith("RAY_")} | {"PYTHONPATH"}
    before = {name: os.environ.get(name) for name in names}
    level = logging.getLogger("ray").level
    in_main = threading.current_thread() is threading.main_thread()
    on_sigterm = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        for name in {name for name in os.environ if name.startswith("RAY_")} | names:
            value = before.get(name)
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})
        logging.getLogger("ray").setLevel(level)
        if in_main and on_sigterm is not None:
            signal.signal(signal.SIGTERM, on_sigterm)


def _end_in_order() -> None:
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _leave)


def _leave(signum: int, frame: object) -> None:
    raise SystemExit(128 + signum)


@contextmanager
def _own(ray: ModuleType, workers: int | None, store_bytes: int | None) -> Iterator[None]:
    """A Ray whose files, values on disk among them, lie in a folder that goes with it.

    Its workers find what this process finds. Unless RAY_AUTH_MODE says otherwise, it takes work only from whoever has
    the user's token, as is Ray's default: other users of the machine have it not.
    """
    from joblib import cpu_count  # knows about affinities and containers

    temp = tempfile.gettempdir()
    folder = tempfile.mkdtemp(prefix="craftrl-ray-", dir=temp if len(temp) <= LONGEST_TEMP else "/tmp")
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    cores = workers or cpu_count()
    try:
        try:
            ray.init(
                "local",
                num_cpus=cores,
                num_gpus=0,
                object_store_memory=store_bytes,
                include_dashboard=False,
                _temp_dir=folder,
                _system_config={"task_oom_retries": OOM_RETRIES},
                **QUIET,
            )
        except Exception as error:
            raise ClusterError(
                f"A Ray of {cores} workers must start on this machine; it did not ({_line(error)}); check its memory "
                f"and the space in {folder}."
            ) from error
        yield
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def _check_answers(address: str, host: str, port: int) -> None:
    if host:
        try:
            socket.create_connection((host, port), PATIENCE).close()
        except OSError as error:
            raise _nobody(address, _line(error)) from error
    if address.startswith("ray://"):
        return  # Ray's client asks for itself, and gives up in time
    if address == "auto":
        address = _found()
    try:
        knock = [sys.executable, "-c", KNOCK, address]
        answer = subprocess.run(knock, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired as error:
        raise _nobody(address, "something is there, but no Ray") from error
    if answer.returncode and "AuthenticationError" in answer.stderr:
        if not host:
            return  # for "auto", Ray looks for the token itself
        raise ClusterError(
            f"The cluster at {address} must be given its token; it was given none or another; set RAY_AUTH_MODE=token, "
            "and RAY_AUTH_TOKEN to that of the cluster unless ~/.ray/auth_token has it."
        )
    if answer.returncode and "AttributeError" not in answer.stderr:  # of a Ray where that is named otherwise
        raise _nobody(address, (answer.stderr.strip().splitlines() or ["no answer"])[-1])


def _found() -> str:
    """What "auto" stands for."""
    from ray._private.services import canonicalize_bootstrap_address

    try:
        address = canonicalize_bootstrap_address("auto")
    except ConnectionError as error:
        raise _nobody("auto", "no Ray runs on this machine, and RAY_ADDRESS is not set") from error
    return str(address)


def _join(ray: ModuleType, address: str) -> None:
    try:
        ray.init(address, **QUIET)
    except ImportError as error:
        raise ClusterError(
            f"Ray's client must be installed for {address}; it is not ({_line(error)}); install it with: pip install "
            "'ray[client]', or run the command on a machine of the cluster."
        ) from error
    except Exception as error:
        raise _nobody(address, _line(error)) from error


def _nobody(address: str, why: str) -> ClusterError:
    return ClusterError(
        f"A Ray cluster must answer at {address}; none does ({why}); start one with ray start --head, or leave out the "
        "address."
    )


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
