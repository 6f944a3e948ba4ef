"""Imperfect worlds: the paper's assumptions broken on purpose, each by an amount `size` in [0, 1].

Every function in `VIOLATIONS` has the signature of `collect` with `size` before the seed and gives a `Collection`;
`size` = 0 gives what `collect` gives, bit for bit. What is random about a violation comes from a stream of its own, and
the set of places where it strikes grows with `size`.

Paper: Section 2.2 (determinism, one start), Equation 1 (noise-free policies, one law of the noise), Equation 5
(different agents), Section 6
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arrays import Ints
from craftrl.data.dataset import TrajectoryDataset
from craftrl.envs import Collection, ExBMDP, GroundTruth, MarkovPolicy, Policy, collect
from craftrl.envs.collection import episodes_per_agent, observe, sample_latent_paths, sample_noise_path

Seed = int | np.random.SeedSequence
Numbers = int | Sequence[int]

STREAM = 1_000_003  # the violation's child of the seed, far from those that `collect` spawns


def stream(seed: Seed) -> np.random.Generator:
    """The violation's own random numbers, apart from those of the collection with the same seed."""
    root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    return np.random.default_rng(np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, STREAM)))


def changed(world: ExBMDP, **methods: Any) -> ExBMDP:
    """The same world with other methods."""
    other = copy(world)
    vars(other).update(methods)
    return other


class _Otherwise(Policy):
    """A policy with other probabilities."""

    def __init__(self, policy: Policy, probabilities: Callable[[Ints, Ints], NDArray[np.float64]]) -> None:
        self.batch, self.look_back = policy.batch, policy.look_back  # type: ignore[method-assign]
        self.function = probabilities

    def probabilities(self, history: Ints, episode: Ints) -> NDArray[np.float64]:
        return self.function(history, episode)


# -- states that move otherwise than the policies say ------------------------------------------------------------


def collect_slippery(world: ExBMDP, policies: Sequence[Policy], n: Numbers, size: float, seed: Seed) -> Collection:
    """Rare departures from determinism: with probability `size`, s*_{h+1} is any state of step h+1.

    The state is drawn uniformly, whatever the action. A slip to where another action leads would break nothing:
    no learner that sees no actions can tell it from another policy. The ground truth holds the states
    visited and the actions meant.
    """
    rng = stream(seed)

    def step(s_h: Ints, a_h: Ints, h: int) -> Ints:
        slips = rng.random(len(a_h)) < size
        return np.where(slips, rng.integers(world.n_states(h + 1), size=len(a_h)), world.step(s_h, a_h, h))

    return collect(changed(world, step=step), policies, n, seed)


def collect_leaky(world: ExBMDP, policies: Sequence[Policy], n: Numbers, size: float, seed: Seed) -> Collection:
    """Policies that leak noise: with probability `size`, an agent's action follows the noise and not its policy.

    Agent k then takes action (e + k) mod |A|, e being the first entry of e_h: all agents watch the same noise, and
    each responds in its own way, so that noise tells the agents apart. In the toy world that is e^1,
    the frozen factor that the paper made to mislead.

    Paper: Equation 1 (the noise-free policy property), which this breaks
    """
    rng, counts = stream(seed), episodes_per_agent(n, len(policies))
    noise_rng = np.random.default_rng(deepcopy(seed)).spawn(2)[1]  # that of `collect`, from which it draws again
    e = np.stack([e_h.reshape(len(e_h), -1)[:, 0] for e_h in sample_noise_path(world, sum(counts), noise_rng)])
    own = np.split(e.astype(np.int64), np.cumsum(counts)[:-1], axis=1)  # (H, n) of each agent
    by_noise = [np.eye(world.n_actions)[(mine + k) % world.n_actions] for k, mine in enumerate(own)]

    def leak(k: int, policy: Policy) -> Policy:
        def probabilities(history: Ints, episode: Ints) -> NDArray[np.float64]:
            p, e_h = policy.probabilities(history, episode), by_noise[k][history.shape[1] - 1, episode]
            return np.where(rng.random((len(p), 1)) < size, e_h, p)

        return _Otherwise(policy, probabilities)

    return collect(world, [leak(k, policy) for k, policy in enumerate(policies)], n, seed)


def collect_scattered(world: ExBMDP, policies: Sequence[Policy], n: Numbers, size: float, seed: Seed) -> Collection:
    """Several starts: with probability `size`, a trajectory of any agent begins in another state than s*_1 = 0.

    The state is drawn uniformly from the others of step 2, and at h = 1 agent and world do there what they do there at
    h = 2. So the states of steps 2 and 3 must go by the same numbers.

    Paper: Section 2.2 (s*_1 is constant), which this breaks
    """

    def step(s_h: Ints, a_h: Ints, h: int) -> Ints:
        if h > 1:
            return world.step(s_h, a_h, h)
        return np.where(s_h > 0, world.step(s_h, a_h, 2), world.step(np.zeros_like(s_h), a_h, 1))

    def from_anywhere(policy: Policy) -> Policy:
        """It knows what to do at h = 1 in states other than 0: what it would do there at h = 2."""

        def probabilities(history: Ints, episode: Ints) -> NDArray[np.float64]:
            if history.shape[1] > 1:
                return policy.probabilities(history, episode)
            usual = policy.probabilities(np.zeros_like(history), episode)
            return np.where(history > 0, policy.probabilities(np.repeat(history, 2, axis=1), episode), usual)

        return _Otherwise(policy, probabilities)

    def starts(m: int) -> Ints:
        elsewhere = rng.random(m) < size
        return np.where(elsewhere, rng.integers(1, world.n_states(2), size=m), 0)

    rng, counts, other = stream(seed), episodes_per_agent(n, len(policies)), changed(world, step=step)
    latent_rng, noise_rng = np.random.default_rng(seed).spawn(2)
    agents = zip(map(from_anywhere, policies), counts)
    return observe(other, [sample_latent_paths(other, p, m, latent_rng, starts(m)) for p, m in agents], noise_rng)


