"""Worlds by name, with the agents that come with them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from craftrl.errors import InvalidParameterError
from craftrl.reproduce.arguments import natural, positive

if TYPE_CHECKING:
    from craftrl.envs import ExBMDP, MarkovPolicy

__all__ = ["WORLDS", "World", "add_world_arguments", "make_world"]


class World(NamedTuple):
    """Where a world's class lives, the method that gives its agents' policies, and the options that it takes."""

    module: str
    name: str
    policies: str
    options: tuple[str, ...]


WORLDS = {
    "bits": World("craftrl.envs.bits", "BitsExBMDP", "paper_policies", ("horizon", "n_features")),
    "lock": World("craftrl.envs.lock", "LockExBMDP", "policies", ("horizon", "n_features")),
    "multimaze": World("craftrl.envs.multimaze", "MultiMazeExBMDP", "policies", ("horizon",)),
    "pixels": World("craftrl.envs.pixels", "PixelsExBMDP", "policies", ("horizon", "size", "n_walkers")),
}
FLAGS = {"horizon": "--horizon", "n_features": "--features", "size": "--size", "n_walkers": "--walkers"}


def add_world_arguments(parser: argparse.ArgumentParser, required: bool = True) -> None:
    parser.add_argument("--world", choices=WORLDS, required=required, help="bits is the paper's")
    parser.add_argument("--horizon", type=positive, metavar="H", help="steps per trajectory")
    parser.add_argument("--features", type=positive, dest="n_features", metavar="M", help="bits, lock: observed bits")
    parser.add_argument("--size", type=positive, metavar="N", help="pixels: cells per side")
    parser.add_argument("--walkers", type=natural, dest="n_walkers", metavar="N", help="pixels: distractors")
    parser.add_argument("--world-seed", type=natural, default=0, metavar="N", help="default: %(default)s")


def make_world(args: argparse.Namespace) -> tuple[ExBMDP, Sequence[MarkovPolicy]]:
    """The world that the arguments name, and its agents."""
    world = WORLDS[args.world]
    given = {name: getattr(args, name) for name in FLAGS if getattr(args, name) is not None}
    for name in given:
        if name not in world.options:
            known = ", ".join(FLAGS[option] for option in world.options)
            raise InvalidParameterError(
                f"The world {args.world} takes {known}; {FLAGS[name]} was given; leave it out or choose another world."
            )
    made = getattr(import_module(world.module), world.name)(**given, seed=args.world_seed)
    return made, getattr(made, world.policies)()
