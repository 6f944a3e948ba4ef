"""What any world must keep to: the Ex-BMDP of the paper, by its tables and by sampling.

Paper: Section 2.2
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.data.dataset import TrajectoryDataset
from craftrl.envs.collection import collect, sample_noise_path
from craftrl.envs.contrast import contrasting_policies
from craftrl.envs.exbmdp import ExBMDP, reachable_states
from craftrl.envs.policies import Policy
from craftrl.testing.claims import about, must

__all__ = ["check_world"]

MANY, FEW = 4000, 60
SIGMAS = 5  # how far a share may be from the one claimed


def check_world(world: ExBMDP) -> None:
    """Raise AssertionError at the first thing that a world must keep to and this one does not.

    Checked are the tables of the latent dynamics, that both inverses recover what was emitted, shapes, dtype and range
    of observations, that collecting follows T and repeats itself for a seed, that the noise knows nothing of the
    actions, and that it has the marginals that the world claims. A small world takes about a second.
    """
    must(isinstance(world, ExBMDP), f"A world must be an ExBMDP; {type(world).__name__} is none.")
    _check_tables(world)
    _check_observations(world)
    with about("Two policies for the world"):
        policies = contrasting_policies(world, alpha=0.7)
    _check_collection(world, policies)
    _check_noise_is_exogenous(world, policies)
    _check_marginals(world)


@about("The tables of a world")
def _check_tables(world: ExBMDP) -> None:
    """Latent dynamics are tables from one start."""
    must(world.H >= 2, f"A world must have at least two steps; it has H = {world.H}.")
    must(world.n_states(1) == 1, f"There must be one state at h = 1; there are {world.n_states(1)}.")
    for h in range(1, world.H):
        T, shape = np.asarray(world.T(h)), (world.n_states(h), world.n_actions)
        found, top = f"{T.dtype} of shape {T.shape}", world.n_states(h + 1) - 1
        ok = T.shape == shape and T.dtype.kind in "iu"
        must(ok, f"T({h}) must be an integer table of shape {shape}; it is {found}.")
        ok = T.min() >= 0 and T.max() <= top
        must(ok, f"T({h}) must lead to states in 0..{top}; it leads to {T.min()}..{T.max()}.")
        s_h, a_h = np.indices(shape).reshape(2, -1)
        must(np.array_equal(world.step(s_h, a_h, h), T[s_h, a_h]), f"step must be what T says; at h = {h} it differs.")
    must(all(reached.any() for reached in reachable_states(world)), "Every step must have a state that is reached.")


@about("Observations and their inverses")
def _check_observations(world: ExBMDP) -> None:
    """The promised shape, dtype and range; and the block assumption: both inverses recover what was emitted."""
    rng = np.random.default_rng(0)
    for h, e_h in enumerate(_noise_path(world, 5 * FEW, seed=1), start=1):
        s_h = rng.integers(world.n_states(h), size=len(e_h))
        x_h = world.emit(s_h, e_h, h, rng)
        wanted, found = f"{world.obs_dtype} of shape (n, *{world.obs_shape})", f"{x_h.dtype} of shape {x_h.shape}"
        ok = x_h.shape == (len(e_h), *world.obs_shape) and x_h.dtype == world.obs_dtype
        must(ok, f"Observations must be {wanted}; at h = {h} they are {found}.")
        low, high = x_h.min(), x_h.max()
        ok = low >= 0 and high <= world.obs_high
        must(ok, f"Observations must lie in [0, {world.obs_high}]; at h = {h} they lie in [{low}, {high}].")
        for name, inverse, emitted in (("phi_star", world.phi_star, s_h), ("phi_e", world.phi_e, e_h)):
            same = np.array_equal(inverse(x_h, h), emitted)
            must(same, f"{name} must recover what was emitted from every observation; at h = {h} it does not.")
    image = world.render(x_h[0])
    ok = image.ndim == 3 and image.shape[-1] == 3 and image.dtype == np.uint8
    must(ok, f"render must give a uint8 image (rows, columns, 3); it gives {image.dtype} of shape {image.shape}.")


@about("Collected data")
def _check_collection(world: ExBMDP, policies: Sequence[Policy]) -> None:
    """Collected states follow T, and a seed gives the same data again."""
    once, again, other = (collect(world, policies, FEW, seed=seed) for seed in (3, 3, 4))
    s, a = once.truth.states, once.truth.actions
    for h in range(1, world.H):
        same = np.array_equal(s[:, h], world.T(h)[s[:, h - 1], a[:, h - 1]])
        must(same, f"Collected states must follow T; after h = {h} they do not.")
        same = np.array_equal(world.phi_star(once.tau.at(h + 1), h + 1), s[:, h])
        must(same, f"phi_star must read the collected states; at h = {h + 1} it does not.")
    must(_observations(once.tau) == _observations(again.tau), "One seed must give the same data twice; it does not.")
    must(_observations(once.tau) != _observations(other.tau), "Another seed must give other data; it gives the same.")


@about("Collected noise")
def _check_noise_is_exogenous(world: ExBMDP, policies: Sequence[Policy]) -> None:
    """The noise is the same whatever the agents do.

    Paper: Equation 1
    """
    first, second = (collect(world, order, FEW, seed=5) for order in (policies, policies[::-1]))
    differ = not np.array_equal(first.truth.states, second.truth.states)
    must(differ, "Different policies must lead to different states; they do not: no action changes anything.")
    for h in range(1, world.H + 1):
        same = np.array_equal(world.phi_e(first.tau.at(h), h), world.phi_e(second.tau.at(h), h))
        must(same, f"The noise must not depend on states or actions; at h = {h} it does.")


@about("Noise and its marginals")
def _check_marginals(world: ExBMDP) -> None:
    """The noise has the marginals that the world claims."""
    for h, e_h in enumerate(_noise_path(world, MANY, seed=2), start=1):
        claimed = np.asarray(world.noise_marginal(h))
        if claimed.ndim == e_h.ndim - 1:
            seen = e_h.mean(axis=0)
        else:
            seen = (e_h[:, : len(claimed), None] == np.arange(claimed.shape[-1])).mean(axis=0)
        shapes = f"{seen.shape}; it has {claimed.shape}"
        must(seen.shape == claimed.shape, f"noise_marginal({h}) must have the shape of the noise, {shapes}.")
        ok = claimed.min() >= 0 and claimed.max() <= 1
        must(ok, f"noise_marginal({h}) must be probabilities; some are not in [0, 1].")
        off = np.abs(seen - claimed)
        ok = (off <= SIGMAS * np.sqrt(claimed * (1 - claimed) / MANY) + 1e-9).all()
        must(ok, f"The noise must have the marginals that noise_marginal({h}) claims; one is off by {off.max():.3f}.")


def _noise_path(world: ExBMDP, n: int, seed: int) -> list[NDArray[Any]]:
    return list(sample_noise_path(world, n, np.random.default_rng(seed)))


def _observations(tau: TrajectoryDataset) -> bytes:
    return b"".join(tau.at(h).tobytes() for h in range(1, tau.H + 1))
