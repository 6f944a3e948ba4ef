"""A command that torchrun runs in several processes: one of them speaks for all, and an error is said once."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from craftrl.errors import CraftError, InvalidParameterError

__all__ = ["as_one", "several", "tell"]

WAIT = 5  # seconds for the message of the rank that failed first
SAID = "craftrl/said"  # set as soon as some rank has said what is wrong


def several() -> bool:
    """Whether this process is one of several that torchrun or its like has started; asks no package."""
    return os.environ.get("WORLD_SIZE", "1") != "1" and {"RANK", "MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys()


def as_one(run: Callable[[Sequence[str]], int], argv: Sequence[str] | None) -> int:
    """Run a command in every rank. The first prints as ever and the others nothing; each error is printed once."""
    given = sys.argv[1:] if argv is None else argv
    first = os.environ["RANK"] == "0"
    try:
        from craftrl.oracles.network.process_group import begin

        begin()
        _check_command(given)
        if first:
            return run(given)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return run(given)
    except SystemExit as error:  # of the parser, which has told the first rank's user already
        if error.code:
            _say_so() if first else _told_by_another()
        raise
    except CraftError as error:
        tell(str(error))
        return 2
    except Exception:
        import traceback

        tell(traceback.format_exc())
        return 1


def tell(text: object) -> None:
    """Print an error; where several ranks fail for one reason, the one that comes to it first does.

    Ranks that fail only because another one has wait for what that one says.
    """
    if not several():
        with contextlib.suppress(OSError):  # nobody can be told where standard error is full; the exit code says it
            print(text, file=sys.stderr, flush=True)
        return
    import hashlib

    from craftrl.oracles.network.process_group import LOST

    if str(text).startswith(LOST) and _told_by_another():
        return
    with contextlib.suppress(Exception):  # where nobody is left to ask, it is said
        if _store().add(f"{SAID}/{hashlib.sha256(str(text).encode()).hexdigest()}", 1) > 1:
            return
    print(text, file=sys.__stderr__, flush=True)
    _say_so()


def _say_so() -> None:
    with contextlib.suppress(Exception):
        _store().set(SAID, "yes")


def _told_by_another() -> bool:
    """Whether some rank has said what is wrong, or does so in a moment."""
    from datetime import timedelta

    try:
        _store().wait([SAID], timedelta(seconds=WAIT))
    except Exception:
        return False
    return True


def _store() -> Any:
    """What all ranks can read and write, as long as the one who started them is there."""
    from torch.distributed.distributed_c10d import _get_default_store

    return _get_default_store()


def _check_command(argv: Sequence[str]) -> None:
    named = [word for word in argv if not word.startswith("-")]
    if named and named[0] != "fit":
        raise InvalidParameterError(
            f"Several processes at once are for craftrl fit with a network; craftrl {named[0]} was started in "
            f"{os.environ['WORLD_SIZE']}; run it without torchrun."
        )
