"""`craftrl reproduce figures`: the paper's three figures, drawn from real runs.

Paper: Figures 1 (two-step example), 2 (recursive DRAFT) and 3 (schematic of CRAFT)
"""

from __future__ import annotations

import argparse

from craftrl.reproduce.arguments import natural, positive

__all__ = ["add_arguments", "main"]

EXAMPLES = """\
examples:
  craftrl reproduce figures --out results/figures
  craftrl reproduce figures --n 500 --seed 3 --out results/other-figures

writes composition.png, recursive_draft.png and spectrum.png to DIR"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--n", type=positive, default=2000, metavar="N", help="trajectories per agent (default: %(default)s)"
    )
    parser.add_argument("--seed", type=natural, default=1, metavar="N", help="default: %(default)s")
    parser.add_argument("--out", default="results/figures", metavar="DIR", help="default: %(default)s")
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    from craftrl.data.files import check_writable
    from craftrl.data.places import target
    from craftrl.reproduce.figures.composition import draw_composition
    from craftrl.reproduce.figures.recursive import draw_recursion
    from craftrl.reproduce.figures.spectrum import draw_spectrum, run_for_spectrum

    out = target("The folder of the figures", args.out)
    trace = run_for_spectrum(args.n, args.seed)  # before anything is written, since not every run can be drawn
    check_writable(out)
    draw_spectrum(trace, out / "spectrum.png", args.n)
    draw_composition(out / "composition.png", args.n, args.seed)
    draw_recursion(out / "recursive_draft.png", args.n, args.seed)
    print(f"Written to {out}: composition.png, recursive_draft.png, spectrum.png.")
