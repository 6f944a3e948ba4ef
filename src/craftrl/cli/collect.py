"""`craftrl collect`: a dataset on disk, and its ground truth in a file of its own."""

from __future__ import annotations

import argparse

from craftrl.arguments import natural, positive
from craftrl.cli.worlds import add_world_arguments, world_of
from craftrl.data.places import place

__all__ = ["add_arguments", "main"]

EXAMPLES = """\
examples:
  craftrl collect --world bits --n 1000 --out data.h5
  craftrl collect --world bits --horizon 10 --features 32 --n 500 --seed 7 --out shards
  craftrl collect --world pixels --size 3 --walkers 2 --horizon 6 --n 2000 --out frames.h5
  craftrl collect --world freeway --n 6000 --workers 2 --out freeway.h5

writes the trajectories (observations and agents, nothing else) to FILE, and the latent states and actions, which no
learner may see, beside it: data.h5 goes with data.truth.npz. Killed at any point, it goes on when the same command is
given again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_world_arguments(parser)
    parser.add_argument("--n", type=positive, required=True, metavar="N", help="trajectories per agent")
    parser.add_argument(
        "--seed", type=natural, default=0, metavar="N", help="of the trajectories (default: %(default)s)"
    )
    parser.add_argument(
        "--workers", type=positive, default=1, metavar="N", help="processes, for worlds made by others (default: 1)"
    )
    parser.add_argument("--out", required=True, type=place, metavar="FILE", help="NAME.h5, or a folder of shards")
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    from craftrl.data.truth import truth_path
    from craftrl.envs import record

    collection = record(*world_of(args), args.n, args.out, args.seed, workers=args.workers, progress=True)
    print(f"{collection.tau}\nWritten to {args.out}, ground truth to {truth_path(args.out)}")
