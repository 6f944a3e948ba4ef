"""f_h(x_h, x_{h+1}): a network that tells agents apart by pairs of observations, and the embedding of an observation.

The features of both observations are joined and read out as logits of the agents. An embedding phi of each observation
is made of the same features, and the log-odds are distilled into it in the same training: a second network g learns to
give f(x, x') as g(phi(x), phi(x')), from the values that f has at that moment. So phi
holds what log-odds depend on, and little else.

Paper: Line 10
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import log_softmax
from torch import Tensor, nn
from torch.nn import functional

from craftrl.arrays import Floats, Ints
from craftrl.core.evidence import chance_loss
from craftrl.core.saved import Savable
from craftrl.data.dataset import TrajectoryDataset
from craftrl.oracles.learned import calibration, judged
from craftrl.oracles.network.frames import Frames, as_tensor, read_at_once, to_input
from craftrl.oracles.network.ranks import gathered
from craftrl.oracles.network.settings import Training, seeded
from craftrl.oracles.network.training import minibatch_size, train
from craftrl.oracles.network.trunks import GROUPS, FlatMap, SavableModule, Trunk, new_trunk

HIDDEN = 128  # units of the layers that make the embedding and read it
DROPOUT = 0.2  # share of what is joined that a minibatch does without: few videos are soon learned by heart
READOUTS = 3  # linear readouts that the steps mix, beside the one that all have in common
STEP = 8  # numbers by which g knows the step and the gap
DRAWN = 0.01  # weight of the squared offsets of the calibration, in the mean over them
SEVERAL = 60_000  # feature vectors below which more than one network is trained, four at most


class PairNetwork(SavableModule):
    """Agent logits of pairs of observations, from one trunk for all h.

    Pr(agent k | x_h, x_{h+g}) is softmax of the output; f_h is logit 0 less logit k at gap g = 1. The features of both
    observations and their product are joined: place by place where they are maps, by a hidden layer where they are
    vectors. What is joined is read out linearly. All steps have one readout in common; a few others are mixed with
    weights of each step and gap, so that agents may change their habits over time without a whole readout for each.

    steps  how many steps have weights of their own: H - 1, or 1 where the step means nothing
    gaps   how many steps lie between the observations of a pair; the first one is 1

    Paper: Line 10 (the function class F_h, with encoders shared over time)
    """

    def __init__(self, trunk: Trunk, steps: int, n_agents: int, gaps: Sequence[int], embedding: int) -> None:
        super().__init__()
        self.arguments = {"steps": steps, "n_agents": n_agents, "gaps": list(gaps), "embedding": embedding}
        self.trunk, self.n_agents, self.gaps, self.steps = trunk, n_agents, tuple(gaps), steps
        self.join = _join_maps(trunk.map_shape[0]) if trunk.map_shape else _join_vectors(trunk.dim)
        size = trunk.dim if trunk.map_shape else 2 * trunk.dim
        self.readouts = nn.Linear(size, (1 + READOUTS) * n_agents, bias=False)
        self.mixture = nn.Parameter(0.3 * torch.randn(len(gaps), steps, READOUTS))
        self.offset = nn.Parameter(torch.zeros(len(gaps), steps, n_agents))
        self.phi = embedder(trunk.dim, embedding)
        self.step = nn.Parameter(torch.randn(len(gaps), steps, STEP))
        layers = [nn.Linear(3 * embedding + STEP, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, HIDDEN), nn.SiLU()]
        self.g = nn.Sequential(*layers, nn.Linear(HIDDEN, n_agents))

    def saved(self) -> dict[str, Any]:
        """The trunk by itself, since the encoders share it."""
        parts = super().saved()
        own = {name: value for name, value in parts["weights"].items() if not name.startswith("trunk.")}
        return {**parts, "weights": own, "trunk": self.trunk}

    @classmethod
    def restored(cls, parts: dict[str, Any], given: Any) -> Self:
        trunk = parts["trunk"]
        weights = {f"trunk.{name}": value.cpu().numpy() for name, value in trunk.state_dict().items()}
        return cls(trunk, **parts["arguments"]).with_weights({**weights, **parts["weights"]})

    def forward(self, z_h: Tensor, z_next: Tensor, step: Tensor, gap: int = 0) -> Tensor:
        """Logits (m, K) from the trunk's features (m, dim) of both observations; step (m,) is h - 1.

        `gap` counts within `gaps`.
        """
        a, b, shape = z_h, z_next, self.trunk.map_shape
        if shape is not None:
            a, b = FlatMap.back(a, shape), FlatMap.back(b, shape)
        read = self.readouts(self.join(torch.cat([a, b, a * b], dim=1))).unflatten(1, (1 + READOUTS, self.n_agents))
        at = step.clamp_max(self.steps - 1)
        mixed = (self.mixture[gap, at][..., None] * read[:, 1:]).sum(dim=1)
        return read[:, 0] + mixed + self.offset[gap, at]

    def along(self, z: Tensor, gap: int = 0) -> Tensor:
        """Logits (n, H-g, K) of whole trajectories from the trunk's features (n, H, dim)."""
        a, b = z[:, : -self.gaps[gap]], z[:, self.gaps[gap] :]
        step = torch.arange(a.shape[1], device=z.device).repeat(len(a))
        return self(a.flatten(0, 1), b.flatten(0, 1), step, gap).unflatten(0, a.shape[:2])

    def from_embeddings(self, phi: Tensor, gap: int = 0) -> Tensor:
        """The same by g from embeddings (n, H, d) alone."""
        a, b = phi[:, : -self.gaps[gap]], phi[:, self.gaps[gap] :]
        at = torch.arange(a.shape[1], device=phi.device).clamp_max(self.steps - 1)
        return self.g(torch.cat([a, b, a * b, self.step[gap, at].expand(len(a), -1, -1)], dim=2))


