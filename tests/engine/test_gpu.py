"""The torch engine against the compiled one: on the CPU always, on a CUDA device where there is one."""

import numpy as np
import pytest
from literal_counting import random_problem

from craftrl import CoordinateOracle, InvalidParameterError
from craftrl.core.grid import Grid
from craftrl.engine import constant_step, pack_functions, pair_losses
from craftrl.engine.gpu import TorchCounter

torch = pytest.importorskip("torch")

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA"))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("tile_bytes", [2**10, 2**20])
@pytest.mark.parametrize(("K", "N_s", "unequal"), [(2, 2, False), (2, 4, True), (3, 2, False)])
def test_losses_and_best_pairs_are_the_same(device, tile_bytes, K, N_s, unequal):
    for alpha in (1.0, 0.0004):  # the second grid is too fine for the device
        grid = Grid.from_bounds(alpha, 0.2)
        counter = TorchCounter(grid, device, tile_bytes)
        for seed in range(2):
            problem = random_problem(seed, K, N_s, unequal=unequal, scale=300)
            steps = [pack_functions(problem.tau, h, problem.functions(h), N_s) for h in (1, 2, 3)]
            for left, right in [(steps[0], steps[1]), (constant_step(problem.tau, 2), steps[2])]:
                expected = pair_losses(left, right, grid)
                assert np.array_equal(counter.pair_losses(left, right), expected)
                assert counter.best_pair(left, right) == divmod(int(np.argmin(expected)), right.size)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_asked_for_and_absent():
    with pytest.raises(InvalidParameterError, match="needs a CUDA device, and torch sees none"):
        CoordinateOracle(device="cuda").engine  # noqa: B018
