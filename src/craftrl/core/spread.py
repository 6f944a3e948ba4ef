"""Data that lies in several places: recipes travel there, and only sums of counts come back.

Everything that a finite class learns from is a count over trajectories, and a count over all of them is the sum of the
counts over parts. So the same algorithm can run where it does not hold the data. What has an entry for every
trajectory (the label of each, or the values of all encoders on each) is then no array but a `Spread`: it says how such
an array is made in every place, and never becomes one here. Functions marked `summed` are all that is asked of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from enum import Enum
from functools import wraps
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "HERE",
    "Labels",
    "Places",
    "Recipe",
    "Spread",
    "SpreadLabels",
    "below",
    "carried_out",
    "n_labels",
    "needed_by",
    "paired",
    "renamed",
    "summed",
    "tallies",
    "tally",
]

Ints = NDArray[np.integer]
Answer = TypeVar("Answer")


class _Marker(Enum):
    HERE = "here"


HERE = _Marker.HERE  # among the arguments of a recipe: whatever the place holds of the data


class Recipe:
    """A pure function and its arguments, some of which may be recipes: the same in every place, for other data.

    Recipes with one `digest` make the same thing.
    """

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        self.function = function
        self.args: tuple[Any, ...] = tuple(arg.recipe if isinstance(arg, Spread) else arg for arg in args)
        digest = hashlib.blake2b(f"{function.__module__}.{function.__qualname__}".encode(), digest_size=16)
        for arg in self.args:
            digest.update(_content(arg))
        self.digest = digest.digest()
        self.depth: int = 1 + max((arg.depth for arg in self.args if isinstance(arg, Recipe)), default=0)

    @classmethod
    def held(cls, recipe: Recipe) -> Recipe:
        """Stands for what a recipe has made: it says what that is, and no longer how."""
        name = cls(_known_already)
        name.digest = recipe.digest
        return name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recipe) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


def _known_already() -> Any:
    raise LookupError("What was held must be given to whoever asks for it.")


def _content(arg: Any) -> bytes:
    """What tells one argument of a recipe from another."""
    if isinstance(arg, Recipe):
        return arg.digest
    if isinstance(arg, np.ndarray):
        return repr((arg.shape, arg.dtype.str)).encode() + np.ascontiguousarray(arg).tobytes()
    return repr(arg).encode() + b"\0"


def needed_by(recipes: Sequence[Recipe]) -> list[Recipe]:
    """What must be held already for these to be carried out."""
    found: dict[Recipe, None] = {}
    for recipe in recipes:
        if recipe.function is _known_already:
            found[recipe] = None
        found |= dict.fromkeys(needed_by([arg for arg in recipe.args if isinstance(arg, Recipe)]))
    return list(found)


def carried_out(recipe: Recipe, here: Any, known: dict[Recipe, Any] | None = None) -> Any:
    """What a recipe makes of the data `here`; parts of it that occur twice are made once."""
    known = {} if known is None else known
    if recipe not in known:
        args = [carried_out(arg, here, known) if isinstance(arg, Recipe) else arg for arg in recipe.args]
        known[recipe] = recipe.function(*(here if arg is HERE else arg for arg in args))
    return known[recipe]


class Places(Protocol):
    """Where parts of the data lie."""

    def held(self, recipe: Recipe) -> Recipe:
        """The same, made once and for all: what depends on it need not make it again."""
        ...

    def totals(self, questions: Sequence[Recipe]) -> list[Any]:
        """For each question the sum of what it makes of every part: arrays of integers, or tuples of such."""
        ...


class Spread:
    """Something with an entry for every trajectory, wherever they lie.

    Two of them are equal if they are made in the same way.
    """

    def __init__(self, places: Places, recipe: Recipe) -> None:
        self.places = places
        self.recipe = recipe

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spread) and self.recipe == other.recipe

    def __hash__(self) -> int:
        return hash(self.recipe)


class SpreadLabels(Spread):
    """A label in 0..n-1 for every trajectory, -1 for none."""

    def __init__(self, places: Places, recipe: Recipe, n: int) -> None:
        super().__init__(places, recipe)
        self.n = n


Labels = Any  # one label for every trajectory, -1 for none: an array (n,) of integers, or `SpreadLabels`


def summed(function: Callable[..., Answer]) -> Callable[..., Answer]:
    """Marks a count: of what is spread, it is the sum over all places. What is spread comes first among the arguments.

    The same arguments give integers of the same shape in every place.
    """

    @wraps(function)
    def over_all(first: Any, *args: Any) -> Answer:
        if not isinstance(first, Spread):
            return function(first, *args)
        answer: Answer = first.places.totals([Recipe(over_all, first, *args)])[0]
        return answer

    return over_all


# -- labels: here or spread, the same functions make them and count them ------------------------------------------


def renamed(label: Labels, names: Ints) -> Labels:
    """Label v becomes names[v]; -1 stays -1."""
    if isinstance(label, SpreadLabels):
        if label.recipe.function is renamed:  # once will do
            before, first = label.recipe.args
            return SpreadLabels(label.places, Recipe(renamed, before, np.append(names, -1)[first]), _top(names))
        return SpreadLabels(label.places, Recipe(renamed, label, names), _top(names))
    return np.append(names, -1)[label]


def paired(first: Labels, second: Labels, n_second: int) -> Labels:
    """One label for each pair of labels, in the order of the pairs: first * n_second + second; -1 where one is."""
    if isinstance(first, SpreadLabels):
        return SpreadLabels(first.places, Recipe(paired, first, second, n_second), first.n * n_second)
    return np.where((first >= 0) & (second >= 0), first.astype(np.int64) * n_second + second, -1)


def below(label: Labels, n: int) -> Labels:
    """The labels below n; -1 for the others."""
    if isinstance(label, SpreadLabels):
        return renamed(label, np.where(np.arange(label.n) < n, np.arange(label.n), -1))
    return np.where(label < n, label, -1)


def n_labels(label: Labels) -> int:
    """All labels lie below this number."""
    return label.n if isinstance(label, SpreadLabels) else int(label.max(initial=-1)) + 1


@summed
def tally(label: Labels, n: int) -> NDArray[np.int64]:
    """How many trajectories have each of the labels 0..n-1."""
    return np.bincount(label[label >= 0], minlength=n)


def tallies(labels: Sequence[Labels]) -> list[NDArray[np.int64]]:
    """The same for labels of several kinds, asked for all at once; up to the largest label that there may be."""
    if labels and isinstance(labels[0], SpreadLabels):
        found: list[NDArray[np.int64]] = labels[0].places.totals([Recipe(tally, label, label.n) for label in labels])
        return found
    return [tally(label, n_labels(label)) for label in labels]


def _top(names: Ints) -> int:
    return int(names.max(initial=-1)) + 1
