"""What every learner of this package offers after `fit`: one encoder per step, indexed from 1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from craftrl.core.encoders import Encoder
from craftrl.data.dataset import TrajectoryDataset
from craftrl.errors import InvalidDataError, InvalidParameterError, NotFittedError

Ints = NDArray[np.integer]
Item = TypeVar("Item")

__all__ = ["ByStep", "Learner", "check_dataset"]


class ByStep(Sequence[Item], Generic[Item]):
    """One item per time step, indexed as in the paper: from 1 to H."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = tuple(items)

    @overload
    def __getitem__(self, h: int) -> Item: ...
    @overload
    def __getitem__(self, h: slice) -> Sequence[Item]: ...
    def __getitem__(self, h: int | slice) -> Item | Sequence[Item]:
        if isinstance(h, slice):
            raise InvalidParameterError("Ask for one step h at a time, or iterate over all of them.")
        if not 1 <= h <= len(self._items):
            raise InvalidParameterError(
                f"h must be one of 1..{len(self._items)}; h = {h} was given; count from 1, as the paper does."
            )
        return self._items[h - 1]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def __repr__(self) -> str:
        return f"ByStep({list(self._items)})"


class Learner:
    """What every learner of this package offers after `fit`: one encoder per step."""

    encoders_: ByStep[Encoder]
    obs_shape_: tuple[int, ...]

    def encode(self, x: ArrayLike, h: int) -> Ints:
        """phi'_h(x): the learned states of observations x (n, *obs) at step h, counted from 1."""
        if not hasattr(self, "encoders_"):
            raise NotFittedError(f"{type(self).__name__} must be fitted before it can encode; call fit(tau) first.")
        encoder = self.encoders_[h]
        array = np.asarray(x)
        if array.ndim == 0 or array.shape[1:] != self.obs_shape_:
            wanted = ", ".join(map(str, ("n", *self.obs_shape_)))
            raise InvalidDataError(
                f"Observations must have shape ({wanted}), as in the data fitted; shape {array.shape} was given; put a "
                "single one into a batch with x[None]."
            )
        return encoder(array)


def check_dataset(tau: TrajectoryDataset) -> None:
    """Raise unless tau is a dataset."""
    if not isinstance(tau, TrajectoryDataset):
        raise InvalidDataError(
            f"fit takes a TrajectoryDataset; {type(tau).__name__} was given; build one with "
            "TrajectoryDataset.from_arrays([x_a, x_b])."
        )
