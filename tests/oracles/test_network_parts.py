"""Minibatches that are computed in parts: the same loss and the same gradient, whatever is missing in them."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from craftrl.data.dataset import TrajectoryDataset  # noqa: E402
from craftrl.oracles.network import NeuralOracle, Training  # noqa: E402
from craftrl.oracles.network.networks import PairNetwork  # noqa: E402
from craftrl.oracles.network.parts import IGNORE, PARTS, at_once, cross_entropy_parts, parts_of  # noqa: E402
from craftrl.oracles.network.training import train  # noqa: E402
from craftrl.oracles.network.trunks import channels_last, new_trunk  # noqa: E402

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def gradients(module, parts):
    module.zero_grad()
    total = 0.0
    for part in parts:
        value = part()
        value.backward()
        total += float(value.detach())
    return total, [p.grad.clone() for p in module.parameters()]


@pytest.mark.parametrize("n_parts", [1, 2, 3, 7])
def test_parts_add_up_to_the_mean_over_the_targets_that_are_there(n_parts):
    torch.manual_seed(0)
    network = PairNetwork(new_trunk(None, (8, 8, 3), 32), 4, 2).eval()
    x, target = torch.rand(7, 4, 3, 8, 8), torch.randint(0, 2, (7, 3))
    target[0], target[1, 1:], target[6, 2] = IGNORE, IGNORE, IGNORE  # trajectories of several lengths
    whole = lambda: torch.nn.functional.cross_entropy(network.along(x).flatten(0, 1), target.flatten())  # noqa: E731
    loss, expected = gradients(network, [whole])
    found, got = gradients(network, cross_entropy_parts(network.along, x, target, n_parts))
    assert found == pytest.approx(loss, rel=1e-5)
    for a, b in zip(expected, got):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-6)


def test_a_minibatch_without_targets_has_no_loss_and_no_gradient():
    weight = torch.nn.Linear(2, 2)
    loss, found = gradients(weight, cross_entropy_parts(weight, torch.rand(4, 2), torch.full((4,), IGNORE), 2))
    assert loss == 0
    assert all((g == 0).all() for g in found)


def test_training_in_parts_takes_the_same_steps():
    x = torch.linspace(-1, 1, 90)[:, None]
    target = (x[:, 0] > 0.2).long()
    training = Training(epochs=3, patience=3, batch=20, lr=1e-2, device="cpu")

    def trained(n_parts):
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Linear(1, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
        loss = train(
            module, lambda rows: cross_entropy_parts(module, x[rows], target[rows], n_parts), training.split(90, "r"),
            training, "parts",
        )  # fmt: skip
        return loss, module

    (whole, a), (parts, b) = trained(1), trained(4)
    assert parts == pytest.approx(whole, rel=1e-5)
    for p, q in zip(a.parameters(), b.parameters()):
        torch.testing.assert_close(p, q, rtol=1e-3, atol=1e-5)


def test_large_frames_are_taken_a_few_at_a_time_on_a_cpu_alone():
    sizes = [at_once(shape, CPU) for shape in [(12, 12, 3), (54, 54, 3), (84, 84, 1), (2000, 2000, 3)]]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 4 * sizes[2] > 4 * sizes[3] >= 4
    assert at_once((54, 54, 3), GPU) == at_once((30,), CPU) == 4096


def test_in_how_many_parts_a_minibatch_is_computed():
    assert [parts_of(n, 6, (18, 18, 3), CPU, PARTS) for n in (1, 2, 60, 700)] == [1, 2, 2, 3]
    assert parts_of(60, 6, (18, 18, 3), CPU) == 1
    assert parts_of(51, 20, (54, 54, 3), CPU) == 6
    for elsewhere in (GPU, torch.device("mps")):
        assert parts_of(51, 20, (54, 54, 3), elsewhere, PARTS) == 1


def test_what_is_read_does_not_depend_on_how_much_is_read_at_once():
    rng = np.random.default_rng(0)
    tau = TrajectoryDataset.from_arrays([rng.integers(0, 256, (30, 3, 8, 8, 3), dtype=np.uint8) for _ in range(2)])
    training = Training(epochs=1, plateau=0, device="cpu", progress=False)
    prepared = NeuralOracle(dim=32, networks=1, training=training).prepare(tau)
    together = prepared.features(2)
    prepared._features.clear()
    prepared.frames.at_once = 7
    torch.testing.assert_close(prepared.features(2), together, rtol=1e-4, atol=1e-5)


def test_the_order_in_memory_changes_no_value():
    torch.manual_seed(0)
    x = torch.rand(5, 3, 8, 8)
    conv = torch.nn.Conv2d(3, 8, 3)
    assert torch.equal(channels_last(x), x)
    torch.testing.assert_close(conv(channels_last(x)), conv(x))
