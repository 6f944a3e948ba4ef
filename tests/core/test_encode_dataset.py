"""The states of a whole dataset, against one observation at a time."""

import numpy as np
import pytest

from craftrl.core.encoders import encode_dataset
from craftrl.data import TrajectoryDataset
from craftrl.errors import InvalidDataError
from craftrl.estimators.base import ByStep

RNG = np.random.default_rng(0)
EPISODES = [[RNG.integers(5, size=(length, 2)) for length in RNG.integers(1, 5, size=7)] for _ in range(2)]
EPISODES[0][0] = RNG.integers(5, size=(4, 2))
TAU = TrajectoryDataset.from_episodes(EPISODES)
ENCODERS = [lambda x, h=h: x[:, 0] * h + x[:, 1] for h in range(1, 5)]


def test_every_observation_is_read_by_the_encoder_of_its_step():
    truth = np.full((TAU.n, TAU.H), -1)
    for i, episode in enumerate(x for agent in EPISODES for x in agent):
        for h, x_h in enumerate(episode, start=1):
            truth[i, h - 1] = ENCODERS[h - 1](x_h[None])[0]
    assert encode_dataset(ENCODERS, TAU).tolist() == truth.tolist()
    assert encode_dataset(ByStep(ENCODERS), TAU).tolist() == truth.tolist()


def test_there_must_be_one_encoder_per_step():
    with pytest.raises(InvalidDataError, match="same number of steps; 3 and 4 were given"):
        encode_dataset(ENCODERS[:3], TAU)
