"""Parts of a minibatch side by side: the same weights to the last bit, whatever number of threads there is."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from craftrl.data.dataset import TrajectoryDataset  # noqa: E402
from craftrl.oracles.network import NeuralOracle, Training, heads, parts  # noqa: E402
from craftrl.oracles.network.heads import Heads  # noqa: E402
from craftrl.oracles.network.noise import noise_like, with_own_noise  # noqa: E402
from craftrl.oracles.network.side_by_side import cores_for, gradients, may_be_apart, side_by_side  # noqa: E402
from craftrl.oracles.network.trunks import MapTrunk, Standardise, new_trunk  # noqa: E402

CPU = torch.device("cpu")
TRAINING = Training(epochs=2, plateau=0, batch=48, device="cpu", progress=False)


@pytest.fixture
def threads(monkeypatch):
    return lambda n: monkeypatch.setenv("CRAFTRL_NUM_THREADS", str(n))


@pytest.fixture(scope="module")
def tau():
    rng = np.random.default_rng(0)
    return TrajectoryDataset.from_arrays([rng.integers(0, 256, (40, 3, 8, 8, 3), dtype=np.uint8) for _ in range(2)])


def learned(tau):
    """All weights: of the log-odds, of small classifiers and of the one encoder; and what is read with them."""
    prepared = NeuralOracle(dim=32, networks=1, training=TRAINING).prepare(tau)
    labels = np.arange(tau.n * tau.H).reshape(tau.n, tau.H) % 3
    step, shared = prepared.encode(2, labels[:, 1], 3).encoder, prepared.share(labels, 3, "shared").encoder
    modules = prepared.pairs().networks[0], step.head, shared.trunk, shared.head
    arrays = [value.numpy() for module in modules for value in module.state_dict().values()]
    return [*arrays, prepared.features(2).numpy(), prepared.pairs().logits, prepared.read(shared, 2)]


def test_one_result_on_any_number_of_threads(tau, threads, monkeypatch):
    """With more parts than threads: of minibatches, of what is read, and of small classifiers."""
    monkeypatch.setattr(heads, "APART", 1)
    monkeypatch.setattr(parts, "PIXELS", 16 * 64)
    found = []
    for n in (1, 2, 3):
        threads(n)
        found.append(learned(tau))
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            np.testing.assert_array_equal(one, other)


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


def test_gradients_that_two_parameters_have_in_common_are_counted_once():
    """torch gives both of them one tensor."""
    both = [torch.nn.Parameter(torch.ones(2)) for _ in range(2)]
    gradients([lambda: (both[0] + both[1]).square().sum()] * 2, both, map)
    assert [parameter.grad.tolist() for parameter in both] == [[8.0, 8.0]] * 2


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
    """Keeps the threads in which it ran, and the sizes of what it was given."""

    def __init__(self):
        super().__init__()
        self.layer, self.threads, self.sizes = torch.nn.Linear(8 * 8 * 3, 4), set(), set()

    def forward(self, x):
        self.threads.add(threading.current_thread().name)
        self.sizes.add(len(x))
        return self.layer(x.flatten(1))


def test_a_trunk_of_the_users_has_whole_minibatches_and_one_thread(tau, threads):
    threads(2)
    prepared = NeuralOracle(trunk=OfTheUser(), networks=1, training=TRAINING).prepare(tau)
    seen = prepared.pairs().networks[0].trunk.module
    assert seen.threads == {threading.current_thread().name}
    assert 54 in seen.sizes  # 72 trajectories of three frames, in four minibatches


def test_where_there_is_one_thread(threads):
    threads(2)
    assert cores_for(TRAINING, CPU) == cores_for(TRAINING, CPU, new_trunk(None, (8, 8, 3), 32)) == 2
    assert cores_for(TRAINING, CPU, OfTheUser()) == 1
    assert cores_for(TRAINING, torch.device("cuda")) == 1
    assert cores_for(TRAINING.but(threads=None), CPU) == 1
    threads(64)
    assert cores_for(TRAINING, CPU) == 8


def test_which_trunks_threads_may_share():
    class Another(MapTrunk):
        pass

    assert may_be_apart(new_trunk(None, (8, 8, 3), 32))
    others = new_trunk(OfTheUser(), (8, 8, 3), 32), new_trunk(None, (5,), 32), Another((8, 8, 3)), torch.nn.Identity()
    assert not any(map(may_be_apart, others))


NEW_THREADS = """
import torch
from threadpoolctl import threadpool_info
from craftrl.oracles.network.side_by_side import read_each, side_by_side
of_openmp = lambda _: {each["num_threads"] for each in threadpool_info() if "torch" in each["filepath"]}
torch.set_num_threads(1)
with side_by_side(2) as map_:
    print(*set().union(*map_(of_openmp, range(4)), *read_each(of_openmp, range(4), 2)))
"""


def test_new_threads_keep_to_the_number_that_torch_was_told():
    """OpenMP has a number for every thread, and begins with that of the machine, or of the environment."""
    call, env = [sys.executable, "-c", NEW_THREADS], os.environ | {"OMP_NUM_THREADS": "2"}
    assert subprocess.run(call, env=env, capture_output=True, text=True).stdout.split() == ["1"]
