"""A model with fewer states, what that costs, and embeddings of observations."""

import numpy as np
import pytest
from feature_world import feature_data
from report_models import Page

import craftrl
from craftrl import CRAFT, ClassifierOracle, CoordinateOracle, Partition
from craftrl.core.labels import n_labels
from craftrl.diagnostics.findings import judged
from craftrl.errors import InvalidDataError, InvalidParameterError
from shipped import fitted, network, rows_of, tree


@pytest.fixture(scope="module")
def model():
    return fitted(CRAFT(ClassifierOracle(tree(), folds=2)), feature_data(400).tau)


@pytest.fixture(scope="module")
def x():
    return rows_of("features")[0]


def test_fewer_states_are_joined_ones_and_the_model_works_as_any_other(model, x, tmp_path):
    before = model.transform(x)
    fewer = model.states_at(3)
    state_of = next(names for names, _ in model.merges_ if n_labels(names) == 3)
    assert model.n_states_total_ == 4
    assert fewer.n_states_total_ == 3
    np.testing.assert_array_equal(fewer.transform(x), state_of[before])
    np.testing.assert_array_equal(fewer.labels_, state_of[model.labels_])
    np.testing.assert_array_equal(fewer.encode(x[:, 1]), state_of[before[:, 1]])
    np.testing.assert_array_equal(model.transform(x), before)  # which is left as it was
    assert "states = 3: asked for afterwards; 4 were found" in fewer.summary()
    for step, whole in zip(fewer.trace_, model.trace_):
        assert len(step.spectra) == 3
        assert step.spectra.sum() == whole.spectra.sum()
        assert sum(c.size for c in step.clusters) == sum(c.size for c in whole.clusters)
        assert {s for c in step.clusters for s in (c.s_pred, c.state)} <= {0, 1, 2}
    fewer.save(tmp_path / "fewer")
    again = craftrl.load(tmp_path / "fewer")
    np.testing.assert_array_equal(again.transform(x), fewer.transform(x))
    assert ("What fewer states would cost" in Page(tmp_path, fewer).numbers["facts"]) == bool(fewer.merges_)


def test_states_are_joined_again_as_if_all_at_once(model):
    twice, once = model.states_at(3).states_at(2), model.states_at(2)
    np.testing.assert_array_equal(twice.labels_, once.labels_)
    assert twice.merges_[-1][1] == pytest.approx(once.merges_[-1][1])
    assert (model.states_at(1).labels_ == 0).all()
    np.testing.assert_array_equal(model.states_at(4).labels_, model.labels_)


def test_rounds_and_merges_are_saved(model, tmp_path):
    model.save(tmp_path / "model")
    again = craftrl.load(tmp_path / "model")
    assert again.rounds_ == model.rounds_
    assert len(again.merges_) == 3
    for (mine, cost), (theirs, same) in zip(model.merges_, again.merges_):
        np.testing.assert_array_equal(mine, theirs)
        assert cost == same
    np.testing.assert_array_equal(again.states_at(2).labels_, model.states_at(2).labels_)


@pytest.mark.parametrize("k", [5, 0, 2.5, "3"])
def test_states_that_there_are_not_are_refused(model, k):
    with pytest.raises(
        InvalidParameterError, match=r"k must be an integer from 1 to 4; .*none can be added afterwards"
    ):
        model.states_at(k)


def test_models_that_do_not_know_what_joining_costs_say_so():
    bits = fitted(CRAFT(CoordinateOracle(), alpha=1.0, eta=0.1, nu=0.1), *rows_of("bits"))
    with pytest.raises(InvalidParameterError, match="states_at needs a model that knows what joining states costs"):
        bits.states_at(1)


def test_a_network_embeds_observations_and_trajectories(x, tmp_path):
    agent = rows_of("features")[1]
    model = fitted(CRAFT(network()), x, agent)
    z = model.embed(x)
    assert z.shape[:2] == x.shape[:2]
    assert z.dtype == np.float64
    np.testing.assert_allclose(model.embed(x[:, 2]), z[:, 2], atol=1e-5)
    model.save(tmp_path / "model")
    np.testing.assert_allclose(craftrl.load(tmp_path / "model").embed(x), z, atol=1e-5)
    np.testing.assert_allclose(model.states_at(1).embed(x), z, atol=1e-5)
    with pytest.raises(InvalidDataError, match=r"x must have shape \(n, 12\) or \(n, H, 12\)"):
        model.embed(x[..., :3])


def test_models_without_an_embedding_say_so(model, x):
    with pytest.raises(InvalidParameterError, match=r"embed needs a network .* one encoder that has no embedding"):
        model.embed(x)


@pytest.mark.xfail(strict=False, reason="the threshold moved; tables by spell of time are to come")
def test_states_that_tell_less_of_the_agents_than_the_log_odds_are_warned_of(model):
    tau = feature_data(400).tau
    fused = np.where(model.labels_ < 2, 0, model.labels_ - 1)
    found = {
        name: judged(model.trace_, tau, labels, 0.1, None, None, one_encoder=True).findings
        for name, labels in (("right", model.labels_), ("fused", fused), ("one", 0 * fused))
    }
    assert not any(finding.kind == "states tell less" for finding in found["right"])
    told = next(f for f in found["one"] if f.kind == "states tell less")
    assert told.numbers["share"] < 0.05
    assert str(told).startswith("The states hold ")


def test_parts_of_the_partition_are_settings_that_reach_it_and_are_saved(tmp_path, monkeypatch):
    from craftrl.estimators import states

    asked, find_states = [], states.find_states
    monkeypatch.setattr(states, "find_states", lambda *a, **given: asked.append(given) or find_states(*a, **given))
    tau, how = feature_data(100).tau, Partition(smooth=False, drives=False)
    model = fitted(CRAFT(ClassifierOracle(tree(), folds=2), partition=how), tau)
    fitted(CRAFT(ClassifierOracle(tree(), folds=2)), tau)
    assert asked == [{"smooth": on, "drives": on, "aligned": True} for on in (False, True)]
    model.save(tmp_path / "model")
    assert craftrl.load(tmp_path / "model").partition == how
    with pytest.raises(InvalidParameterError, match="partition must be a Partition or None; 'smooth' was given"):
        CRAFT(partition="smooth").fit(tau)
    with pytest.raises(InvalidParameterError, match="drives must be True or False; 1 was given"):
        Partition(drives=1)
