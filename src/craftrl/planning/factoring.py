"""One state of a world whose actions slip: the agents' successor distributions as policies times effects.

The rows of P (K, m), the successor distributions of K agents in one state, are mixtures of the effects of the actions:
P = policies (K, r) @ effects (r, m), all rows probability vectors. Policies times an invertible matrix, and effects
times its inverse, give the same P, so something must say which pair is meant. Here it is the one whose effects span the
least volume. It is the true one, up to the order of the actions, where the rank of P is r and the policies are
sufficiently scattered: their convex hull holds the ball that is inscribed in the simplex of all policies (Fu, Huang and
Sidiropoulos 2019; Schur 2026, arXiv 2603.17577, for agents and actions).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.spatial import ConvexHull, QhullError

__all__ = ["Factors", "factor", "rank_above_noise", "read_as_moves", "scatter"]

Floats = NDArray[np.float64]
BEYOND = 1.0  # how far a singular value must lie beyond the largest that noise has
VOLUME = 2.0  # weight of the log-volume beside the log-likelihood, in nats; between 1 and 6 nothing changes
STARTS = 2
TINY = 1e-12


@dataclass(frozen=True)
class Factors:
    """policies (K, r), effects (r, m), the rank that the counts show, and the `scatter` of the policies."""

    policies: Floats
    effects: Floats
    rank: int
    scatter: float | None


def factor(counts: Floats, most: int | None, rng: np.random.Generator) -> Factors:
    """Factors of one state's counts (K, m); at most `most` actions, as many as the counts show otherwise."""
    rank = rank_above_noise(counts)
    r = rank if most is None else min(rank, most)
    if r == 1:
        return Factors(np.ones((len(counts), 1)), counts.sum(axis=0, keepdims=True) / counts.sum(), rank, None)
    starts = [_extreme_rows(counts, r), *(_random_rows(counts, r, rng) for _ in range(STARTS - 1))]
    fits = [_least_volume(counts, effects) for effects in starts]
    _, policies, effects = min(fits, key=lambda fit: fit[0])
    return Factors(policies, effects, rank, scatter(policies))


def read_as_moves(counts: Floats) -> Factors:
    """Each successor as the effect of an action of its own, for states that cannot be factored."""
    return Factors(counts / counts.sum(axis=1, keepdims=True), np.eye(counts.shape[1]), rank_above_noise(counts), None)


def rank_above_noise(counts: Floats) -> int:
    """How many actions the agents' successor distributions can carry: the rank of their table above sampling noise.

    The table of standardised residuals from independence of agent and successor has the variance 1 in every entry if
    there is nothing but noise, and then its largest singular value is about sqrt(K-1) + sqrt(m-1).
    """
    seen = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    if min(seen.shape, default=0) < 2:
        return 1
    expected = np.outer(seen.sum(axis=1), seen.sum(axis=0)) / seen.sum()
    values = np.linalg.svd((seen - expected) / np.sqrt(expected), compute_uv=False)
    noise = np.sqrt(seen.shape[0] - 1) + np.sqrt(seen.shape[1] - 1)
    return 1 + int((values > noise + BEYOND).sum())


def scatter(policies: Floats) -> float | None:
    """How much of the inscribed ball the agents' policies (K, r) hold: 1 or more is sufficiently scattered.

    The least distance of a facet of their convex hull from the uniform policy, over the radius of the ball; negative
    where the uniform policy lies outside. None for two actions, where least volume always finds two agents that never
    take one of them, whatever the truth; and 0 where the hull is flat.
    """
    r = policies.shape[1]
    if r < 3:
        return None
    basis = np.linalg.svd(np.eye(r) - 1 / r)[0][:, : r - 1]
    try:
        hull = ConvexHull((policies - 1 / r) @ basis)
    except (QhullError, ValueError):
        return 0.0
    return float(-hull.equations[:, -1].max() * np.sqrt(r * (r - 1)))


def _extreme_rows(counts: Floats, r: int) -> Floats:
    """The distributions of r agents furthest from one another, by successive projection: exact where r agents each
    always take one action of their own (Donoho and Stodden 2003: separability)."""
    P = (counts + 0.5) / (counts + 0.5).sum(axis=1, keepdims=True)
    left, chosen = P.copy(), []
    for _ in range(r):
        size = (left**2).sum(axis=1)
        i = int(size.argmax())
        chosen.append(i)
        left = left - np.outer(left @ left[i], left[i]) / max(size[i], TINY)
    return P[chosen]


def _random_rows(counts: Floats, r: int, rng: np.random.Generator) -> Floats:
    P = (counts + 0.5) / (counts + 0.5).sum(axis=1, keepdims=True)
    return rng.dirichlet(np.ones(len(P)), r) @ P


def _least_volume(counts: Floats, start: Floats) -> tuple[float, Floats, Floats]:
    """Policies and effects of least -log-likelihood + VOLUME * log-volume of the effects, from a start of effects."""
    K, (r, m), total = len(counts), start.shape, counts.sum()

    def unpacked(theta: Floats) -> tuple[Floats, Floats]:
        return _softmax(theta[: K * r].reshape(K, r)), _softmax(theta[K * r :].reshape(r, m))

    def loss(theta: Floats) -> tuple[float, Floats]:
        policies, effects = unpacked(theta)
        mixed = policies @ effects + TINY
        gram = effects @ effects.T + 1e-6 * np.eye(r)
        ratio = counts / mixed
        to_policies = -ratio @ effects.T
        to_effects = -policies.T @ ratio + VOLUME * np.linalg.solve(gram, effects)
        value = -(counts * np.log(mixed)).sum() + VOLUME / 2 * np.linalg.slogdet(gram)[1]
        parts = [_through_softmax(policies, to_policies), _through_softmax(effects, to_effects)]
        return float(value) / total, np.concatenate([part.ravel() for part in parts]) / total

    theta = np.concatenate([np.zeros(K * r), np.log(start + 1e-3).ravel()])
    limits = {"maxiter": 300, "maxfun": 400, "ftol": 1e-11, "gtol": 1e-8}
    found = minimize(loss, theta, jac=True, method="L-BFGS-B", bounds=[(-12, 12)] * len(theta), options=limits)
    return float(found.fun), *unpacked(found.x)


def _softmax(theta: Floats) -> Floats:
    weight = np.exp(theta - theta.max(axis=1, keepdims=True))
    return weight / weight.sum(axis=1, keepdims=True)


def _through_softmax(p: Floats, gradient: Floats) -> Floats:
    return p * (gradient - (p * gradient).sum(axis=1, keepdims=True))
