"""The command line: every subcommand parses, makes one library call, and prints.

A command is a module with `add_arguments(parser)` and `main(args)`. It is imported only when it is the one asked for,
and imports numerical packages inside `main` alone, so that every --help answers at once.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Sequence

from craftrl._version import __version__
from craftrl.cli.parser import CommandParser, add_commands
from craftrl.cli.ranks import as_one, several, tell
from craftrl.cli.stopping import Terminated, stopped_as_by_hand
from craftrl.errors import CraftError

__all__ = ["main"]

COMMANDS = {
    "reproduce": ("craftrl.cli.reproduce", "run a study again: the paper's table, its figures, and more"),
    "collect": ("craftrl.cli.collect", "sample action-free trajectories of several agents in a world"),
    "import": ("craftrl.cli.import_", "read recordings of several agents, in any known format, into one store"),
    "inspect": ("craftrl.cli.inspect", "what a store holds, and what may be wrong with it"),
    "fit": ("craftrl.cli.fit", "learn encoders of the controllable state from trajectories"),
    "evaluate": ("craftrl.cli.evaluate", "apply learned encoders to trajectories, and compare with the truth"),
    "encode": ("craftrl.cli.encode", "write the learned state of every observation to a table"),
    "render": ("craftrl.cli.render", "draw the learned state into a video of trajectories"),
    "actions": ("craftrl.cli.actions", "write the latent action of every transition to a table"),
    "plan": ("craftrl.cli.plan", "reach a goal: which action makes which move, a plan, and a video of it"),
    "export": ("craftrl.cli.export", "write a network's encoder to an ONNX file"),
    "report": ("craftrl.cli.report", "write a page on a model: verdict, states in pictures, checks, every number"),
    "theory": ("craftrl.cli.theory", "the paper's assumptions and sample sizes in numbers"),
}

EXAMPLES = """\
examples:
  craftrl reproduce table1 --seeds 4 --workers 2
  craftrl collect --world bits --n 1000 --out data.h5
  craftrl import alice/ bob/ --out data.h5
  craftrl inspect data.h5
  craftrl fit data.h5 --out model.safetensors
  craftrl evaluate model.safetensors data.h5 --truth data.truth.npz
  craftrl theory assumptions --world bits

craftrl COMMAND --help says more about each."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0, 2 for an error of the caller's, 130 or 143 when interrupted."""
    _have_streams()
    return as_one(_run, argv) if several() else _run(argv)


def _run(argv: Sequence[str] | None) -> int:
    try:
        with contextlib.nullcontext() if several() else stopped_as_by_hand():  # torchrun stops ranks in its own way
            args = _parser().parse_args(argv)
            args.main(args)
            sys.stdout.flush()
    except CraftError as error:
        tell(error)
        return 2
    except KeyboardInterrupt as error:
        what, code = ("Terminated", 143) if isinstance(error, Terminated) else ("Interrupted", 130)
        tell(f"{what}; nothing is half-written, and the same command goes on from what was finished.")
        return code
    except BrokenPipeError:  # whoever read our output, such as `head`, has left
        _print_nowhere()
        return 1
    except OSError as error:  # a full disk behind standard output, for one
        _print_nowhere()
        tell(_not_at_hand(error))
        return 2
    except MemoryError as error:
        what = f" ({error})" if str(error) else ""
        tell(f"The data must fit into memory; it does not{what}; take less of it, or a machine with more.")
        return 2
    return 0


def _not_at_hand(error: OSError) -> str:
    if "shared object" in str(error):  # a library, compiled code of which the system could not load
        return (
            f"Every library must load; one did not ({error}); give more memory if that is limited, or install it anew."
        )
    return f"What is read and written must be at hand; it is not ({error}); check paths, rights and space."


def _parser() -> CommandParser:
    parser = CommandParser(prog="craftrl", description="Which part of a video do its agents control?", epilog=EXAMPLES)
    parser.add_argument("--version", action="version", version=f"craftrl {__version__}")
    add_commands(parser, COMMANDS)
    return parser


def _have_streams() -> None:
    """Where a stream was closed (`>&-`), nowhere takes its place: the next file that is opened would, by its number.

    Names of files may hold bytes that are no text: those are printed as escapes, where printing would fail.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115, for as long as the program runs
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _print_nowhere() -> None:
    """Whatever is still to be printed is dropped, so that the interpreter does not fail over it when it ends."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
