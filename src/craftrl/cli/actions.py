"""`craftrl actions`: the latent action of every transition in the videos, without a single label."""

from __future__ import annotations

import argparse
from pathlib import Path

from craftrl.arguments import natural, positive
from craftrl.data.files import check_new

__all__ = ["add_arguments", "main"]

EXAMPLES = """\
examples:
  craftrl actions model.safetensors frames.h5 --out actions.csv
  craftrl actions model.safetensors frames.h5 --n 4 --stochastic --out actions.parquet

A latent action is a number that moves of different states share. The table has one line for each transition:
trajectory, agent, h, state, successor, action (-1: unknown), certainty, and the group of states within which numbers of
actions mean the same. What this rests on is printed, with whether it holds on this data."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="as craftrl fit writes it")
    parser.add_argument("data", type=Path, metavar="DATA", help="the store that it was fitted to")
    parser.add_argument("--n", type=positive, metavar="N", help="how many actions (default: as few as the moves need)")
    parser.add_argument("--stochastic", action="store_true", help="an action may lead from one state to several")
    parser.add_argument("--seed", type=natural, default=0, metavar="N", help="of random starts (default: 0)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="NAME.parquet, NAME.csv or NAME.npz")
    parser.add_argument("--force", action="store_true", help="replace a file that is there already")
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    from craftrl import TrajectoryDataset, load
    from craftrl.deploy.action_tables import latent_action_columns, write_latent_actions
    from craftrl.deploy.tables import check_table
    from craftrl.planning import Moves
    from craftrl.planning.moves import nodes_of
    from craftrl.states.latent_actions import find_latent_actions

    if args.out is not None:
        check_table(args.out)
        check_new(args.out, "table", args.force)
    model, tau = load(args.model), TrajectoryDataset.open(args.data)
    states = model.transform(tau)
    moves = Moves.from_states(states, tau.agent, nodes_of(model, states))
    latent = find_latent_actions(moves.counts, n=args.n or "auto", deterministic=not args.stochastic, seed=args.seed)
    print(latent)
    if args.out is not None:
        columns = latent_action_columns(states, tau.agent, moves, latent)
        write_latent_actions(args.out, columns, overwrite=args.force)
        print(f"{len(columns['h'])} transitions of {tau.n} trajectories written to {args.out}")
