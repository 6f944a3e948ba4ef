"""`craftrl fit`: CRAFT on a dataset on disk, its encoders in a small JSON file."""

from __future__ import annotations

import argparse
from pathlib import Path

from craftrl.cli.parser import bound
from craftrl.reproduce.arguments import positive

__all__ = ["add_arguments", "main"]

EXAMPLES = """\
examples:
  craftrl fit data.h5 --alpha 1 --eta 1/5 --nu 5/32 --out model.json
  craftrl fit data.h5 --coupling chain --relabel --diagnose 10 --out model.json

FILE holds, for each step, the coordinate that is the state and what its values mean, and how every step went.
craftrl theory assumptions computes alpha, eta and nu where the true states are known."""

BOUNDS = {
    "alpha": "least difference of the agents' log-odds of two successors",
    "eta": "least share of one agent in the visits to a pair of states",
    "nu": "least share of trajectories that visit a pair of states",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", type=Path, metavar="DATA", help="trajectories, as craftrl collect writes them")
    parser.add_argument(
        "--oracle", choices=["coordinate"], default="coordinate", help="the encoders: one coordinate of x (default)"
    )
    parser.add_argument(
        "--values", type=positive, default=2, metavar="N", help="N_s, values of a coordinate (default: 2)"
    )
    for name, meaning in BOUNDS.items():
        parser.add_argument(f"--{name}", type=bound, default="auto", help=f"{meaning}, or auto (default)")
    parser.add_argument(
        "--coupling",
        choices=["independent", "chain", "posterior"],
        default="independent",
        help="independent is the paper's; the others choose all steps' encoders at once and need less data",
    )
    parser.add_argument("--relabel", action="store_true", help="read states off each encoder once it is trained")
    parser.add_argument(
        "--diagnose",
        type=positive,
        metavar="N",
        help="ask the data, without ground truth, whether to trust the result: N refits on resampled trajectories",
    )
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="the model, NAME.json")
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    import warnings

    from craftrl import CRAFT, AssumptionWarning, CoordinateOracle, TrajectoryDataset
    from craftrl.cli.models import check_model_path, save_model, step_table

    check_model_path(args.out)
    tau = TrajectoryDataset.open(args.data)
    oracle = CoordinateOracle(args.values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)  # said in the table below, step by step
        model = CRAFT(
            oracle, alpha=args.alpha, eta=args.eta, nu=args.nu, coupling=args.coupling, relabel=args.relabel
        ).fit(tau)
    save_model(model, args.out)
    print(step_table(model))
    used = ", ".join(f"{name} = {getattr(model.bounds_, name):.4g}" for name in BOUNDS)
    print(f"with {used}\nWritten to {args.out}")
    if args.diagnose:
        from craftrl.diagnostics import diagnose

        print(f"\n{diagnose(model, tau, n_resamples=args.diagnose)}")
