"""Few and long recordings: `fit` learns from windows of them, and whatever follows takes the recordings as given."""

import numpy as np
import pytest

from craftrl import CRAFT, AssumptionWarning, CoordinateOracle, InvalidDataError, load
from craftrl.estimators.verdict import verdict
from craftrl.evaluation import accuracy
from shipped import fitted, network, rows_of
from small_worlds import flips, walked


def bits(n, chances, seed):
    """Entry 2 is the state, which an agent flips more or less often; the others are coins."""
    x = np.random.default_rng(seed).integers(0, 2, (n, 5))
    x[:, 2] = walked(1, flips(chances), n, seed=seed)[0]
    return x


@pytest.fixture(scope="module")
def recordings():
    return [[bits(2000, (0.8, 0.3), 0)], [bits(1600, (0.2, 0.6), 1)]]


@pytest.fixture(scope="module")
def model(recordings):
    return CRAFT().fit(recordings)


def test_one_recording_each_is_enough(recordings, model):
    (a,), (b,) = recordings
    assert isinstance(model.oracle_, CoordinateOracle)
    assert model.encoder_.index == 2
    assert model.labels_.shape == (2, 2000)
    assert accuracy(model.labels_[0], a[:, 2]) == accuracy(model.labels_[1, :1600], b[:, 2]) == 1
    assert (model.labels_[1, 1600:] == -1).all()
    assert accuracy(model.transform([a[None]])[0], a[:, 2]) == 1
    choice = {choice.parameter: choice for choice in model.choices_}
    assert choice["window"].value == 20
    assert "1 trajectory of 2000 steps, so that 100 + 80 windows" in choice["window"].why
    assert choice["stationary"].value
    assert "horizon" not in choice


def test_steps_of_windows_mean_nothing_and_no_finding_names_one():
    model = CRAFT().fit([[bits(600, (0.8, 0.3), 0)], [bits(600, (0.2, 0.6), 1)]])  # 30 windows each
    assert not [finding.kind for finding in model.trace_.findings if finding.steps]


def test_what_follows_takes_the_recordings(recordings, model, tmp_path):
    assert model.sizes_fitted() == (180, 20)
    assert np.array_equal(model.windows_[:, 2], [20] * 180)
    found = model.diagnose(recordings, n_resamples=1)
    assert len(found.n_states) == 20
    given = "It was given 180 windows of recordings of 2 agents."
    assert verdict(model).found == f"CRAFT found {model.n_states_total_} states. {given}"
    text = model.summary()
    assert "state  frames   share" in text
    assert sum(int(line.split()[1]) for line in text.splitlines() if line.endswith("%")) == 3600
    model.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert np.array_equal(again.labels_, model.labels_)
    assert again.diagnose(recordings, n_resamples=1).score == found.score
    with pytest.raises(InvalidDataError, match="must be that which the model was fitted to, 2 trajectories of 2000"):
        model.diagnose([recordings[0], [recordings[1][0][:1300]]])


def test_networks_learn_from_windows_and_labels_come_back_in_the_order_of_the_rows():
    x, agent = rows_of("features")
    long = np.concatenate(x[agent == 0]), np.concatenate(x[agent == 1])
    parts = [part[start : start + 120] for start in (0, 120) for part in long]  # here the agents take turns
    model = fitted(CRAFT(network()), parts, ["z", "a", "z", "a"])
    assert model.labels_.shape == (4, 120)
    assert model.log_odds([part[None, :20] for part in parts]).shape == (4, 19, 1)
    for row, part in enumerate(parts):
        windows = model.windows_[model.windows_[:, 0] == row]
        assert windows[:, 1].tolist() == list(range(0, 120, 20))
        assert np.mean(model.labels_[row] == model.encode(part)) > 0.5  # those of the states that were found


@pytest.mark.parametrize("off", [{"window": None}, {"stationary": False}])
def test_windows_can_be_left_out(off):
    x = [[bits(60, (0.8, 0.3), k)] for k in (0, 1)]
    model = CRAFT("coordinates", alpha=1, eta=0.1, nu=0.1, coupling="independent", **off)
    with pytest.warns(AssumptionWarning):
        model.fit(x)
    assert model.labels_.shape == (2, len(model.encoders_))
    assert not hasattr(model, "windows_")


def test_ordinary_data_stays_as_it_is():
    rng = np.random.default_rng(0)
    x = [[bits(8, (0.8 - 0.5 * k, 0.3), int(rng.integers(2**31))) for _ in range(200)] for k in (0, 1)]
    model = CRAFT().fit(x)
    assert model.labels_.shape == (400, 8)
    assert not any(choice.parameter == "window" for choice in model.choices_)
