"""NeuralOracle: the three training problems answered by networks, for images and for feature vectors.

Paper: Lines 10, 25 and 46, with networks in place of finite classes
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from craftrl.arguments import check_kind, check_number, check_whole
from craftrl.core.grid import Grid
from craftrl.core.learned import PreparedLearned
from craftrl.core.starts import StartTest
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.ranks import ALONE, Ranks
from craftrl.oracles.base import Choice, Coupling, Encoder, EncoderFit, LogOdds, Oracle, check_data
from craftrl.oracles.learned import SCATTERED, check_independent, to_bins
from craftrl.oracles.network.checkpoints import Finished
from craftrl.oracles.network.collectives import firsts, take_firsts
from craftrl.oracles.network.encoders import NetworkEncoder
from craftrl.oracles.network.frames import Frames
from craftrl.oracles.network.heads import Heads, head_logits
from craftrl.oracles.network.log_odds import NetworkLogOdds
from craftrl.oracles.network.networks import Head, PairNetwork
from craftrl.oracles.network.pairs import PairFit, fit_pairs
from craftrl.oracles.network.process_group import begin, ranks_for
from craftrl.oracles.network.separation import ClassifierSeparation
from craftrl.oracles.network.settings import Training
from craftrl.oracles.network.shared import fit_shared
from craftrl.oracles.network.side_by_side import cores_for, read_each
from craftrl.oracles.network.starts import network_start_test, network_starts
from craftrl.oracles.network.threads import with_own_threads
from craftrl.oracles.network.trunks import Standardise, Trunk

__all__ = ["NeuralOracle"]

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]
FEATURE_BYTES = 2**30  # features of all steps are kept in memory up to this size; on a GPU a quarter of what is free
BATCH = 4096  # pairs whose logits are read at once
OTHERS = 8  # with how many others an observation is paired at most
# and all of them together: with more images the log-odds of a single pair are steady, and wrong states of h do harm
OTHERS_IN_ALL, VECTORS_IN_ALL = 10_000, 100_000
GIVEN_KEPT = 100  # averages that are kept
HEAD_EPOCHS = 12  # of heads at one step
MANY = 64  # classes
RELABEL_FOLDS = 3  # of heads that read labels which they did not learn
POOLED, POOLED_EPOCHS = 50_000, 6  # observations of all steps that the head of the one encoder begins with
SHARED_EPOCHS = 3  # of that encoder as a whole
MOST_DIM = 2**16
MOST_NETWORKS = 1000


class NeuralOracle(Oracle):
    """Networks as the hypothesis class: one trunk for all steps, and small heads on its features.

    Parameters
    ----------
    trunk
        Any `nn.Module` from (n, C, rows, columns), or (n, features), to (n, dim); None for the default. It is copied,
        never trained in place.
    dim
        Number of features of the default trunk.
    folds
        1: one network, early-stopped on held-out trajectories. 2 or more: cross-fitting, so that each trajectory's
        log-odds come from a network that never saw it; takes as many times longer, and helps where data is short.
    networks
        How many networks are averaged for the log-odds, where `folds` is 1; None for one, and up to four where there
        are fewer than 60,000 observations.
    training
        Epochs, device, seed, checkpoints and so on; None for `Training()`.
    heads
        The same for the small classifiers; None takes `training` with a schedule of their own.
    shared
        The same for the one encoder of all steps (`CRAFT(stationary=True)`); None takes `training`.
    agent_weight
        Weight of the agents' log-likelihood given the states in the training of that one encoder, beside the
        classification loss.
    """

    shares_over_time = True

    def __init__(
        self,
        trunk: nn.Module | None = None,
        dim: int = 128,
        folds: int = 1,
        networks: int | None = None,
        training: Training | None = None,
        heads: Training | None = None,
        shared: Training | None = None,
        agent_weight: float = 0.0,
    ) -> None:
        self.trunk = trunk
        self.dim = dim
        self.folds = folds
        self.networks = networks
        self.training = training
        self.heads = heads
        self.shared = shared
        self.agent_weight = agent_weight

    def prepare(self, tau: TrajectoryDataset) -> PreparedNetwork:
        check_data(tau)
        self.check()
        ranks = ranks_for(tau, self.training or Training())
        ranks.agree("networks", self.dim, self.folds, self.networks, self.agent_weight, self.trunk)
        return PreparedNetwork(self, tau, ranks)

    def suits(self) -> tuple[Choice, ...]:
        return SCATTERED

    def refits(self) -> int:
        return 0  # each would train all networks again

    def shows(self) -> bool | None:
        self.check()
        return (self.training or Training()).progress if begin().rank == 0 else False

    def check(self) -> None:
        """Raise where a parameter means nothing."""
        check_whole("folds", self.folds, 1, MOST_NETWORKS)
        check_whole("dim", self.dim, 1, MOST_DIM)
        if self.networks is not None:
            check_whole("networks", self.networks, 1, MOST_NETWORKS, "or None, for as many as suit the data")
        check_number("agent_weight", self.agent_weight, "a number of at least 0", lambda weight: weight >= 0)
        for name in ("training", "heads", "shared"):
            check_kind(name, getattr(self, name), (Training, type(None)), "a Training or None")
        check_kind("trunk", self.trunk, (nn.Module, type(None)), "an nn.Module or None")

    def same_value(self, a: Any, b: Any) -> bool:
        """Modules are equal if they have the same layers and weights."""
        if isinstance(a, nn.Module) and isinstance(b, nn.Module) and a is not b:
            mine, theirs = a.state_dict(), b.state_dict()
            same_layers = repr(a) == repr(b) and mine.keys() == theirs.keys()
            return same_layers and all(torch.equal(mine[name].cpu(), theirs[name].cpu()) for name in mine)
        return super().same_value(a, b)

    def saved(self) -> dict[str, Any]:
        """Without a trunk of the user's own, which no file holds."""
        return {**super().saved(), "trunk": None}


