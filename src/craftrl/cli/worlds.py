"""The arguments that name a world, for every command that takes one."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from craftrl.reproduce.arguments import natural, positive

if TYPE_CHECKING:
    from craftrl.envs import ExBMDP, MarkovPolicy

__all__ = ["add_world_arguments", "world_of"]

OPTIONS = ("horizon", "n_features", "size", "n_walkers")


def add_world_arguments(parser: argparse.ArgumentParser, required: bool = True) -> None:
    parser.add_argument(
        "--world", required=required, metavar="NAME", help="bits (the paper's), lock, multimaze or pixels"
    )
    parser.add_argument("--horizon", type=positive, metavar="H", help="steps per trajectory")
    parser.add_argument(
        "--features", "--n-features", type=positive, dest="n_features", metavar="M", help="bits, lock: observed bits"
    )
    parser.add_argument("--size", type=positive, metavar="N", help="pixels: cells per side")
    parser.add_argument(
        "--walkers", "--n-walkers", type=natural, dest="n_walkers", metavar="N", help="pixels: distractors"
    )
    parser.add_argument("--world-seed", type=natural, default=0, metavar="N", help="default: %(default)s")


def world_of(args: argparse.Namespace) -> tuple[ExBMDP, tuple[MarkovPolicy, ...]]:
    """The world that the arguments name, and its agents."""
    from craftrl.envs import make_world

    given = {name: getattr(args, name) for name in OPTIONS if getattr(args, name) is not None}
    return make_world(args.world, seed=args.world_seed, **given)
