"""Episodes of Gymnasium environments, stepped one after the other or by several processes.

Everything random is drawn before the first step: a seed for the environment of each episode, and one number in [0, 1)
for each action. So an episode is the same whichever process runs it, and what happens by itself in the environment
knows nothing of the agents' chances.

Paper: Equation 1 (the noise-free policy property)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import is_whole
from craftrl.arguments import shown as text
from craftrl.envs.gymworld import GymWorld
from craftrl.envs.policies import Policy, choose_actions
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.progress import progress_bar

__all__ = ["Episodes", "step_episodes"]

Ints = NDArray[np.integer]
BLOCKS_PER_WORKER = (
    8  # few enough that making environments costs little, many enough to share the work and show progress
)
MAX_SEED = 2**31  # environments take seeds below this


@dataclass(frozen=True)
class Plan:
    """What was drawn for some episodes: whose they are, which of the agent's, and all that is random in them."""

    agent: Ints  # (n,)
    episode: Ints  # (n,)
    env_seed: Ints  # (n,)
    u: NDArray[np.float64]  # (n, H-1), uniform on [0, 1): chooses the actions

    def part(self, start: int, stop: int) -> Plan:
        rows = slice(start, stop)
        return Plan(self.agent[rows], self.episode[rows], self.env_seed[rows], self.u[rows])


@dataclass(frozen=True)
class Episodes:
    """What was seen and what was true; past the end of an episode, observations are 0, states and actions -1."""

    x: NDArray[Any]  # (n, H, *obs)
    states: Ints  # (n, H)
    actions: Ints  # (n, H-1)
    lengths: Ints  # (n,)


def step_episodes(
    world: GymWorld,
    policies: Sequence[Policy],
    counts: Sequence[int],
    seed: int | np.random.Generator | np.random.SeedSequence | None,
    workers: int,
    progress: bool,
) -> Episodes:
    """counts[k] episodes of each policy k, grouped by agent."""
    _check(policies)
    plan = _draw(counts, world.H, seed)
    with _progress(len(plan.agent), progress) as count:
        if workers > 1:
            return _joined(_run_blocks(world, policies, plan, workers, count))
        env = world.made()
        try:
            return _run(world, policies, env, plan, count)
        finally:
            env.close()


def _run_blocks(
    world: GymWorld, policies: Sequence[Policy], plan: Plan, workers: int, count: Callable[[int], Any]
) -> Iterator[Episodes]:
    from joblib import Parallel, delayed, parallel_config

    n, run = len(plan.agent), uuid4().hex
    size = -(-n // (workers * BLOCKS_PER_WORKER))
    blocks = [plan.part(start, start + size) for start in range(0, n, size)]
    with parallel_config(backend="loky", n_jobs=workers, inner_max_num_threads=1, idle_worker_timeout=20):
        parallel = Parallel(return_as="generator", batch_size=1)
        for episodes in parallel(delayed(_run_in_worker)(run, world, policies, block) for block in blocks):
            count(len(episodes.lengths))
            yield episodes


_env_of_run: dict[str, Any] = {}  # in a worker process: the environment of the run it is working for


def _run_in_worker(run: str, world: GymWorld, policies: Sequence[Policy], plan: Plan) -> Episodes:
    """One block; the environment is made for the first block of a run and kept for the others."""
    if run not in _env_of_run:
        for env in _env_of_run.values():
            env.close()
        _env_of_run.clear()
        _env_of_run[run] = world.made()
    return _run(world, policies, _env_of_run[run], plan)


def _joined(parts: Iterable[Episodes]) -> Episodes:
    done = list(parts)
    names = ("x", "states", "actions", "lengths")
    return Episodes(*(np.concatenate([getattr(part, name) for part in done]) for name in names))


def _check(policies: Sequence[Policy]) -> None:
    if any(policy.batch for policy in policies):
        raise InvalidParameterError(
            "Agents of a GymWorld may not learn from their earlier episodes, which may run in other processes; one "
            "with a batch was given; use another policy."
        )


def _draw(counts: Sequence[int], H: int, seed: int | np.random.Generator | np.random.SeedSequence | None) -> Plan:
    latent_rng, noise_rng = np.random.default_rng(seed).spawn(2)
    agent = np.repeat(np.arange(len(counts)), counts)
    episode = np.concatenate([np.arange(m) for m in counts])
    return Plan(agent, episode, noise_rng.integers(MAX_SEED, size=len(agent)), latent_rng.random((len(agent), H - 1)))


def _run(
    world: GymWorld, policies: Sequence[Policy], env: Any, plan: Plan, count: Callable[[int], Any] = lambda n: None
) -> Episodes:
    """The planned episodes, one after the other."""
    episodes = _empty(world, len(plan.agent), env.observation_space)
    for i, k in enumerate(plan.agent):
        _run_one(world, policies[k], env, plan, i, episodes)
        count(1)
    return episodes


def _empty(world: GymWorld, n: int, space: Any) -> Episodes:
    if getattr(space, "shape", None) is None or getattr(space, "dtype", None) is None:
        raise InvalidDataError(
            f"Observations must be arrays of one shape; the environment's are {space}; wrap it, for instance in "
            "gymnasium.wrappers.AddRenderObservation."
        )
    return Episodes(
        np.zeros((n, world.H, *space.shape), dtype=space.dtype),
        np.full((n, world.H), -1),
        np.full((n, world.H - 1), -1),
        np.ones(n, dtype=np.int64),
    )


def _run_one(world: GymWorld, policy: Policy, env: Any, plan: Plan, i: int, episodes: Episodes) -> None:
    """Episode i of the plan, written to row i; it may end before H."""
    x, _ = env.reset(seed=int(plan.env_seed[i]))
    states, number, over = episodes.states, plan.episode[i : i + 1], False
    for h in range(1, world.H + 1):
        episodes.x[i, h - 1], states[i, h - 1], episodes.lengths[i] = x, _true_state(world, env), h
        if over or h == world.H:
            return
        a = int(choose_actions(policy.probabilities(states[i : i + 1, :h], number), plan.u[i : i + 1, h - 1])[0])
        episodes.actions[i, h - 1] = a
        if a >= world.n_actions:
            raise InvalidParameterError(
                f"A policy must choose among the world's {world.n_actions} actions; one chose action {a} at h = {h}; "
                "build it for this world."
            )
        x, _, terminated, truncated, _ = env.step(world.actions[a])
        over = terminated or truncated


def _true_state(world: GymWorld, env: Any) -> int:
    s = world.state(env)
    if not (is_whole(s) and 0 <= s < world.n_states):
        raise InvalidDataError(
            f"The true state must be an integer in 0..{world.n_states - 1}; {text(s)} was read; check "
            "`state` and `n_states`."
        )
    return int(s)


@contextmanager
def _progress(n: int, shown: bool) -> Iterator[Callable[[int], Any]]:
    """A function to call with the number of episodes just finished; with a bar, where one is shown."""
    if not shown:
        yield lambda done: None
        return
    with progress_bar(total=n, desc="collect", unit="episode") as bar:
        yield bar.update
