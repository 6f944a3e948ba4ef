"""A fit that is interrupted after its log-odds goes on: heads that were trained are not trained again."""

import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))

from feature_world import feature_data  # noqa: E402

from craftrl import CRAFT  # noqa: E402
from craftrl.errors import InvalidDataError  # noqa: E402
from craftrl.oracles.network import NeuralOracle, Training, training  # noqa: E402
from craftrl.oracles.network.checkpoints import Finished  # noqa: E402
from craftrl.oracles.network.heads import Heads  # noqa: E402
from craftrl.oracles.network.trunks import Standardise  # noqa: E402

TRAINING = Training(epochs=6, patience=3, batch=128, lr=5e-3, device="cpu")
BOUNDS = {"alpha": 0.5, "eta": 0.05}


@pytest.fixture(scope="module")
def tau():
    return feature_data(200, horizon=3).tau


def fit(tau, folder):
    oracle = NeuralOracle(dim=16, networks=1, training=TRAINING.but(checkpoints=folder), heads=TRAINING)
    return CRAFT(oracle, **BOUNDS, stationary=True).fit(tau)


def learned(model):
    """All weights and labels of a model, as bytes."""
    encoders = [*model.encoders_, model.encoder_]
    modules = [part for e in encoders if hasattr(e, "head") for part in (e.trunk, e.head)]
    weights = [w.numpy().tobytes() for module in modules for w in module.state_dict().values()]
    return model.labels_.tobytes(), model.bounds_, weights


class Count:
    """How often heads are trained; the one after `most` is interrupted."""

    def __init__(self, monkeypatch, most=10**6):
        self.names, self.most, original = [], most, Heads._together

        def counted(*given):
            if len(self.names) == self.most:
                raise KeyboardInterrupt
            self.names.append(given[-1])
            return original(*given)

        monkeypatch.setattr(Heads, "_together", counted)


@pytest.fixture(scope="module")
def whole(tau):
    with pytest.MonkeyPatch.context() as patch:
        count = Count(patch)
        return learned(fit(tau, None)), count.names


def test_an_interrupted_fit_trains_the_other_heads_and_ends_the_same(tau, whole, tmp_path, monkeypatch):
    undisturbed, names = whole
    most = len(names) // 2
    with monkeypatch.context() as patch:
        Count(patch, most)
        with pytest.raises(KeyboardInterrupt):
            fit(tau, tmp_path)
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.pt")}
    with monkeypatch.context() as patch:
        count = Count(patch)
        assert learned(fit(tau, tmp_path)) == undisturbed
        assert count.names == names[most:]
    finished = [path for path in kept if path.parent.parent.name == "heads" or path.name.startswith("log-odds")]
    assert len(finished) == most + 1
    assert all(path.stat().st_mtime_ns == kept[path] for path in finished), "what is finished is not written again"

    Count(monkeypatch, most=0)  # a third time nothing is left to be trained
    monkeypatch.setattr(training._Passes, "_parts", _no_gradients(training._Passes._parts))
    assert learned(fit(tau, tmp_path)) == undisturbed
    file = next((tmp_path / "heads").glob("*/*.pt"))
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(InvalidDataError, match=rf"{file.name} cannot be read; .*delete that one file"):
        fit(tau, tmp_path)


def _no_gradients(original):
    def parts(*given):
        assert not torch.is_grad_enabled(), "a minibatch is learned from"
        return original(*given)

    return parts


def test_checkpoints_of_other_data_are_refused(tmp_path):
    """The same sizes and settings, other videos: nothing of the first fit may be taken for the second."""
    for seed, said in ((0, None), (1, r"belongs to other settings or data")):
        prepared = NeuralOracle(dim=8, networks=1, training=TRAINING.but(checkpoints=tmp_path, epochs=1)).prepare(
            feature_data(60, horizon=3, seed=seed).tau
        )
        if said is None:
            prepared.pairs()
        else:
            with pytest.raises(InvalidDataError, match=said):
                prepared.pairs()


def test_heads_are_known_by_all_that_they_learn_from_and_kept_up_to_a_size(tmp_path, monkeypatch):
    z = torch.randn(40, 8, generator=torch.Generator().manual_seed(0))
    label, scale = np.arange(40) % 2, Standardise((8,))
    count = Count(monkeypatch)
    finished = Finished(tmp_path, room=60_000)

    def asked(z=z, label=label, settings=TRAINING, name="one"):
        before = len(count.names)
        found = Heads(settings, scale, finished).cross_fitted(z, label, 2, name)
        return len(count.names) - before, found

    new, first = asked()
    again, second = asked()
    assert (new, again) == (1, 0)
    np.testing.assert_array_equal(first, second)
    other = z.clone()
    other[3, 5] += 1e-6
    for question in ({"z": other}, {"label": 1 - label}, {"settings": TRAINING.but(seed=1)}, {"name": "two"}):
        assert asked(**question)[0] == 1
    kept = len(list(tmp_path.rglob("*.pt")))
    assert all(asked(label=np.where(np.arange(40) == i, 1 - label, label))[0] == 1 for i in range(10))
    files = list(tmp_path.rglob("*.pt"))
    assert kept < len(files) < kept + 10
    assert sum(file.stat().st_size for file in files) < 60_000 + 10_000
