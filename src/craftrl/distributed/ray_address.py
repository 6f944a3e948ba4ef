"""Does a Ray cluster answer at an address, and does it ask for a token?

Ray tries for minutes to reach an address where nothing is, and then may end the whole process. So it is asked by a
process of its own, which is given ten seconds.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import suppress
from importlib import import_module

from craftrl.arguments import shown
from craftrl.errors import ClusterError, InvalidParameterError

__all__ = ["AUTH", "check_answers", "nobody", "on_one_line", "parsed", "read_environment_again"]

PATIENCE = 10.0  # seconds in which a cluster must answer
AUTH = "RAY_AUTH_MODE"  # "token": whoever sends work must know a secret
KNOCK = "import sys, ray; ray._raylet.GcsClient(address=sys.argv[1])"


def parsed(address: str | None) -> tuple[str, int]:
    """Host and port; of none where the address has none."""
    if address is None:
        return "", 0
    if isinstance(address, str):
        if address == "auto":
            return "", 0
        host, _, port = address.removeprefix("ray://").rpartition(":")
        if host and not set("/@ ") & set(host) and port.isdecimal() and len(port) < 6 and 0 < int(port) < 2**16:
            return host.strip("[]"), int(port)
    raise InvalidParameterError(
        f"address must be HOST:PORT, ray://HOST:PORT or 'auto'; {shown(address)} was given; leave it out for a Ray on "
        "this machine."
    )


def check_answers(address: str, host: str, port: int, asked_for_tokens: bool) -> None:
    """Raise unless a cluster answers; and take it with a token or without, as it is.

    A process that asks for tokens cannot work with a cluster that has none: workers would not be let in with their
    results. Ray cannot forget that it asked for them. A token is sent to an address only if the user says so, as is
    Ray's rule.
    """
    if host:
        try:
            socket.create_connection((host, port), PATIENCE).close()
        except (OSError, ValueError) as error:  # ValueError: of a text that cannot be the name of a host
            raise nobody(address, on_one_line(error)) from error
    if address.startswith("ray://"):
        return  # Ray's client asks for itself, and gives up in time
    where = address if host else _found()
    given = os.environ.get(AUTH)
    for mode in ["disabled", "token"] if given in (None, "disabled", "token") else [given]:
        if mode == "token" and host and given != "token":
            break
        if _knock(where, mode):
            if mode == "disabled" and asked_for_tokens:
                raise ClusterError(
                    f"A process whose own Ray asked for tokens can join only clusters that do; the one at {where} asks "
                    "for none; join it from a new process."
                )
            os.environ[AUTH] = mode
            read_environment_again()
            return
    raise ClusterError(
        f"The cluster at {where} must be given its token; it was given none or another; set {AUTH}=token, and "
        "RAY_AUTH_TOKEN to that of the cluster unless ~/.ray/auth_token has it."
    )


def _knock(address: str, mode: str) -> bool:
    """Whether a cluster answers; False where it would, to somebody with a token."""
    try:
        answer = subprocess.run(
            [sys.executable, "-c", KNOCK, address],
            env=os.environ | {AUTH: mode},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise nobody(address, "something is there, but no Ray") from error
    if answer.returncode == 0 or "AttributeError" in answer.stderr:  # of a Ray where that is named otherwise
        return True
    if "AuthenticationError" in answer.stderr:
        return False
    raise nobody(address, (answer.stderr.strip().splitlines() or ["no answer"])[-1])


def read_environment_again() -> None:
    """Ray keeps whether it asks for tokens as it was when it was first asked."""
    with suppress(ImportError, AttributeError):
        import_module("ray._raylet").Config.initialize("")


def _found() -> str:
    """What "auto" stands for."""
    from ray._private.services import canonicalize_bootstrap_address

    try:
        address = canonicalize_bootstrap_address("auto")
    except ConnectionError as error:
        raise nobody("auto", "no Ray runs on this machine, and RAY_ADDRESS is not set") from error
    return str(address)


def nobody(address: str, why: str) -> ClusterError:
    return ClusterError(
        f"A Ray cluster must answer at {address[:80]}; none does ({why}); start one with ray start --head, or leave "
        "out the address."
    )


def on_one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