# -- noise whose law is another one for another agent -------------------------------------------------------------


def collect_held_noise(world: ExBMDP, policies: Sequence[Policy], n: Numbers, size: float, seed: Seed) -> Collection:
    """Noise that is slower for all agents but agent 0: at each step it stands still with probability `size`.

    All of e_{h+1} is then e_h, as if what goes on in the background went more slowly while the other agents were
    recorded. The law of e_1 is the same for all, so that first observations alone give nothing away.

    Paper: Equation 1 (the noise of both datasets has one law), which this breaks
    """
    counts, own = episodes_per_agent(n, len(policies)), stream(seed)
    others = np.arange(sum(counts)) >= counts[0]

    def step_noise(e_h: NDArray[Any], h: int, rng: np.random.Generator) -> NDArray[Any]:
        held = others & (own.random(len(e_h)) < size)
        return np.where(held.reshape(-1, *[1] * (e_h.ndim - 1)), e_h, world.step_noise(e_h, h, rng))

    return collect(changed(world, step_noise=step_noise), policies, n, seed)


# -- agents that act alike where the paper asks them to differ -----------------------------------------------------


def agree_somewhere(policies: Sequence[MarkovPolicy], size: float, seed: Seed) -> list[MarkovPolicy]:
    """The same agents, but in a random share `size` of all (h, s) every agent acts as agent 0 does."""
    rng, shared = stream(seed), policies[0].tables
    alike = [rng.random(len(table))[:, None] < size for table in shared]
    return [MarkovPolicy([np.where(*tables) for tables in zip(alike, shared, mine.tables)]) for mine in policies]


def agree_at_steps(policies: Sequence[MarkovPolicy], size: float, seed: Seed, like: int = 0) -> list[MarkovPolicy]:
    """The same agents, but at a random share `size` of the steps every agent acts as agent `like` does.

    It matters whose policy they share. If it carries the state over to the next step, the next state can still be told
    from the one before; if it forgets it, as acting at random does, nothing ties the two.
    """
    alike = stream(seed).random(len(policies[0].tables)) < size
    return [
        MarkovPolicy([shared if same else own for same, shared, own in zip(alike, policies[like].tables, mine.tables)])
        for mine in policies
    ]


# -- recordings that went wrong ------------------------------------------------------------------------------------


def mislabel(collection: Collection, size: float, seed: Seed) -> Collection:
    """Give each trajectory, with probability `size`, to one of the other agents, drawn uniformly."""
    rng, tau, truth = stream(seed), collection.tau, collection.truth
    wrong = rng.random(tau.n) < size
    agent = np.where(wrong, (tau.agent + rng.integers(1, tau.K, size=tau.n)) % tau.K, tau.agent)
    order = np.argsort(agent, kind="stable")
    return Collection(tau.select(order, agent[order]), GroundTruth(truth.states[order], truth.actions[order]))


def corrupt(collection: Collection, size: float, seed: Seed) -> Collection:
    """Replace each observation, with probability `size`, by that of a trajectory drawn at random at the same step.

    The ground truth stays: it says where the agent really was.
    """
    rng, tau = stream(seed), collection.tau
    clean = np.stack([tau.at(h) for h in range(1, tau.H + 1)])
    x, struck = clean.copy(), rng.random((tau.H, tau.n)) < size
    for h in range(tau.H):
        hit = np.flatnonzero(struck[h])
        x[h, hit] = clean[h, rng.integers(tau.n, size=len(hit))]
    by_agent = [x[:, tau.agent_slice(k)].swapaxes(0, 1) for k in range(tau.K)]
    return Collection(TrajectoryDataset.from_arrays(by_agent, tau.lengths), collection.truth)


VIOLATIONS: dict[str, Callable[[Any, Any, Numbers, float, Seed], Collection]] = {
    "slips": collect_slippery,
    "leaks": collect_leaky,
    "agreement": lambda world, agents, n, size, seed: collect(world, agree_somewhere(agents, size, seed), n, seed),
    "mislabelled": lambda world, agents, n, size, seed: mislabel(collect(world, agents, n, seed), size, seed),
    "corrupted": lambda world, agents, n, size, seed: corrupt(collect(world, agents, n, seed), size, seed),
    "starts": collect_scattered,
    "noise": collect_held_noise,
    "alike": lambda world, agents, n, size, seed: collect(world, agree_at_steps(agents, size, seed), n, seed),
    # In the toy worlds agent 0 acts at random, which forgets the state, and agent 1 tends to repeat it.
    "alike, sticky": lambda world, agents, n, size, seed: collect(
        world, agree_at_steps(agents, size, seed, like=1), n, seed
    ),
}
