"""`craftrl theory assumptions`: the bounds that CRAFT must be given, and the states that attain them.

Paper: Section 2.5, Appendix D
"""

from __future__ import annotations

import argparse
from pathlib import Path

from craftrl.cli.worlds import add_world_arguments, table_world_of
from craftrl.errors import InvalidParameterError

__all__ = ["add_arguments", "main"]

EXAMPLES = """\
examples:
  craftrl theory assumptions --world bits
  craftrl theory assumptions --data data.h5 --truth data.truth.npz

With --world: population values, for infinitely many trajectories of its agents. With --data: of the very data at hand,
as the paper assumes them."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_world_arguments(parser, tables_only=True)
    parser.add_argument("--data", type=Path, metavar="FILE", help="as craftrl collect writes it")
    parser.add_argument(
        "--truth",
        type=Path,
        metavar="FILE",
        help="a dataset with the true states of the same data, as craftrl collect writes it",
    )
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    from craftrl.paper import empirical_assumptions, population_assumptions

    if (args.world is None) == (args.data is None) or (args.data is None) != (args.truth is None):
        raise InvalidParameterError("Give either --world, or --data and --truth together.")
    if args.world is not None:
        world, policies = table_world_of(args)
        print(population_assumptions(world, policies))
        return
    from craftrl import TrajectoryDataset
    from craftrl.data import read_true_states

    tau = TrajectoryDataset.open(args.data)
    print(empirical_assumptions(tau.agent, read_true_states(args.truth), lengths=tau.lengths))
