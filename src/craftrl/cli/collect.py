"""`craftrl collect`: a dataset on disk, and its ground truth in a file of its own."""

from __future__ import annotations

import argparse
from pathlib import Path

from craftrl.arguments import natural, positive
from craftrl.cli.worlds import add_world_arguments, world_of

__all__ = ["add_arguments", "main"]

EXAMPLES = """\
examples:
  craftrl collect --world bits --n 1000 --out data
  craftrl collect --world bits --horizon 10 --features 32 --n 500 --seed 7 --out data
  craftrl collect --world pixels --size 3 --walkers 2 --horizon 6 --n 2000 --out frames
  craftrl collect --world freeway --n 6000 --workers 2 --out freeway

writes the trajectories (observations and agents, nothing else) to FILE, and the latent states and actions, which no
learner may see, beside the frames. Killed at any point, it goes on when the same command is
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
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="a new folder")
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    from craftrl.envs import record

    collection = record(*world_of(args), args.n, args.out, args.seed, workers=args.workers, progress=True)
    print(f"{collection.tau}\nWritten to {args.out}, ground truth beside the frames")