class PreparedNetwork(PreparedLearned):
    """The networks of one fit. They are trained when first needed, and at most once.

    Several ranks ask the same questions in the same order. They divide the training of networks and the reading of
    features; what is made of features, which is little, each makes by itself, and all take what the first has.
    """

    def __init__(self, oracle: NeuralOracle, tau: TrajectoryDataset, ranks: Ranks = ALONE) -> None:
        self.oracle = oracle
        self.tau = tau
        self.training = oracle.training or Training()
        self.seed = self.training.seed
        self.frames = Frames(tau, self.training, ranks)
        self.finished = Finished(self.training.checkpoints, ranks)
        self._pairs: PairFit | None = None
        self._features: dict[tuple[int, int], Tensor] = {}
        self._scale: Standardise | None = None
        self._given: OrderedDict[tuple[int, bytes], Floats] = OrderedDict()

    @with_own_threads
    def log_odds(self, grid: Grid, coupling: Coupling) -> LogOdds:
        """One network for all steps."""
        check_independent(coupling, "NeuralOracle", "a trunk shared over time couples all steps already")
        pairs = self.pairs()
        bins = to_bins(pairs.logits[..., :1] - pairs.logits[..., 1:], grid)
        bins[self.tau.lengths[:, None] <= np.arange(1, self.tau.H)] = -1
        f = NetworkLogOdds(pairs.networks, pairs.scale, pairs.shift, self.frames.device, pairs.unseen)
        return LogOdds(bins, pairs.loss, chance=pairs.chance, p_value=pairs.p_value, f=f)

    @with_own_threads
    def log_odds_given(self, h: int, label: Ints, f: LogOdds, grid: Grid) -> NDArray[np.int16]:
        """f_h(x_h, x_{h+1}), averaged over other observations x_h of the same state.

        All of them have the same log-odds with x_{h+1}: what a network makes of the noise in one pair averages out.
        """
        in_all = VECTORS_IN_ALL if len(self.tau.obs_shape) == 1 else OTHERS_IN_ALL
        turns = int(min(OTHERS, in_all // self.tau.n))
        known = np.flatnonzero((label >= 0) & self.tau.present(h + 1))
        if turns < 2 or not len(known):
            return f.bins[:, h - 1]
        key = h, label.tobytes()
        if key not in self._given:  # runs that differ in their bounds ask for the same
            self._given[key] = self._averaged(h, label, known, turns)
            while len(self._given) > GIVEN_KEPT:
                self._given.popitem(last=False)
        logits = self._given[key]
        bins = f.bins[:, h - 1].copy()
        bins[known] = to_bins(logits[:, :1] - logits[:, 1:], grid)
        return bins

    def _averaged(self, h: int, label: Ints, known: Ints, turns: int) -> Floats:
        """Calibrated logits (m, K) of the pairs of trajectories `known`, averaged over networks and other x_h."""
        pairs, rng = self.pairs(), self.training.rng("others", h)
        total = np.zeros((len(known), self.tau.K))
        turns = max(2, min(turns, 2 * turns // len(pairs.networks)))  # several networks average by themselves
        for i, network in enumerate(pairs.networks):
            z, z_next = self.features_of(i, h), self.features_of(i, h + 1)
            for _ in range(turns):
                other = known.copy()
                for s in np.unique(label[known]):
                    mine = label[known] == s
                    other[mine] = rng.permutation(known[mine])
                total += self.pair_logits(network, z, z_next, other, known, h)
        logits = total / (turns * len(pairs.networks)) * pairs.scale[h - 1] + pairs.shift[h - 1]
        return firsts(self.frames.ranks, logits)

    def heads(self, n_classes: int) -> Heads:
        """How the small classifiers are trained. With many classes they need more steps, so smaller minibatches."""
        most = 4096 if n_classes <= MANY else 1024
        training = self.oracle.heads or self.training.but(
            epochs=HEAD_EPOCHS,
            patience=2,
            lr=3e-3,
            batch=int(np.clip(self.tau.n // 16, 256, most)),
        )
        return Heads(training, self.scale(), self.finished)

    @torch.no_grad()
    def pair_logits(self, network: PairNetwork, z: Tensor, z_next: Tensor, first: Ints, second: Ints, h: int) -> Floats:
        """Agent logits of pairs of observations at h and h+1, by their rows."""
        a, b = (torch.from_numpy(rows).to(z.device).split(BATCH) for rows in (first, second))
        with self.training.precision(self.frames.device):
            parts = [network(z[i], z_next[j], torch.full_like(i, h - 1)).double().cpu() for i, j in zip(a, b)]
        return torch.cat(parts).numpy()

    @with_own_threads
    def separation(self, h: int, cluster: Ints, n_clusters: int) -> ClassifierSeparation:
        chosen = (cluster >= 0) & self.tau.present(h)
        label = cluster[chosen]
        if n_clusters < 2:
            return ClassifierSeparation(np.zeros((len(label), n_clusters)), label, n_clusters)
        z, heads = self.features(h)[chosen], self.heads(n_clusters)
        self.frames.ranks.agree(f"clusters at h = {h}", label)
        logits = heads.cross_fitted(z, label, n_clusters, f"separation-h{h}")
        return ClassifierSeparation(logits, label, n_clusters)

    @with_own_threads
    def encode(self, h: int, label: Ints, n_states: int) -> EncoderFit:
        chosen = (label >= 0) & self.tau.present(h)
        z, target = self.features(h)[chosen], label[chosen]
        if n_states == 0 or not len(target):
            return EncoderFit(self._encoder(Head(self.features(h).shape[1], 1)), 0.0)
        heads = self.heads(n_states)
        self.frames.ranks.agree(f"states at h = {h}", target)
        head, held = heads.fit(z, target, n_states, f"encoder-h{h}")
        wrong = head_logits(head, z[torch.from_numpy(held).to(z.device)]).argmax(axis=1) != target[held]
        rates = [wrong[target[held] == s].mean() for s in range(n_states) if (target[held] == s).any()]
        unseen = np.full(self.tau.n, -1)
        others = heads.cross_fitted(z, target, n_states, f"relabel-h{h}", RELABEL_FOLDS)
        unseen[chosen] = others.argmax(axis=1)
        return EncoderFit(self._encoder(head), float(np.sum(rates)), unseen)

    @with_own_threads
    def pairs(self) -> PairFit:
        """The network of Line 10, trained once."""
        if self._pairs is None:
            o = self.oracle
            self._pairs = fit_pairs(self.frames, o.trunk, o.dim, o.folds, o.networks, self.training)
        return self._pairs

    @property
    def trunk(self) -> Trunk:
        """Of the best network."""
        return self.pairs().networks[0].trunk

    @with_own_threads
    def features(self, h: int) -> Tensor:
        """The trunk's features of all observations at h, shape (n, dim)."""
        return self.features_of(0, h)

    def features_of(self, number: int, h: int) -> Tensor:
        """The same by the trunk of any of the networks. They are kept where there is room for all steps and networks,
        those of the best network also where there is room for its own; else the last of it."""
        if (number, h) in self._features:
            return self._features[number, h]
        networks = self.pairs().networks
        with torch.no_grad(), self.training.precision(self.frames.device), self.frames.at(h) as inputs:
            trunk = networks[number].trunk
            z = inputs.gathered(read_each(trunk, inputs, cores_for(self.training, self.frames.device, trunk)))
        steps, room = z.nbytes * self.tau.H, self._room()
        if number == 0 and steps > room:
            self._features.clear()
        if number == 0 or steps * len(networks) <= room:
            self._features[number, h] = z
        return z

    def _room(self) -> float:
        """How many bytes of features are kept, the same on all ranks: they must all need to read again, or none."""
        device = self.frames.device
        if device.type != "cuda":
            return FEATURE_BYTES
        return min(self.frames.ranks.every(torch.cuda.mem_get_info(device)[0] / 4))

    @with_own_threads
    def scale(self) -> Standardise:
        """The mean and deviation of every feature over observations of all steps."""
        if self._scale is None:
            x = self.frames.sample(self.training.rng("scale"))
            trunk = self.trunk
            with torch.no_grad(), self.training.precision(self.frames.device):
                z = torch.cat([trunk(part.to(self.frames.device)).float() for part in x.split(512)])
            self._scale = Standardise((trunk.dim,)).to(z.device)
            self._scale.fit(z)
            take_firsts(self.frames.ranks, self._scale.buffers())
        return self._scale

    @with_own_threads
    def read(self, encoder: Encoder, h: int) -> Ints:
        """From the features in memory for encoders on this very trunk, from the frames here for other networks."""
        if not isinstance(encoder, NetworkEncoder):
            return super().read(encoder, h)
        if encoder.trunk is self.trunk:
            states = firsts(self.frames.ranks, encoder.classify(self.features(h)))
        else:
            with self.training.precision(self.frames.device), self.frames.at(h) as inputs:
                cores = cores_for(self.training, self.frames.device, encoder.trunk)
                states = inputs.gathered(encoder.states(inputs, cores)).cpu().numpy()
        return np.where(self.tau.present(h), states, -1)

    @with_own_threads
    def find_starts(self) -> Ints:
        return network_starts(self)

    @with_own_threads
    def test_start(self) -> StartTest:
        return network_start_test(self)

    @with_own_threads
    def share(self, labels: Ints, n_states: int, name: str) -> EncoderFit:
        """One network for all steps: first a head on the features of the log-odds, then all of it."""
        o = self.oracle
        self.frames.ranks.agree("states of all steps", labels, n_states)
        z, target = self._pooled(labels)
        heads = self.heads(n_states).but(epochs=POOLED_EPOCHS)
        head, _ = heads.fit(z, target, n_states, f"{name}-head")
        training = o.shared or self.training.but(epochs=SHARED_EPOCHS)
        training = training.but(checkpoints=training.checkpoints or self.training.checkpoints)
        trunk = self.trunk
        return fit_shared(
            self.frames, labels, n_states, trunk, head, self.scale(), training, agent_weight=o.agent_weight, name=name
        )

    def _pooled(self, labels: Ints) -> tuple[Tensor, Ints]:
        """Features and labels of some observations of every step."""
        each = max(1, POOLED // self.tau.H)
        parts, targets = [], []
        for h in range(1, self.tau.H + 1):
            rows = np.flatnonzero(labels[:, h - 1] >= 0)
            rows = np.sort(self.training.rng("pooled", h).permutation(rows)[:each])
            parts.append(self.features(h)[torch.from_numpy(rows).to(self.frames.device)])
            targets.append(labels[rows, h - 1])
        return torch.cat(parts), np.concatenate(targets)

    def _encoder(self, head: Head) -> NetworkEncoder:
        return NetworkEncoder(self.trunk, head, self.frames.device)
