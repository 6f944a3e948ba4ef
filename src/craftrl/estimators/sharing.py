"""CRAFT for stationary worlds: one `encode(x)` for all steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from craftrl.data.dataset import TrajectoryDataset
from craftrl.estimators.base import ByStep, Learner
from craftrl.estimators.craft import CRAFT
from craftrl.estimators.matching import match_states
from craftrl.oracles.base import Mixed, Oracle

if TYPE_CHECKING:
    from craftrl.oracles.network import NeuralOracle, Training

__all__ = ["StationaryCRAFT"]

Ints = NDArray[np.integer]


class StationaryCRAFT(Learner):
    """CRAFT step by step, then the states of all steps matched and one network trained on all of them.

    Parameters
    ----------
    craft
        The estimator for the first part, with a `NeuralOracle`, or one in `Mixed`; give it `relabel=True` and
        `clusterer=Valleys()`.
    rounds
        How often the shared network is trained, each time on the labels read off the last one.
    agent_weight
        Weight of the agents' log-likelihood given the states, beside the classification loss.
    training
        How the shared network is trained; None takes the oracle's settings.

    Attributes
    ----------
    encoder_, encoders_
        The one encoder; `encoders_[h]` is the same for every h.
    n_states_total_, n_states_
        How many states there are, and how many of them are visited at each h, by at least half of nu of the
        trajectories.
    labels_
        int (n, H): the state of every trajectory at every step.
    craft_
        The first part, fitted.
    """

    def __init__(
        self,
        craft: CRAFT,
        *,
        rounds: int = 2,
        agent_weight: float = 0.0,
        training: Training | None = None,
    ) -> None:
        self.craft = craft
        self.rounds = rounds
        self.agent_weight = agent_weight
        self.training = training

    def fit(self, tau: TrajectoryDataset) -> StationaryCRAFT:
        """Fit the first part, and share its states over time."""
        return self.share(self.craft.fit(tau), tau)

    def share(self, craft: CRAFT, tau: TrajectoryDataset) -> StationaryCRAFT:
        """The second part alone, for a `craft` that is fitted to tau already."""
        from craftrl.oracles.network.shared import fit_shared

        oracle = _neural_part(craft.oracle)
        matching = match_states(list(craft.encoders_), craft.labels_, tau, seed=oracle.training.seed)
        trunk = getattr(craft.encoders_[2], "trunk", oracle.trunk)
        min_share = craft.bounds_.nu / 2
        fit = fit_shared(
            tau,
            matching.labels,
            trunk,
            self.training or oracle.training,
            dim=oracle.dim,
            rounds=self.rounds,
            min_share=min_share,
            agent_weight=self.agent_weight,
        )
        self.craft_ = craft
        self.matching_ = matching
        self.encoder_ = fit.encoder
        self.encoders_ = ByStep([fit.encoder] * tau.H)
        self.labels_ = fit.labels
        self.n_states_total_ = fit.n_states
        self.n_states_ = ByStep([len(fit.states_at(h, min_share)) for h in range(1, tau.H + 1)])
        self.obs_shape_ = tau.obs_shape
        return self

    def encode(self, x: ArrayLike, h: int = 1) -> Ints:
        """The state of each observation; h makes no difference in a stationary world."""
        return super().encode(x, h)


def _neural_part(oracle: Oracle) -> NeuralOracle:
    """Whose settings the shared network takes: the encoders' oracle first; the defaults where none is neural."""
    from craftrl.oracles.network import NeuralOracle

    mixed = (oracle.encoding, oracle.log_odds, oracle.separation) if isinstance(oracle, Mixed) else (oracle,)
    return next((part for part in mixed if isinstance(part, NeuralOracle)), NeuralOracle())