def embedder(dim: int, embedding: int) -> nn.Sequential:
    """phi: a few numbers (..., d) of the trunk's features (..., dim), trained to hold what the log-odds need."""
    return nn.Sequential(nn.Linear(dim, HIDDEN), nn.LayerNorm(HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, embedding))


def _join_maps(width: int) -> nn.Sequential:
    """Three maps of this width to one of the same width, looking one place far."""
    half = max(1, width // 2)
    return nn.Sequential(
        nn.Conv2d(3 * width, half, 1),
        nn.GroupNorm(GROUPS if half % GROUPS == 0 else 1, half),
        nn.SiLU(),
        nn.Conv2d(half, width, 3, padding=1),
        nn.SiLU(),
        nn.Dropout(DROPOUT),
        FlatMap(),
    )


def _join_vectors(dim: int) -> nn.Sequential:
    """Three vectors to one of twice the size."""
    return nn.Sequential(nn.Linear(3 * dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, 2 * dim), nn.SiLU())


def pair_loss(network: PairNetwork, z: Tensor, agent: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The loss of the log-odds and of the embedding, summed over all pairs that are there, and how many they are.

    z (n, H, dim) are the trunk's features, agent (n,) whose trajectories they are. The log-odds have the cross-entropy
    of the agents. They are distilled into the embedding: its loss is the distance of its log-odds from these, through
    which no gradient flows; the trunk learns from both. On held-out trajectories both have the cross-entropy.
    """
    phi, total, count = network.phi(z), z.new_zeros((), dtype=torch.float32), z.new_zeros((), dtype=torch.float32)
    for i, gap in enumerate(network.gaps):
        there = torch.arange(gap, z.shape[1], device=z.device) < lengths[:, None]
        logits, distilled = (found[there].float() for found in (network.along(z, i), network.from_embeddings(phi, i)))
        target = agent[:, None].expand_as(there)[there]
        total = total + functional.cross_entropy(logits, target, reduction="sum")
        if network.training:
            aim, said = (logits - logits[:, :1]).detach()[:, 1:], (distilled - distilled[:, :1])[:, 1:]
            total = total + functional.smooth_l1_loss(said, aim, reduction="sum") / (logits.shape[1] - 1)
        else:
            total = total + functional.cross_entropy(distilled, target, reduction="sum")
        count = count + there.sum()
    return (total, count) if network.training else (total, 2 * count)


@dataclass(frozen=True)
class PairFit:
    """Calibrated agent logits of every pair, and what they are worth.

    logits        (n, H-1, K)
    loss, chance  (H-1,): on pairs that were not learned from, the loss of the logits and that of chance
    p_value       (H-1,): of the one against the other
    f             the networks, the best on held-out pairs first, and what calibrates them
    phi           (n, H, d): embeddings by the best network, not standardised
    embedding_r2  of the best network's log-odds on held-out pairs, the share that the embedding explains
    """

    logits: Floats
    loss: Floats
    chance: Floats
    p_value: Floats
    f: NetworkLogOdds
    phi: NDArray[np.float32]
    embedding_r2: float


def fit_pairs(
    frames: Frames, trunk: nn.Module | None, dim: int, embedding: int, networks: int | None, gaps: Sequence[int]
) -> PairFit:
    """Train to tell the agents apart, on all pairs of all steps at once.

    Several networks see the same trajectories, and their logits are averaged: what one of them makes of the noise,
    another does not.
    """
    tau, training = frames.tau, frames.training
    learned, held = rows = tau.hold_out(training.held_out, training.rng("log-odds"))
    several = networks or (int(np.clip(SEVERAL // (tau.n * tau.H), 1, 4)) if len(tau.obs_shape) == 1 else 1)
    steps, chance, sample = tau.H - 1 if tau.aligned else 1, chance_loss(tau.agent), frames.sample()
    size = minibatch_size(training, len(learned), tau.H)
    agent, lengths = (torch.from_numpy(a.astype(np.int64)).to(frames.device) for a in (tau.agent, tau.lengths))

    def loss(network: PairNetwork, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        index, x = batch
        return pair_loss(network, network.trunk.features(x).unflatten(0, (-1, tau.H)), agent[index], lengths[index])

    fits = []
    for i in range(several):
        name = f"log-odds-{i + 1}-of-{several}"
        with seeded(training, name):
            own = new_trunk(trunk, tau.obs_shape, dim, training.noise, int(tau.lengths.sum()))
            network = PairNetwork(own, steps, tau.K, [g for g in gaps if g < tau.H], embedding)
        network.trunk.fit_input(sample)
        network.to(frames.device)
        frames.keep_prepared(network.trunk)
        batches = partial(frames.batches, trunk=own)
        held_loss = train(network, loss, batches, rows, size, training, name, chance, tau.digest, (i, several))
        fits.append((held_loss, network, *_read(network, frames)))
    fits.sort(key=lambda fit: fit[0])
    _, of_all, said, (distilled, *_), (phi, *_) = zip(*fits)
    embedding_r2 = _embedding_r2(said[0], distilled, tau, held)
    logits, scale, shift = np.mean(said, axis=0), 1.0, np.zeros((tau.H - 1, tau.K))
    if training.calibrate:
        pair, step = np.nonzero(tau.lengths[held, None] > np.arange(1, tau.H))
        row, at = held[pair], np.minimum(step, steps - 1)
        scale, offsets = calibration(logits[row, step], tau.agent[row], at, steps, DRAWN / (steps * tau.K))
        shift = shift + offsets
    logits = logits * scale + shift
    log_p = np.asarray(log_softmax(logits[held], axis=2))
    judgement = judged(log_p, tau.agent[held], tau.lengths[held], tau.aligned)
    f = NetworkLogOdds(of_all, scale, shift, np.sort(held), frames.device)
    return PairFit(logits, *judgement, f, phi, embedding_r2)


@torch.no_grad()
def _read(network: PairNetwork, frames: Frames) -> tuple[Floats, Floats, NDArray[np.float32]]:
    """Agent logits (n, H-1, K) of all pairs, the same by embeddings alone, and embeddings (n, H, d)."""
    tau, parts = frames.tau, []
    everyone = np.array_split(np.arange(tau.n), max(1, tau.n // frames.at_once))
    with frames.training.precision(frames.device):
        for batch in frames.batches(everyone, trunk=network.trunk):
            if batch is not None:
                index, x = batch
                z = network.trunk.features(x).unflatten(0, (-1, tau.H))
                phi = network.phi(z)
                said = [network.along(z), network.from_embeddings(phi), phi]
                parts.append((index, torch.cat([part.flatten(1) for part in said], dim=1).float()))
    n_logits = (tau.H - 1) * tau.K
    logits, distilled, phi_of_all = np.split(gathered(parts, tau.n).numpy(), [n_logits, 2 * n_logits], axis=1)
    shape = tau.n, tau.H - 1, tau.K
    both = (said.astype(np.float64).reshape(shape) for said in (logits, distilled))
    return *both, phi_of_all.reshape(tau.n, tau.H, -1)  # type: ignore[return-value]


def _embedding_r2(logits: Floats, distilled: Floats, tau: TrajectoryDataset, held: Ints) -> float:
    """The share of the log-odds' variance over held-out pairs that those of the embedding explain."""
    there = tau.lengths[held, None] > np.arange(1, tau.H)
    f, g = ((said[..., :1] - said[..., 1:])[held][there] for said in (logits, distilled))
    total = float(((f - f.mean(axis=0)) ** 2).sum()) if len(f) else 0.0
    return 1 - float(((f - g) ** 2).sum()) / total if total > 0 else 1.0


class NetworkLogOdds(Savable):
    """f_1..f_{H-1} for trajectories to come: logits of networks, averaged, then scaled and shifted step by step.

    scale, shift  one temperature, and K offsets for each step (H-1, K)
    unseen        the trajectories of the data fitted that no network learned from

    Paper: Line 10
    """

    def __init__(
        self,
        networks: Sequence[PairNetwork],
        scale: float,
        shift: Floats,
        unseen: Ints,
        device: torch.device | None = None,  # a GPU, if there is one
    ) -> None:
        self.device = device or Training().to_device()
        self.networks = tuple(network.to(self.device) for network in networks)
        self.scale, self.shift, self.unseen = scale, shift, unseen

    @torch.no_grad()
    def __call__(self, x: NDArray[Any]) -> Floats:
        logits = np.zeros((len(x), x.shape[1] - 1, self.shift.shape[1]))
        size = max(1, read_at_once(x.shape[2:], self.device) // x.shape[1])
        for i in range(0, len(x), size):
            seen = to_input(as_tensor(x[i : i + size]).to(self.device))
            for network in self.networks:
                z = network.trunk(seen.flatten(0, 1)).float().unflatten(0, seen.shape[:2])
                logits[i : i + size] += network.along(z).double().cpu().numpy() / len(self.networks)
        logits = logits * self.scale + self.shift[: logits.shape[1]]
        return np.asarray(logits[..., :1] - logits[..., 1:])

    def of_unseen(self, x: NDArray[Any], rows: Ints) -> Floats:
        """Log-odds (m, H-1, K-1) of trajectories `rows` of the data fitted, x being what they saw; NaN where they were
        learned from."""
        return np.where(np.isin(rows, self.unseen)[:, None, None], self(x), np.nan)

    def saved(self) -> dict[str, Any]:
        return {"networks": self.networks, "scale": self.scale, "shift": self.shift, "unseen": self.unseen}
