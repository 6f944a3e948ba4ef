"""A small dataset of bits for the tests of stores, and blocks so small that it has several shards."""

import pytest

from craftrl.data import storage
from craftrl.envs import BitsExBMDP, collect
from s3_server import running
from stored import H, M

s3 = pytest.fixture(scope="module")(running)


@pytest.fixture(scope="module")
def world():
    return BitsExBMDP(horizon=H, n_features=M, seed=0)


@pytest.fixture(scope="module")
def tau(world):
    return collect(world, world.paper_policies(), [300, 170], seed=1).tau


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(storage, "BLOCK_BYTES", 8000)  # three shards
