"""One record for every study: which runs, what one run does, and what is told about all of them.

`craftrl reproduce NAME` is `Study.main` for every study: it runs what is not yet in the results folder, prints the
report and draws the pictures. A study of your own is a folder `studies/NAME` whose `spec.py` defines `STUDY`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from craftrl.data.places import target
from craftrl.reproduce.arguments import add_sweep_arguments
from craftrl.reproduce.folder import Row
from craftrl.reproduce.runner import RunOne, run_sweep

__all__ = ["Later", "Study"]


@dataclass(frozen=True)
class Later:
    """A function that is imported only when it is called: `Later("studies.agents.run", "run_one")`.

    Records made of these load no numerical package, so that --help answers at once.
    """

    module: str
    name: str

    def __call__(self, *args: Any) -> Any:
        return getattr(import_module(self.module), self.name)(*args)


@dataclass(frozen=True)
class Study:
    """A sweep over settings and what follows from its rows.

    name        on the command line, and of the default results folder
    summary     what the study shows, in a few words
    seeds       how many seeds are run unless --seeds says otherwise
    runs        from the parsed arguments to the settings of all runs: frozen dataclasses of plain values
    run_one     from the settings of one run to its results, plain values too
    report      from all rows to the text that is printed; also writes its tables into the folder, a path or a place in
                a store
    draw        draws the pictures into the folder; None where a study has none
    writes      the files that report and draw write
    options     adds the study's own arguments to a parser; None where it has none
    full_seeds  the same with --full; None where there is no --full
    full_adds   what else --full adds, for its help text
    examples    arguments worth trying, one string for each example of --help
    """

    name: str
    summary: str
    seeds: int
    runs: Callable[[argparse.Namespace], Sequence[Any]]
    run_one: RunOne
    report: Callable[[list[Row], Any, argparse.Namespace], str]
    draw: Callable[[list[Row], Any, argparse.Namespace], None] | None = None
    writes: tuple[str, ...] = ()
    options: Callable[[argparse.ArgumentParser], None] | None = None
    full_seeds: int | None = None
    full_adds: str = ""
    examples: tuple[str, ...] = ("--workers 2",)

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """What all sweeps take, what this study takes, and examples."""
        with_full = "" if self.full_seeds is None else f", {self.full_seeds} with --full"
        add_sweep_arguments(parser, self.name, f"{self.seeds}{with_full}")
        if self.full_seeds is not None:
            parser.add_argument("--full", action="store_true", help=f"{self.full_seeds} seeds{self.full_adds}")
        if self.options is not None:
            self.options(parser)
        parser.epilog = self._epilog()

    def main(self, args: argparse.Namespace) -> None:
        """Run what is missing, print the report, draw the pictures.

        The report is printed before anything is drawn: without Matplotlib it is there all the same.
        """
        if args.seeds is None:
            seeds = self.full_seeds if self.full_seeds is not None and args.full else self.seeds
            args = argparse.Namespace(**{**vars(args), "seeds": seeds})
        out = target("The results folder", args.out)
        crew = {"workers": args.workers, "backend": args.backend, "address": args.address}
        rows = run_sweep(self.name, self.runs(args), self.run_one, out, progress=not args.quiet, **crew)
        print(self.report(rows, out, args))
        if self.draw is not None:
            self.draw(rows, out, args)
        print(f"\nWritten to {out}: {', '.join(self.writes)} and one row per run.")

    def _epilog(self) -> str:
        examples = "".join(f"  craftrl reproduce {self.name} {example}\n" for example in self.examples)
        return f"examples:\n{examples}\nwrites {', '.join(self.writes)} and one row per run (rows.jsonl) to DIR"
