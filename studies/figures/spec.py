"""`craftrl reproduce figures`: the paper's three figures, drawn from real runs.

Paper: Figures 1 (two-step example), 2 (recursive DRAFT) and 3 (schematic of CRAFT)
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from craftrl.arguments import check_target, natural, positive


@dataclass(frozen=True)
class Figures:
    """No sweep, and so a command of its own."""

    name: str = "figures"
    summary: str = "the paper's three figures, drawn from real runs"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        number = "trajectories per agent (default: %(default)s)"
        parser.add_argument("--n", type=positive, default=2000, metavar="N", help=number)
        parser.add_argument("--seed", type=natural, default=1, metavar="N", help="default: %(default)s")
        parser.add_argument("--out", default="results/figures", metavar="DIR", help="default: %(default)s")
        example = "examples:\n  craftrl reproduce figures --n 500 --seed 3 --out results/other-figures\n\n"
        parser.epilog = example + "writes composition.png, recursive_draft.png and spectrum.png to DIR"

    def main(self, args: argparse.Namespace) -> None:
        from craftrl.data.files import check_writable
        from craftrl.report import draw_schematic
        from studies.figures.paper import draw_composition, draw_recursion, run_for_spectrum

        out = check_target("The folder of the figures", args.out)
        trace = run_for_spectrum(args.n, args.seed)  # before anything is written, since not every run can be drawn
        check_writable(out)
        subtitle = f"a combination lock, {args.n:,} action-free trajectories per agent"
        draw_schematic(trace, out / "spectrum.png", h=2, subtitle=subtitle)
        draw_composition(out / "composition.png", args.n, args.seed)
        draw_recursion(out / "recursive_draft.png", args.n, args.seed)
        print(f"Written to {out}: composition.png, recursive_draft.png, spectrum.png.")


STUDY = Figures()
