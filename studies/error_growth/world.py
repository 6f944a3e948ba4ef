"""A world in which DRAFT's mistakes feed the next ones, and the corruption that sets them off.

Paper: Section 3.1.1
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.data import TrajectoryDataset
from craftrl.envs import BitsExBMDP, ExBMDP, GroundTruth, MarkovPolicy
from craftrl.envs.collection import Collection, sample_latent_paths

__all__ = ["CreepingExBMDP", "collect_corrupted"]


class CreepingExBMDP(BitsExBMDP):
    """The toy world with another adversarial factor: s XOR e^1 is almost the state at first, and goes wrong bit by bit.

    e^1 is 0 at h = 1, switches on once and stays on: Pr(e^1_h = 1) = first_share * growth^(h-2), at most 1/2.

    Suppose that the trajectories with e^1_h = 1 are labelled wrongly at h. Among those labelled s, they come
    from the other state, and the agents' preferences for its successors are the other way round: a classifier of
    the agents at h+1 does better if it is wrong on them, too. So s XOR e^1 beats the true encoder, although it
    is wrong on the newly switched-on trajectories as well, as long as growth < 2 or so. Mistakes do not stay, they
    multiply by `growth`. f_h, trained on all pairs whatever their labels, has no such reason.

    Paper: Section 3.1.1
    """

    def __init__(self, horizon: int, n_features: int, seed: int, first_share: float, growth: float) -> None:
        super().__init__(horizon, n_features, seed)
        h = np.arange(2, self.H + 1)
        self.wrong = np.concatenate([[0.0], np.minimum(first_share * growth ** (h - 2.0), 0.5)])  # Pr(e^1_h = 1)

    def sample_noise(self, n: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        e_1 = super().sample_noise(n, rng)
        e_1[:, 0] = 0
        return e_1

    def step_noise(self, e_h: NDArray[Any], h: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        e_next = super().step_noise(e_h, h, rng)
        now, then = self.wrong[h - 1], self.wrong[h]
        e_next[:, 0] = e_h[:, 0] | (rng.random(len(e_h)) < (then - now) / (1 - now))
        return e_next

    @cached_property
    def _marginals(self) -> NDArray[np.floating]:
        marginals = super()._marginals.copy()
        marginals[:, 0] = self.wrong
        return marginals

    def opposed_policies(self) -> tuple[MarkovPolicy, MarkovPolicy]:
        """Agent A moves to state 0 first and then likes to switch; agent B moves to 1 and likes to stay."""
        return self._policy(start=0.75, stay=0.25), self._policy(start=0.25, stay=0.75)

    def _policy(self, start: float, stay: float) -> MarkovPolicy:
        later = np.array([[stay, 1 - stay], [1 - stay, stay]])
        return MarkovPolicy([np.array([[start, 1 - start]]), *([later] * (self.H - 2))])


def collect_corrupted(
    world: ExBMDP,
    policies: tuple[MarkovPolicy, MarkovPolicy],
    n: int,
    bad_share: float,
    seed: Any,
) -> Collection:
    """n trajectories per agent; in a share `bad_share` of each agent's, e^1 is switched on at h = 2 by an adversary.

    The adversary picks them by what they do: in tau_A those in state 1, in tau_B those in state 0. Their states stay as
    they are; only their noise is unlikely. To an encoder that is wrong on them the agents look more different
    than they are.

    Paper: Section 3.1.1, the samples D_bad and D'_bad
    """
    latent_rng, noise_rng, emission_rng = np.random.default_rng(seed).spawn(3)
    paths = [sample_latent_paths(world, policy, n, latent_rng) for policy in policies]
    states = np.concatenate([s for s, _ in paths])
    chosen = [k * n + np.flatnonzero(s[:, 1] == 1 - k)[: round(bad_share * n)] for k, (s, _) in enumerate(paths)]
    bad = np.concatenate(chosen)
    x = np.empty((len(states), world.H, *world.obs_shape), dtype=world.obs_dtype)
    e_h = world.sample_noise(len(states), noise_rng)
    for h in range(1, world.H + 1):
        x[:, h - 1] = world.emit(states[:, h - 1], e_h, h, emission_rng)
        if h < world.H:
            e_h = world.step_noise(e_h, h, noise_rng)
            e_h[bad, 0] = 1
    tau = TrajectoryDataset.from_arrays([x[:n], x[n:]])
    return Collection(tau, GroundTruth(states, np.concatenate([a for _, a in paths])))
