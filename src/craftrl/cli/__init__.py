"""The command line: every command is a function, its options and help are its signature and docstring.

Commands import numerical packages when they run, so that every --help answers at once.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from craftrl._version import __version__
from craftrl.errors import AssumptionWarning, CraftError

if TYPE_CHECKING:
    from cyclopts import App

__all__ = ["app", "main"]

LONGEST = 80  # letters of one word of a line that cannot be read: nobody reads a value of five thousand


class Terminated(KeyboardInterrupt):
    """SIGTERM came, which batch systems and `kill` send."""


def app() -> App:
    """All commands; lines of a docstring flow on, but for those that are indented."""
    from cyclopts import App, Parameter

    from craftrl.cli import commands, fit, plan, reproduce

    def shown(default: object) -> str | None:
        return None if default is None or default is False or default in ((), "") else str(default)

    found = App(
        name="craftrl",
        help="Which part of a video do its agents control? craftrl COMMAND --help says more about each command.",
        version=f"craftrl {__version__}",
        help_flags="--help",
        version_flags="--version",
        help_format="plaintext",
        suppress_keyboard_interrupt=False,
        default_parameter=Parameter(negative=(), show_default=shown),
    )
    theory = App(name="theory", help="The paper's assumptions and sample sizes in numbers.")
    for where, functions in ((found, (*commands.COMMANDS, fit.fit, plan.plan)), (theory, commands.THEORY)):
        for function in functions:
            text = re.sub(r"(?<=\S)\n(?=\S)", " ", inspect.cleandoc(function.__doc__ or ""))
            where.command(function, name=function.__name__.strip("_").replace("_", "-"), help=text)
    found["report"].usage = "Usage: craftrl report --out STR [OPTIONS] MODEL [DATA]"  # cyclopts would call it ARGS
    found.command(reproduce.reproduce, help_flags=(), version_flags=())
    found.command(theory)
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0, 2 for an error of the caller's, 130 or 143 when interrupted."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed (`>&-`): the next file that is opened would get its number
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115, for as long as the program runs
        if isinstance(stream := getattr(sys, name), io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names of files may be no text
    words = list(sys.argv[1:] if argv is None else argv)
    several = os.environ.get("WORLD_SIZE", "1") != "1" and {"RANK", "MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys()
    try:
        with _one_of_several(words) if several else _stopped_by_sigterm(), _plain_warnings():
            app()(words, exit_on_error=False, print_error=False, result_action="return_value")
            sys.stdout.flush()
    except SystemExit as error:  # of a study's own parser, for --help
        return int(error.code or 0)
    except BaseException as error:
        code, text = _explained(error)
        if text and (not several or _first_to_say(text)):
            with contextlib.suppress(OSError):  # nobody can be told where standard error is full; the code says it
                print(text, file=sys.stderr, flush=True)
        return code
    return 0


def _explained(error: BaseException) -> tuple[int, str]:
    """The exit code, and what is said: one sentence, but for a fault of ours."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    for kind, what, code in ((Terminated, "Terminated", 143), (KeyboardInterrupt, "Interrupted", 130)):
        if any(isinstance(one, kind) for one in causes):  # or it came while a library was imported, which then failed
            return code, f"{what}; nothing is half-written, and the same command goes on from what was finished."
    # not before: a signal may have come while these were imported
    from cyclopts import CycloptsError, MissingArgumentError, UnusedCliTokensError

    from craftrl.cli.options import in_options

    if isinstance(error, CycloptsError):
        said = str(error).partition(" Available commands:")[0]  # the first few; --help has them all
        if isinstance(error, UnusedCliTokensError):
            said = f"There is one word too many: {(error.unused_tokens or [''])[0]}"
        if isinstance(error, MissingArgumentError) and error.argument and error.keyword is None:
            said = f"{error.argument.name} must be given"
        line = " ".join(f"{word[: LONGEST - 3]}..." if len(word) > LONGEST else word for word in said.split())
        see = f"see {' '.join(['craftrl', *(error.command_chain or ())])} --help."
        return 2, f"{line} S{see[1:]}" if line.endswith("?") else f"{line.rstrip('.')}; {see}"
    if isinstance(error, CraftError):
        return 2, in_options(str(error))
    if isinstance(error, OSError):  # a full disk behind standard output, or a reader such as `head` that has left
        with contextlib.suppress(OSError, ValueError, AttributeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter would fail over the rest
        text = f"What is read and written must be at hand; it is not ({error}); check paths, rights, space and memory."
        return (1, "") if isinstance(error, BrokenPipeError) else (2, text)
    if isinstance(error, MemoryError):
        what = f" ({error})" if str(error) else ""
        return 2, f"The data must fit into memory; it does not{what}; take less of it, or a machine with more."
    return 1, "".join(traceback.format_exception(error)).rstrip()


@contextlib.contextmanager
def _plain_warnings() -> Iterator[None]:
    """Assumptions that do not seem to hold are said in a line each, once."""
    said: set[str] = set()
    otherwise = warnings.showwarning

    def say(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if not issubclass(category, AssumptionWarning):
            otherwise(message, category, *rest, **more)
        elif str(message) not in said:
            from craftrl.cli.options import in_options

            said.add(str(message))
            print(f"Warning: {in_options(str(message))}", flush=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", AssumptionWarning)
        warnings.showwarning = say
        yield


@contextlib.contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """SIGTERM ends a command as Ctrl-C does, so that what is half-written is removed; unless somebody handles it."""

    def stop(number: int, frame: object) -> None:
        raise Terminated

    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if ours:
        signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextlib.contextmanager
def _one_of_several(words: Sequence[str]) -> Iterator[None]:
    """Where torchrun has started several processes, which it stops itself: the first prints as ever, others nothing."""
    from craftrl.oracles.network.ranks import begin

    begin()
    if words[:1] != ["fit"]:
        raise CraftError("Several processes at once are for craftrl fit with a network; run this without torchrun.")
    quiet = os.environ["RANK"] != "0"
    with open(os.devnull, "w") as nowhere, contextlib.ExitStack() as stack:
        for redirect in (contextlib.redirect_stdout, contextlib.redirect_stderr) if quiet else ():
            stack.enter_context(redirect(nowhere))
        yield


def _first_to_say(text: str) -> bool:
    """Whether no other rank has said so; ranks that fail because another one has wait for what that one says."""
    from datetime import timedelta

    from torch.distributed import TCPStore

    from craftrl.data.ranks import LOST

    with contextlib.suppress(Exception):  # where nobody is left to ask, it is said
        wait = timedelta(seconds=5)
        store = TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False, timeout=wait)
        if text.startswith(LOST):
            store.wait(["craftrl/said"], wait)
            return False
        store.set("craftrl/said", "yes")
        return store.add(f"craftrl/{text}", 1) == 1
    return True
