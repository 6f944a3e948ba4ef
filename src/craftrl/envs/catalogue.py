"""The worlds by name: the one list that Gymnasium's ids, the command line and `make_world` read."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from craftrl.arguments import shown
from craftrl.envs.exbmdp import ExBMDP
from craftrl.envs.numbers import check_seed
from craftrl.envs.policies import MarkovPolicy
from craftrl.errors import CraftError, InvalidParameterError

__all__ = ["WORLDS", "CatalogueEntry", "class_at", "make_world"]


@dataclass(frozen=True)
class CatalogueEntry:
    """One world of the catalogue.

    path      where its class lives, "module:class"; it is imported only when the world is made
    policies  the method of the world that gives its agents
    options   parameters of the class that `make_world` takes beside `seed`
    gym_id    its name in Gymnasium's registry
    """

    path: str
    policies: str
    options: tuple[str, ...]
    gym_id: str


WORLDS = {
    "bits": CatalogueEntry(
        "craftrl.envs.bits:BitsExBMDP", "paper_policies", ("horizon", "n_features"), "craftrl/Bits-v0"
    ),
    "pixels": CatalogueEntry(
        "craftrl.envs.pixels:PixelsExBMDP", "policies", ("horizon", "size", "n_walkers"), "craftrl/PixelGrid-v0"
    ),
}


def make_world(name: str, *, seed: int = 0, **options: int) -> tuple[ExBMDP, tuple[MarkovPolicy, ...]]:
    """A world of the catalogue, and the agents that come with it.

    name     one of `WORLDS`: "bits" is the paper's
    seed     what is drawn at random in the world itself, such as which coordinates are whose, or its agents' habits
    options  what its class takes, such as `horizon`; what is left out has the class's default
    """
    if not isinstance(name, str) or name not in WORLDS:
        raise InvalidParameterError(f"The world must be one of {', '.join(WORLDS)}; {shown(name)} was given.")
    check_seed(seed)
    entry = WORLDS[name]
    for option in options:
        if option not in entry.options:
            raise InvalidParameterError(
                f"The world {name} takes {', '.join(entry.options)} and seed; {option} was given; leave it out or "
                "choose another world."
            )
    world = class_at(entry.path)(**options, seed=seed)
    return world, getattr(world, entry.policies)()


def class_at(path: str) -> Any:
    """The class that "module:class" names."""
    module, _, name = path.partition(":") if isinstance(path, str) else ("", "", "")
    try:
        return getattr(import_module(module), name)
    except (ImportError, ValueError, AttributeError) as error:
        if isinstance(error, CraftError):  # a package that is missing
            raise
        raise InvalidParameterError(f"A world must be named as module:class; {shown(path)} was given.") from error
