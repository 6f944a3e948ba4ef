"""Few and long recordings: `fit` learns from windows of them, and whatever follows takes the recordings as given."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from craftrl import (
    CRAFT,
    AssumptionWarning,
    CoordinateOracle,
    InvalidDataError,
    InvalidParameterError,
    NeuralOracle,
    Training,
    load,
)
from craftrl.report import write_report

CELLS = 4


def recording(n, to_the_right, seed, ground=30):
    """A figure that walks on four cells as its agent likes, and another that walks by itself: frames and cells."""
    rng = np.random.default_rng(seed)
    x, cell = np.full((n, 12, 12, 3), ground, np.uint8), np.empty(n, dtype=np.int64)
    me, other = 1, 0
    for t in range(n):
        cell[t] = me
        x[t, 1:4, 3 * me : 3 * me + 3] = (230, 60, 60)
        x[t, 7:10, 3 * other : 3 * other + 3] = (60, 200, 230)
        me = int(np.clip(me + (1 if rng.random() < to_the_right else -1), 0, CELLS - 1))
        other = (other + int(rng.integers(-1, 2))) % CELLS
    return x, cell


def right(labels, cells):
    """The share of frames that a one-to-one naming of the states gets right."""
    counts = np.zeros((CELLS, labels.max() + 1))
    np.add.at(counts, (cells.ravel(), labels.ravel()), 1)
    return counts[linear_sum_assignment(-counts)].sum() / labels.size


@pytest.fixture(scope="module")
def recordings():
    return recording(1800, 0.75, 0), recording(1400, 0.3, 1)


@pytest.fixture(scope="module")
def model(recordings):
    (a, _), (b, _) = recordings
    return CRAFT(NeuralOracle(training=Training(epochs=30))).fit([[a], [b]])


@pytest.mark.xfail(strict=False, reason="sixteen different frames alone: the partition of so few cells is not settled")
def test_one_recording_each_is_enough(recordings, model):
    (_, cell_a), (_, cell_b) = recordings
    assert model.n_states_total_ == CELLS
    assert model.labels_.shape == (2, 1800)
    assert right(model.labels_[0], cell_a) > 0.99
    assert right(model.labels_[1, :1400], cell_b) > 0.99
    assert (model.labels_[1, 1400:] == -1).all()
    new, cells = recording(500, 0.5, 7)
    assert right(model.transform([new[None]])[0], cells) > 0.9
    assert np.array_equal(model.encode(new), model.transform([new[None]])[0])
    choice = {choice.parameter: choice for choice in model.choices_}
    assert choice["window"].value == 20
    assert "1 trajectory of 1800 steps, so that 90 + 70 windows" in choice["window"].why
    assert choice["stationary"].value
    assert "horizon" not in choice


def test_what_follows_takes_the_recordings(recordings, model, tmp_path):
    given = [[recordings[0][0]], [recordings[1][0]]]
    assert model.sizes_fitted() == (160, 20)
    assert np.array_equal(model.windows_[:, 2], [20] * 160)
    diagnosis = model.diagnose(given)
    assert len(diagnosis.n_states) == 20
    text = model.summary()
    assert "state  frames   share" in text
    assert sum(int(line.split()[1]) for line in text.splitlines() if line.endswith("%")) == 3200
    model.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert np.array_equal(again.labels_, model.labels_)
    assert again.diagnose(given).score == diagnosis.score
    write_report(again, tmp_path / "page.html", given)
    write_report(again, tmp_path / "without.html")
    assert (tmp_path / "page.html").stat().st_size > 10_000
    with pytest.raises(InvalidDataError, match="must be that which the model was fitted to, 2 trajectories of 1800"):
        model.diagnose([given[0], [given[1][0][:1300]]])


@pytest.mark.xfail(strict=False, reason="so few frames are not told apart")
def test_rows_in_any_order(recordings):
    """Labels come back in the order of the rows given; here the agents take turns."""
    parts = [recordings[0][0][:300], recordings[1][0][:300], recordings[0][0][300:600], recordings[1][0][300:600]]
    fitted = CRAFT(NeuralOracle(training=Training(epochs=1))).fit(parts, ["z", "a", "z", "a"])
    assert fitted.labels_.shape == (4, 300)
    for row, x in enumerate(parts):
        windows = fitted.windows_[fitted.windows_[:, 0] == row]
        assert windows[:, 1].tolist() == list(range(0, 300, 20))
        assert np.mean(fitted.labels_[row] == fitted.encode(x)) > 0.5  # those of the states that were found


def bits(n, flips, seed):
    """Entry 2 is the state, which an agent flips more or less often; the others are coins."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, (n, 5))
    x[0, 2] = 0
    for t in range(1, n):
        x[t, 2] = x[t - 1, 2] ^ (rng.random() < flips[x[t - 1, 2]])
    return x


def test_finite_classes_learn_from_windows_too():
    a, b = bits(2000, (0.8, 0.3), 0), bits(2000, (0.2, 0.6), 1)
    model = CRAFT().fit([[a], [b]])
    assert isinstance(model.oracle_, CoordinateOracle)
    assert model.encoder_.index == 2
    assert model.labels_.shape == (2, 2000)
    assert right_bit(model.labels_, np.stack([a, b])[..., 2])
    assert right_bit(model.transform([a[None]]), a[None, :, 2])


def right_bit(labels, bit):
    return np.array_equal(labels, bit) or np.array_equal(labels, 1 - bit)


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


@pytest.mark.parametrize("window", [1, 2.5, "long", True])
def test_a_window_must_be_a_length(window):
    with pytest.raises(InvalidParameterError, match="window must be"):
        CRAFT(window=window).fit([[bits(60, (0.8, 0.3), k)] for k in (0, 1)])


def test_a_window_needs_one_encoder():
    with pytest.raises(InvalidParameterError, match="Windows need one encoder for all steps"):
        CRAFT(window=10, stationary=False).fit([[bits(60, (0.8, 0.3), k)] for k in (0, 1)])
