"""What must not matter does not: the order of trajectories, of features, of agents."""

import warnings

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from craftrl import CRAFT, AssumptionWarning, CoordinateOracle, TrajectoryDataset
from craftrl.envs import BitsExBMDP, collect

BOUNDS = {"alpha": np.log(3), "eta": 0.2, "nu": 5 / 32}
seeds = st.integers(0, 500)
couplings = st.sampled_from(["independent", "chain", "markov"])


def data(seed: int, n: int = 120) -> list[np.ndarray]:
    """Two agents' bits: few of them, and by default so little data that failures are among the cases."""
    world = BitsExBMDP(horizon=5, n_features=7, seed=seed)
    tau = collect(world, world.paper_policies(), n, seed=seed).tau
    x = np.stack([tau.at(h) for h in range(1, 6)], axis=1)
    return [x[tau.agent == k] for k in range(2)]


def fit(arrays, coupling):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        return CRAFT(CoordinateOracle(), **BOUNDS, coupling=coupling, relabel=False).fit(
            TrajectoryDataset.from_arrays(arrays)
        )


@settings(max_examples=20)
@given(seeds, couplings)
def test_order_of_features(seed, coupling):
    """Another order of the features is the same problem, as long as nothing ties: so there is data enough."""
    arrays = data(seed, n=1000)
    order = np.random.default_rng(seed).permutation(7)
    model, moved = fit(arrays, coupling), fit([x[..., order] for x in arrays], coupling)
    assume(not _ties(model) and not _ties(moved))
    pairs = [[(f.i, f.j) for f in learner.trace_.models] for learner in (model, moved)]
    named = np.append(order, -1)  # the constant encoder of h = 1 is number -1
    assume(pairs[0] == [(named[i], named[j]) for i, j in pairs[1]])  # else two pairs of features have the same loss
    assert np.array_equal(moved.labels_, model.labels_)
    features = [[phi.feature for phi in list(learner.encoders_)[1:]] for learner in (model, moved)]
    assert features[0] == [order[i] for i in features[1]]


@settings(max_examples=20)
@given(seeds, couplings)
def test_names_of_the_agents(seed, coupling):
    """Agents swapped, log-odds change sign: the first spectrum is mirrored, and the same groups are found.

    The groups are compared where every trajectory was assigned both times and every step came out well. The paper's
    scan itself is not symmetric: it gives the light bin between two runs to the one it meets first, which may make
    two clusters of one where a step finds too many states.
    """
    arrays = data(seed, n=1000)
    model, swapped = fit(arrays, coupling), fit(arrays[::-1], coupling)
    assert np.array_equal(swapped.trace_[1].spectra, model.trace_[1].spectra[:, ::-1])
    assume((model.labels_ >= 0).all() and (swapped.labels_ >= 0).all())
    assume(not _ties(model) and not _ties(swapped))
    labels = np.concatenate([swapped.labels_[1000:], swapped.labels_[:1000]])
    for h in range(5):
        assert len(set(zip(model.labels_[:, h], labels[:, h]))) == model.n_states_[h + 1] == swapped.n_states_[h + 1]


def _ties(model) -> bool:
    """A failed step returns whatever comes first, which another order changes."""
    return any(step.outcome != "ok" for step in model.trace_.steps)
