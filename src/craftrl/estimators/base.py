"""What every learner of this package is: an estimator of scikit-learn's kind, with one encoder per step.

`__init__` only stores; `fit` checks, learns, changes no parameter and keeps no data; what was learned ends in `_`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from craftrl.arguments import is_whole, quoted
from craftrl.arrays import Ints, Observations
from craftrl.core.encoders import Encoder, encode_dataset
from craftrl.data.dataset import TrajectoryDataset, as_observations
from craftrl.data.inputs import as_trajectories
from craftrl.data.ranks import is_first_rank
from craftrl.data.windows import pieces
from craftrl.errors import InvalidDataError, InvalidParameterError, NotFittedError

Item = TypeVar("Item")
# An array (n, H, *obs), or one per agent; episodes, or those of each agent; a dataset; the path of one.
Trajectories = ArrayLike | Sequence[ArrayLike] | TrajectoryDataset | str | os.PathLike[str]


class ByStep(tuple[Item, ...]):
    """One item per time step, indexed as in the paper: from 1 to H."""

    def __getitem__(self, h: int) -> Item:  # type: ignore[override]
        if not (is_whole(h) and 1 <= h <= len(self)):
            raise InvalidParameterError(
                f"h must be one of 1..{len(self)}; h = {quoted(h)} was given; count from 1, as the paper does."
            )
        return super().__getitem__(int(h) - 1)

    def __reversed__(self) -> Iterator[Item]:
        return iter(tuple(self)[::-1])

    def index(self, value: object) -> int:  # type: ignore[override]
        """The first step h, counted from 1, whose item is `value`."""
        return super().index(value) + 1

    def __repr__(self) -> str:
        return f"ByStep({list(self)})"


class Learner(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """What every learner of this package offers: scikit-learn's contract, and one encoder per step.

    `fit` leaves `encoders_` (phi'_1..phi'_H, indexed from 1) and `obs_shape_`; where one encoder serves all steps,
    `encoder_` as well.
    """

    encoders_: ByStep[Encoder]
    obs_shape_: tuple[int, ...]

    def transform(self, x: Trajectories) -> Ints:
        """The learned states (n, H) of trajectories, in whatever form `fit` takes them; -1 where one is over.

        Trajectories may be shorter than those fitted; longer ones need `stationary=True`. Steps that `fit` left out,
        since few trajectories reach them, have no state either (-1).
        """
        self.check_fitted()
        cut = any(choice.parameter == "horizon" for choice in getattr(self, "choices_", ()))
        tau = as_trajectories(x, len(self.obs_shape_))
        if tau.n == 0:
            raise InvalidDataError("There must be trajectories to name the states of; none was given.")
        H = min(tau.H, len(self.encoders_))
        if tau.H > H and not cut and not hasattr(self, "encoder_"):
            raise InvalidDataError(
                f"Trajectories must have at most {H} steps, as those fitted; longer ones were given; cut them, or fit "
                "with stationary=True."
            )
        if hasattr(self, "encoder_"):
            short = pieces(tau)
            found, there = np.full((short.tau.n, short.tau.H), -1), np.arange(short.tau.H) < short.tau.lengths[:, None]
            for rows, block in short.tau.blocks():
                found[rows][there[rows]] = self.encode(block[there[rows]])
            return short.put_back(found, tau)
        states = np.full((tau.n, tau.H), -1)
        some = tau if tau.H == H else tau.first_steps(H)
        states[:, :H] = encode_dataset([partial(self.encode, h=h) for h in range(1, H + 1)], some)
        return states

    def encode(self, x: ArrayLike, h: int | None = None) -> Ints:
        """phi'_h(x): the learned states of observations x (n, *obs) at step h, counted from 1.

        A learner with one encoder for all steps needs no h.
        """
        self.check_fitted()
        encoder = self.encoder_at(h)
        array = as_observations(x, "x")
        if array.ndim == 0 or array.shape[1:] != self.obs_shape_:
            wanted = ", ".join(map(str, ("n", *self.obs_shape_)))
            single = array.shape == self.obs_shape_
            advice = "put a single one into a batch with x[None]" if single else "crop, resize or convert them"
            raise InvalidDataError(
                f"Observations must have shape ({wanted}), as in the data fitted; shape {array.shape} was given; "
                f"{advice}."
            )
        return encoder(self._as_fitted(array) if hasattr(encoder, "trunk") else array)

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Write the model to a file, whole or not at all; `craftrl.load` reads it, and no pickle is involved.

        `overwrite` replaces a model that is there already; nothing but a model is ever replaced. Where several ranks
        have fitted it together, the first of them writes, and the others do nothing.
        """
        from craftrl.estimators.saving import save_model

        self.check_fitted()
        if is_first_rank():
            save_model(self, path, overwrite)

    def encoder_at(self, h: int | None) -> Encoder:
        shared: Encoder | None = getattr(self, "encoder_", None)
        if shared is not None:
            return shared
        if h is None:
            raise InvalidParameterError(
                f"h must be one of 1..{len(self.encoders_)}: this model has an encoder for each step; none was given; "
                "call encode(x, h), or transform(x) for whole trajectories."
            )
        return self.encoders_[h]

    def _as_fitted(self, x: Observations) -> Observations:
        """Observations as a network saw them: it takes bytes for numbers in 0..255 and all others as they are."""
        fitted = np.dtype(getattr(self, "data_", {}).get("dtype", x.dtype))
        low, high = (float(x.min()), float(x.max())) if x.size else (0.0, 0.0)
        if (fitted == np.uint8) == (x.dtype == np.uint8):
            return x
        if fitted == np.uint8 and x.dtype.kind == "f" and low >= 0 and high <= 1:
            return x  # bytes are scaled to this range
        if x.dtype.kind in "iu" and fitted.kind in "biu" and low >= 0 and high <= 255:
            return x.astype(fitted)
        raise InvalidDataError(
            f"Observations must be {fitted}, as in the data fitted; {x.dtype} from {low:g} to {high:g} was given; "
            "convert them as that data was."
        )

    def check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"{type(self).__name__} must be fitted first; call fit(x, agent).")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "encoders_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.target_tags.required = True
        return tags
