"""`craftrl encode`: the learned state of every observation, as a table."""

from __future__ import annotations

import argparse
from pathlib import Path

from craftrl.data.files import check_new

__all__ = ["add_arguments", "main"]

EXAMPLES = """\
examples:
  craftrl encode model.safetensors data.h5 --out states.parquet
  craftrl encode model.safetensors data.h5 --out states.csv

.parquet and .csv have one line for each observation: trajectory, agent, h, state. .npz has the arrays states (n, H), -1
where a trajectory is over, and agent (n,)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="as craftrl fit writes it")
    parser.add_argument("data", type=Path, metavar="DATA", help="trajectories, as craftrl collect writes them")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="NAME.parquet, NAME.csv or NAME.npz")
    parser.add_argument("--force", action="store_true", help="replace a file that is there already")
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    from craftrl import TrajectoryDataset, load
    from craftrl.deploy.tables import check_table, write_states

    check_table(args.out)
    check_new(args.out, "table", args.force)
    model = load(args.model)
    tau = TrajectoryDataset.open(args.data)
    states = model.transform(tau)
    write_states(args.out, states, tau.agent, overwrite=args.force)
    print(f"{int((states >= 0).sum())} states of {tau.n} trajectories written to {args.out}")
