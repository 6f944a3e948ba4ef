"""The arguments that name a world, for every command that takes one."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from craftrl.arguments import natural, positive
from craftrl.errors import InvalidParameterError

if TYPE_CHECKING:
    from craftrl.envs import ExBMDP, GymWorld, MarkovPolicy

__all__ = ["add_world_arguments", "table_world_of", "world_of"]

OPTIONS = ("horizon", "n_features", "size", "n_walkers", "layout")
OTHERS = "; made by others: freeway, seaquest, minigrid, doom"


def add_world_arguments(
    parser: argparse._ActionsContainer, tables_only: bool = False, required: bool | None = None
) -> None:
    """--world and its options; where a command needs tables, worlds that others made are not offered."""
    parser.add_argument(
        "--world",
        required=not tables_only if required is None else required,
        metavar="NAME",
        help=f"bits (the paper's), lock, multimaze or pixels{'' if tables_only else OTHERS}",
    )
    parser.add_argument("--horizon", type=positive, metavar="H", help="steps per trajectory")
    parser.add_argument(
        "--features", "--n-features", type=positive, dest="n_features", metavar="M", help="bits, lock: observed bits"
    )
    parser.add_argument("--size", type=positive, metavar="N", help="pixels: cells per side; doom: directions")
    parser.add_argument(
        "--walkers",
        "--n-walkers",
        type=natural,
        dest="n_walkers",
        metavar="N",
        help="pixels, minigrid, doom: distractors",
    )
    if not tables_only:
        parser.add_argument("--layout", metavar="ID", help="minigrid: such as MiniGrid-FourRooms-v0")
    else:
        parser.set_defaults(layout=None)
    parser.add_argument("--world-seed", type=natural, default=0, metavar="N", help="default: %(default)s")


def world_of(args: argparse.Namespace) -> tuple[ExBMDP | GymWorld, tuple[MarkovPolicy, ...]]:
    """The world that the arguments name, and its agents."""
    from craftrl.envs import make_world

    given = {name: getattr(args, name) for name in OPTIONS if getattr(args, name) is not None}
    return make_world(args.world, seed=args.world_seed, **given)


def table_world_of(args: argparse.Namespace) -> tuple[ExBMDP, tuple[MarkovPolicy, ...]]:
    """The same for a world whose dynamics are known as tables."""
    from craftrl.envs import ExBMDP

    world, policies = world_of(args)
    if not isinstance(world, ExBMDP):
        raise InvalidParameterError(
            f"Population values need a world whose dynamics are tables; {args.world} can only be played; collect data "
            "from it, and give that with --data to craftrl theory assumptions."
        )
    return world, policies
