"""Relabelling takes labels that an encoder may know by heart from encoders that never saw them."""

import numpy as np

from craftrl.core.craft import Bounds, craft
from craftrl.core.encoders import ConstantEncoder
from craftrl.core.oracle import EncoderFit, LogOdds, PreparedOracle
from craftrl.data.dataset import TrajectoryDataset

N, H = 200, 3
STATES = np.stack([np.zeros(N, dtype=int), np.arange(N) % 2, np.arange(N) % 2], axis=1)


class ByHeart(PreparedOracle):
    """Its encoders repeat whatever they were told; every tenth trajectory's log-odds are wrong."""

    def __init__(self, tau, unseen):
        self.tau = tau
        self.unseen = unseen
        self.wrong = np.arange(N) % 10 == 0

    def log_odds(self, grid, coupling):
        seen = np.where(self.wrong[:, None], 1 - STATES[:, 1:], STATES[:, 1:])
        return LogOdds(np.where(seen, grid.n_xi, 0)[..., None].astype(np.int16), np.zeros(H - 1))

    def separation(self, h, cluster, n_clusters):
        return lambda new, members: 0.0

    def encode(self, h, label, n_states):
        self.told = label
        true = np.where(label[1] == 0, 1 - STATES[:, h - 1], STATES[:, h - 1])  # numbered as in the labels
        return EncoderFit(ConstantEncoder(), 0.0, np.where(label >= 0, true, -1) if self.unseen else None)

    def read(self, encoder, h):
        return self.told


def labels(unseen):
    tau = TrajectoryDataset.from_arrays(np.zeros((2, N // 2, H, 1)))
    bounds = Bounds(1.0, 0.1, 0.1)
    return craft(ByHeart(tau, unseen), bounds, clusterer="valleys", relabel=True).labels


def agreement(found):
    same = (found[:, 1] == STATES[:, 1]).mean()
    return max(same, 1 - same)


def test_an_encoder_that_repeats_its_labels_keeps_their_mistakes():
    assert agreement(labels(unseen=False)) == 0.9


def test_labels_are_taken_from_encoders_that_never_saw_them():
    assert agreement(labels(unseen=True)) == 1.0
