"""Parts of a minibatch side by side: the same weights to the last bit, whatever number of threads there is."""

import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from craftrl.data.dataset import TrajectoryDataset  # noqa: E402
from craftrl.oracles.network import NeuralOracle, Training, heads  # noqa: E402
from craftrl.oracles.network.heads import Heads  # noqa: E402
from craftrl.oracles.network.side_by_side import (  # noqa: E402
    cores_for,
    gradients,
    noise_like,
    side_by_side,
    with_own_noise,
)
from craftrl.oracles.network.trunks import Standardise, new_trunk  # noqa: E402

CPU = torch.device("cpu")
TRAINING = Training(epochs=2, plateau=0, batch=48, device="cpu", progress=False)


@pytest.fixture
def threads(monkeypatch):
    return lambda n: monkeypatch.setenv("CRAFTRL_NUM_THREADS", str(n))


@pytest.fixture(scope="module")
def tau():
    rng = np.random.default_rng(0)
    return TrajectoryDataset.from_arrays([rng.integers(0, 256, (40, 3, 8, 8, 3), dtype=np.uint8) for _ in range(2)])


def weights(tau, **settings):
    """Those of the log-odds and of small classifiers on them, and what is read of one step."""
    prepared = NeuralOracle(dim=32, networks=1, training=TRAINING, **settings).prepare(tau)
    network = prepared.pairs().networks[0]
    fit = prepared.encode(2, np.arange(tau.n) % 3, 3)
    values = [*network.state_dict().values(), *fit.encoder.head.state_dict().values(), prepared.features(2)]
    return [value.detach().clone() for value in values], prepared.pairs().logits


def test_one_result_on_any_number_of_threads(tau, threads, monkeypatch):
    monkeypatch.setattr(heads, "APART", 1)
    found = []
    for n in (1, 2, 3):
        threads(n)
        found.append(weights(tau))
    for others, logits in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0][0], others))
        np.testing.assert_array_equal(found[0][1], logits)


def test_each_part_has_noise_of_its_own_and_the_rest_has_torchs():
    def drawn(n_threads):
        torch.manual_seed(0)
        with side_by_side(n_threads) as map_:
            parts = with_own_noise([lambda: noise_like(torch.zeros(5))] * 4)
            return [*map_(lambda part: part(), parts), noise_like(torch.zeros(5))]

    one, three = drawn(1), drawn(3)
    assert all(torch.equal(a, b) for a, b in zip(one, three))
    assert len({tuple(noise.tolist()) for noise in one}) == 5


def test_gradients_are_added_to_those_that_are_there():
    weight, unused = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(1))
    weight.grad = torch.tensor([1.0, 1.0])
    gradients([lambda: weight.sum(), lambda: 2 * weight[0]], [weight, unused], map)
    assert weight.grad.tolist() == [4.0, 2.0]
    assert unused.grad is None


def test_an_error_in_a_part_is_raised_where_it_was_asked_for():
    def broken():
        raise ValueError("no such part")

    with side_by_side(2) as map_, pytest.raises(ValueError, match="no such part"):
        gradients([broken, broken], [], map_)


def test_heads_apart_take_the_steps_of_heads_together(monkeypatch):
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, 200)
    z = torch.from_numpy((np.eye(3)[label] + 0.3 * rng.normal(size=(200, 3))).astype(np.float32))
    scale = Standardise((3,))
    scale.fit(z)
    together = Heads(TRAINING, scale).cross_fitted(z, label, 3, "heads")
    monkeypatch.setattr(heads, "APART", 1)
    np.testing.assert_allclose(
        Heads(TRAINING, scale).cross_fitted(z, label, 3, "heads"), together, rtol=1e-3, atol=1e-4
    )


class OfTheUser(torch.nn.Module):
    """Keeps the threads in which it ran."""

    def __init__(self):
        super().__init__()
        self.layer, self.seen = torch.nn.Linear(8 * 8 * 3, 4), set()

    def forward(self, x):
        self.seen.add(threading.current_thread().name)
        return self.layer(x.flatten(1))


def test_a_trunk_of_the_users_runs_in_the_users_thread(tau, threads):
    threads(2)
    prepared = NeuralOracle(trunk=OfTheUser(), networks=1, training=TRAINING).prepare(tau)
    assert prepared.pairs().networks[0].trunk.module.seen == {threading.current_thread().name}


def test_where_parts_are_one_threads(threads):
    threads(2)
    trunk = new_trunk(None, (8, 8, 3), 32)
    assert cores_for(TRAINING, CPU, trunk) == 2
    assert cores_for(TRAINING, torch.device("cuda"), trunk) == 1
    assert cores_for(TRAINING.but(threads=None), CPU, trunk) == 1
    assert cores_for(TRAINING, CPU, new_trunk(OfTheUser(), (8, 8, 3), 32)) == 1
    threads(64)
    assert cores_for(TRAINING, CPU, trunk) == 8
