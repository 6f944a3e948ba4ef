"""A model with fewer states, what that costs, and embeddings of observations."""

import numpy as np
import pytest
from feature_world import feature_data

import craftrl
from craftrl import CRAFT, ClassifierOracle, CoordinateOracle, Partition
from craftrl.core.labels import n_labels
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.estimators import states
from shipped import fitted, network, rows_of, tree


@pytest.fixture(scope="module")
def model():
    return fitted(CRAFT(ClassifierOracle(tree(), folds=2)), feature_data(400).tau)


@pytest.fixture(scope="module")
def x():
    return rows_of("features")[0]


def test_fewer_states_are_joined_ones_and_the_model_works_as_any_other(model, x, tmp_path):
    before, n = model.transform(x), model.n_states_total_
    fewer = model.states_at(n - 1)
    state_of = next(names for names, _ in model.merges_ if n_labels(names) == n - 1)
    assert fewer.n_states_total_ == n - 1
    np.testing.assert_array_equal(fewer.transform(x), state_of[before])
    np.testing.assert_array_equal(fewer.labels_, state_of[model.labels_])
    np.testing.assert_array_equal(fewer.encode(x[:, 1]), state_of[before[:, 1]])
    np.testing.assert_array_equal(model.transform(x), before)  # which is left as it was
    assert f"states = {n - 1}: asked for afterwards; {n} were found" in fewer.summary()
    for step, whole in zip(fewer.trace_, model.trace_):
        assert len(step.spectra) == n - 1
        assert step.spectra.sum() == whole.spectra.sum()
        assert sum(c.size for c in step.clusters) == sum(c.size for c in whole.clusters)
        assert {s for c in step.clusters for s in (c.s_pred, c.state)} <= set(range(n - 1))
    fewer.save(tmp_path / "fewer")
    again = craftrl.load(tmp_path / "fewer")
    np.testing.assert_array_equal(again.transform(x), fewer.transform(x))
    model.save(tmp_path / "model")
    again = craftrl.load(tmp_path / "model")
    assert again.rounds_ == model.rounds_
    assert len(again.merges_) == n - 1
    np.testing.assert_array_equal(again.states_at(2).labels_, model.states_at(2).labels_)


def test_states_are_joined_again_as_if_all_at_once(model):
    n = model.n_states_total_
    twice, once = model.states_at(n - 1).states_at(2), model.states_at(2)
    np.testing.assert_array_equal(twice.labels_, once.labels_)
    costs = [nats for _, nats in model.merges_]  # of n - 1 states, of n - 2, ..., of one
    assert twice.merges_[-1][1] == pytest.approx(costs[-1] - costs[-2])
    assert once.merges_[-1][1] == pytest.approx(costs[-1] - costs[-2])
    assert (model.states_at(1).labels_ == 0).all()
    np.testing.assert_array_equal(model.states_at(n).labels_, model.labels_)


def test_states_that_there_are_not_and_models_that_do_not_know_are_refused(model):
    for k in (model.n_states_total_ + 1, 0, 2.5, "3"):
        with pytest.raises(
            InvalidParameterError, match=r"k must be an integer from 1 to \d; .*none can be added afterwards"
        ):
            model.states_at(k)
    bits = fitted(CRAFT(CoordinateOracle(), alpha=1.0, eta=0.1, nu=0.1), *rows_of("bits"))
    with pytest.raises(InvalidParameterError, match="states_at needs a model that knows what joining states costs"):
        bits.states_at(1)


def test_a_network_embeds_observations_and_trajectories(model, x, tmp_path):
    of_network = fitted(CRAFT(network()), *rows_of("features"))
    z = of_network.embed(x)
    assert z.shape[:2] == x.shape[:2]
    assert z.dtype == np.float64
    of_network.save(tmp_path / "model")
    for again in (of_network, craftrl.load(tmp_path / "model"), of_network.states_at(1)):
        np.testing.assert_allclose(again.embed(x[:, 2]), z[:, 2], atol=1e-5)
    with pytest.raises(InvalidDataError, match=r"x must have shape \(n, 12\) or \(n, H, 12\)"):
        of_network.embed(x[..., :3])
    with pytest.raises(InvalidParameterError, match=r"embed needs a network .* one encoder that has no embedding"):
        model.embed(x)


def test_parts_of_the_partition_are_settings_that_reach_it_and_are_saved(tmp_path, monkeypatch):
    asked, find_states = [], states.find_states
    monkeypatch.setattr(states, "find_states", lambda *a, **given: asked.append(given) or find_states(*a, **given))
    tau, how = feature_data(60).tau, Partition(smooth=False, drives=False, starts=False)
    model = fitted(CRAFT(ClassifierOracle(tree(), folds=2, repeats=1), partition=how), tau)
    fitted(CRAFT(ClassifierOracle(tree(), folds=2, repeats=1)), tau)
    assert [[one[part] for part in ("smooth", "drives", "starts")] for one in asked] == [
        [on] * 3 for on in (False, True)
    ]
    assert [one["aligned"] for one in asked] == [True, True]
    model.save(tmp_path / "model")
    assert craftrl.load(tmp_path / "model").partition == how
    with pytest.raises(InvalidParameterError, match="drives must be True or False; 1 was given"):
        Partition(drives=1)
