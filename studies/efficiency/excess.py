"""Excess capacity: a class of four values where two states are, in which the shortest chain is wrong for good.

Phi_h, or Phi_2 alone, holds all bits and all ordered pairs of bits, 2 x_i + x_j. The chain that starts with
(s_2, e^1) and goes on with s_3 XOR e^1, s_4 XOR e^1, ... attains the least loss of every pair: from the first code
both s_2 and e^1 can be read, so the second pair loses nothing, and later pairs are mimicked as the paper's adversary
does. A code that carries noise has unlocked the mimic, which a class of two values shuts out at h = 2. That the two
chains tie with infinite data, for agents that visit both states equally often, is computed in `population`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl import CRAFT, FiniteOracle
from craftrl.core.encoders import encode_dataset
from craftrl.core.oracle import Coupling
from craftrl.envs import collect
from craftrl.evaluation import confusion
from craftrl.paper import population_assumptions
from craftrl.paper.sweep import seed_of
from studies.efficiency.scores import by_measure, of_fit, of_samples
from studies.efficiency.spec import EXCESS, Run
from studies.efficiency.worlds import make_agents, make_world

__all__ = ["bits_and_pairs", "run_excess"]

COUPLINGS: tuple[Coupling, ...] = ("independent", "chain", "markov")
HELD_OUT = 2000  # fresh trajectories per agent, on which all encoders are scored


def _bit(x: NDArray[Any], i: int) -> NDArray[np.int64]:
    return x[:, i].astype(np.int64)


def _pair(x: NDArray[Any], i: int, j: int) -> NDArray[np.int64]:
    return 2 * x[:, i].astype(np.int64) + x[:, j]


def bits_and_pairs(n_features: int) -> list[Any]:
    """All bits, then all ordered pairs of bits as numbers 0..3."""
    pairs = [partial(_pair, i=i, j=j) for i in range(n_features) for j in range(n_features) if i != j]
    return [*(partial(_bit, i=i) for i in range(n_features)), *pairs]


def run_excess(run: Run) -> dict[str, Any]:
    """What CRAFT scored on fresh data, and the codes that its f_h are made of.

    The codes are read as kindly as can be: each stands for the state that it meets most often, so that (s, e)
    counts as right. The encoders get the one-to-one relabelling of all our tables.
    """
    world = make_world(run)
    agents = make_agents(run, world)
    known = population_assumptions(world, agents)
    alpha, eta, nu = known.alpha.value, known.eta.value, known.nu.value
    data, fresh = (collect(world, agents, n, seed=_seed(run, n, part)) for n, part in ((run.size, 0), (HELD_OUT, 1)))
    states = fresh.truth.states
    scores: dict[str, dict[str, float]] = {}
    for coupling in COUPLINGS:
        oracle = FiniteOracle(partial(_Phi, run), n_values=4)
        model = CRAFT(oracle, alpha=alpha, eta=eta, nu=nu, coupling=coupling, relabel=False).fit(data.tau)
        scores[coupling] = {**of_samples(encode_dataset(model.encoders_, fresh.tau), states), **of_fit(model, world)}
        meant = np.zeros_like(states)  # at h = 1 there is one state
        for h in range(2, world.H + 1):
            code = _Phi(run, h)[model.trace_.models[h - 2].j](fresh.tau.at(h))
            meant[:, h - 1] = _meant(code, states[:, h - 1])
        scores[f"{coupling}, raw"] = of_samples(meant, states)
    return by_measure(scores)


def _Phi(run: Run, h: int) -> list[Any]:
    everything = bits_and_pairs(run.n_features)
    return everything if EXCESS[run.world] in (h, None) else everything[: run.n_features]


def _seed(run: Run, n: int, part: int) -> Any:
    """Of the data, the same for all classes."""
    return seed_of("excess capacity", run.horizon, run.n_features, run.seed, n, part)


def _meant(code: NDArray[np.integer], state: NDArray[np.integer]) -> NDArray[np.integer]:
    """For each code the state that it meets most often."""
    return confusion(code, state).argmax(axis=1)[code]
