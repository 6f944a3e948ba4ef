"""NeuralOracle: log-odds, embedding and encoder by networks, for images and for feature vectors.

Paper: Lines 10 and 46, with networks in place of finite classes
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from craftrl.arguments import check_kind, check_whole, is_whole, quoted
from craftrl.arrays import Floats, Ints
from craftrl.core.encoders import ConstantEncoder, Encoder
from craftrl.core.grid import Grid
from craftrl.core.oracle import Coupling, EncoderFit, LogOdds
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.ranks import is_first_rank
from craftrl.errors import InvalidParameterError
from craftrl.oracles.base import Oracle
from craftrl.oracles.learned import PreparedLearned, check_independent, to_bins
from craftrl.oracles.network.encoder import NetworkEncoder, fit_head
from craftrl.oracles.network.frames import Frames
from craftrl.oracles.network.log_odds import PairFit, fit_pairs
from craftrl.oracles.network.ranks import begin, check_ranks
from craftrl.oracles.network.settings import Training
from craftrl.oracles.network.trunks import Standardise

READ_AT_ONCE = 4096  # embeddings whose states are read at once
MAX_DIM, MAX_NETWORKS = 2**16, 1000


class NeuralOracle(Oracle):
    """Networks as the hypothesis class: one trunk for all steps, log-odds of pairs and an embedding on its features.

    Parameters
    ----------
    trunk
        Any `nn.Module` from (n, C, rows, columns), or (n, features), to (n, dim) or maps; None for the default. It is
        copied, never trained in place.
    dim
        Number of features of the default trunk; of a map, four times that of one place.
    embedding
        How many numbers phi(x) has.
    networks
        How many networks are averaged for the log-odds; None for one, and up to four where there are fewer than 60,000
        feature vectors.
    gaps
        How many steps lie between the observations of a pair; 1 is always among them.
    training
        Epochs, device, seed, checkpoints and so on; None for `Training()`.
    """

    shares_over_time = True

    def __init__(
        self,
        trunk: nn.Module | None = None,
        dim: int = 128,
        embedding: int = 8,
        networks: int | None = None,
        gaps: Sequence[int] = (1,),
        training: Training | None = None,
    ) -> None:
        self.trunk = trunk
        self.dim = dim
        self.embedding = embedding
        self.networks = networks
        self.gaps = gaps
        self.training = training

    def prepare(self, tau: TrajectoryDataset) -> PreparedNetwork:
        check_kind("tau", tau, TrajectoryDataset, "a TrajectoryDataset")
        self.check()
        check_ranks(tau, self.training or Training(), self.dim, self.embedding, self.networks, self.gaps, self.trunk)
        return PreparedNetwork(self, tau)

    def refits(self) -> int:
        return 0  # each would train all networks again

    def shows_progress(self) -> bool | None:
        self.check()
        begin()
        return (self.training or Training()).progress if is_first_rank() else False

    def check(self) -> None:
        """Raise where a parameter means nothing."""
        check_whole("dim", self.dim, 1, MAX_DIM)
        check_whole("embedding", self.embedding, 1, MAX_DIM)
        if self.networks is not None:
            check_whole("networks", self.networks, 1, MAX_NETWORKS, "or None, for as many as suit the data")
        whole = isinstance(self.gaps, (list, tuple)) and all(is_whole(gap) and gap >= 1 for gap in self.gaps)
        if not whole or 1 not in self.gaps or len(set(self.gaps)) < len(self.gaps):
            raise InvalidParameterError(
                f"gaps must be different whole numbers, 1 among them; {quoted(self.gaps)} was given; (1,) compares "
                "neighbouring steps alone."
            )
        check_kind("training", self.training, (Training, type(None)), "a Training or None")
        check_kind("trunk", self.trunk, (nn.Module, type(None)), "an nn.Module or None")

    def saved(self) -> dict[str, Any]:
        """Without a trunk of the user's own, which no file holds."""
        return {**super().saved(), "trunk": None}


class PreparedNetwork(PreparedLearned):
    """The networks of one fit. They are trained when first needed, and at most once.

    Several ranks ask the same questions in the same order, and divide the training of networks and the reading of
    frames.
    """

    def __init__(self, oracle: NeuralOracle, tau: TrajectoryDataset) -> None:
        self.oracle = oracle
        self.tau = tau
        self.training = oracle.training or Training()
        self.seed = self.training.seed
        self.frames = Frames(tau, self.training)
        self._pairs: PairFit | None = None

    def pairs(self) -> PairFit:
        """The networks of Line 10, trained once."""
        if self._pairs is None:
            o = self.oracle
            gaps = sorted(o.gaps)
            self._pairs = fit_pairs(self.frames, o.trunk, o.dim, o.embedding, o.networks, gaps)
            self.frames.forget()
            phi, there = self._pairs.phi, np.arange(self.tau.H) < self.tau.lengths[:, None]
            self.scale = Standardise(phi.shape[2:])
            self.scale.fit(torch.from_numpy(phi[there]))
        return self._pairs

    def log_odds(self, grid: Grid, coupling: Coupling) -> LogOdds:
        """One network for all steps."""
        check_independent(coupling, "NeuralOracle", "a trunk shared over time couples all steps already")
        pairs = self.pairs()
        bins = to_bins(pairs.logits[..., :1] - pairs.logits[..., 1:], grid)
        bins[self.tau.lengths[:, None] <= np.arange(1, self.tau.H)] = -1
        return LogOdds(
            bins, pairs.loss, chance=pairs.chance, p_value=pairs.p_value, f=pairs.f, embedding_r2=pairs.embedding_r2
        )

    def embed(self) -> Floats:
        """phi of every observation, standardised."""
        phi = torch.from_numpy(self.pairs().phi)
        return np.asarray(self.scale(phi).numpy(), dtype=np.float64)

    def fit_encoder(self, labels: Ints, n_states: int) -> EncoderFit:
        """By the nearest of the embeddings that have a state."""
        row, step = np.nonzero(labels >= 0)
        if not len(row):
            return EncoderFit(ConstantEncoder(), 0.0)
        network, phi = self.pairs().f.networks[0], torch.from_numpy(self.pairs().phi[row, step])
        z, state, rng = self.scale(phi), labels[row, step], self.training.rng("encoder")
        head, loss = fit_head(network.phi, self.scale, z, row, state, n_states, rng)
        return EncoderFit(NetworkEncoder(network.trunk, head, self.frames.device), loss)

    def read(self, encoder: Encoder, h: int) -> Ints:
        """From the embeddings in memory, for encoders of this fit."""
        if not isinstance(encoder, NetworkEncoder) or encoder.trunk is not self.pairs().f.networks[0].trunk:
            return super().read(encoder, h)
        head = encoder.head
        with torch.no_grad():
            phi = torch.from_numpy(self.pairs().phi[:, h - 1]).to(encoder.device)
            parts = [head.read(head.scale(part)).argmax(dim=1).cpu() for part in phi.split(READ_AT_ONCE)]
        return np.where(self.tau.present(h), torch.cat(parts).numpy(), -1)
