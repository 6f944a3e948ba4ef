"""Any Gymnasium environment as a world: no tables, only an environment to step, and perhaps a way to read its state.

Everything random is drawn before the first step: a seed for the environment of each episode, and one number in [0, 1)
for each action. So an episode is the same whichever process runs it, and what happens by itself in the environment
knows nothing of the agents' chances. This module imports no Gymnasium: it asks of an environment only what every
Gymnasium environment has.

Paper: Equation 1 (the noise-free policy property)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import (
    check_function,
    check_method,
    check_room_in_memory,
    check_whole,
    is_whole,
    quoted,
)
from craftrl.arrays import Ints
from craftrl.envs.agents import MarkovPolicy, Policy, check_contrast, choose_actions, tilted
from craftrl.envs.exbmdp import MAX_STEPS, check_seed
from craftrl.errors import CraftError, InvalidDataError, InvalidParameterError
from craftrl.progress import progress_bar

BLOCKS_PER_WORKER = 8  # few enough that making environments costs little, many enough to share the work
MAX_SEED = 2**31  # environments take seeds below this


@dataclass(frozen=True)
class GymWorld:
    """A Gymnasium environment, and what `collect` must know about it.

    make      makes the environment; its observations must be arrays of one shape, and what happens in an episode must
              depend on the seed that `reset` gets and on the actions alone, not on earlier episodes
    state     reads the true state from the environment: an integer in 0..n_states-1. It is ground truth, kept for
              scoring and for the agents' choices, and goes into no observation. None: it is not known
    n_states  how many true states there are
    actions   what `step` is given for each action: action a of an agent is `actions[a]`. Left out: all the discrete
              actions of the environment
    H         observations per episode
    agents    agents that come with the world, if any; `collect` takes any others as well

    CRAFT's theory asks that every episode start in one true state, that actions move it deterministically, and that
    nothing else knows the actions. An environment made by others may break this a little; measure by how much.

    Paper: Section 2.2 (what is assumed of such a world)
    """

    make: Callable[[], Any]
    state: Callable[[Any], int] | None = None
    n_states: int = 1
    actions: Sequence[Any] = ()
    H: int = 10
    agents: tuple[MarkovPolicy, ...] = ()

    def __post_init__(self) -> None:
        if not callable(self.make):  # which a class of environments is as well
            raise InvalidParameterError(f"make must make the environment when called; {quoted(self.make)} was given.")
        if self.state is not None:
            check_function("state", self.state, "a function that reads the true state from the environment")
        check_whole("H", self.H, 2, MAX_STEPS, "an episode has at least two steps")
        check_whole("n_states", self.n_states, 1)
        listed = isinstance(self.actions, Sequence) or (isinstance(self.actions, np.ndarray) and self.actions.ndim > 0)
        if isinstance(self.actions, (str, bytes)) or not listed:
            raise InvalidParameterError(f"actions must list what `step` is given; {quoted(self.actions)} was given.")
        if not len(self.actions):
            object.__setattr__(self, "actions", self._all_actions())
        if not isinstance(self.agents, (list, tuple)) or not all(isinstance(p, MarkovPolicy) for p in self.agents):
            raise InvalidParameterError(f"agents must be a list of Markov policies; {quoted(self.agents)} was given.")

    def made(self) -> Any:
        """A new environment."""
        env = self.make()
        check_method("What make() returns", env, "step", "a Gymnasium environment")
        return env

    @property
    def n_actions(self) -> int:
        """|A|."""
        return len(self.actions)

    def policies(self, alpha: float = 1.0, seed: int = 0) -> tuple[MarkovPolicy, ...]:
        """The agents that come with the world; where none do, two with opposite preferences.

        In every state, or at all times where states are not known, these two rank the actions in an order drawn from
        `seed`, one from the first to the last and the other from the last to the first: their log-odds of
        neighbouring actions are `alpha` apart.
        """
        if self.agents:
            return self.agents
        check_contrast(alpha)
        check_seed(seed)
        n = self.n_actions
        ranks = np.tile(np.arange(n) - (n - 1) / 2, (self.n_states, 1))
        ranks = np.random.default_rng(seed).permuted(ranks, axis=1)
        tables = (tilted(np.ones(n), sign * alpha / 2 * ranks) for sign in (1, -1))
        return tuple(MarkovPolicy([table] * (self.H - 1)) for table in tables)

    def environment(self) -> Any:
        """A new environment to act in: action a is `actions[a]`, and an episode has H observations."""
        from gymnasium import spaces, wrappers

        numbered = wrappers.TransformAction(
            self.made(), lambda a: self.actions[int(a)], spaces.Discrete(self.n_actions)
        )
        return wrappers.TimeLimit(numbered, self.H - 1)

    def _all_actions(self) -> range:
        env = self.made()
        space = getattr(env, "action_space", None)
        env.close()
        n, start = getattr(space, "n", None), getattr(space, "start", 0)
        if not is_whole(n) or not is_whole(start):  # the n of a MultiBinary may be a shape
            raise InvalidParameterError(
                f"The environment must have discrete actions; its actions are {space}; wrap it so, or list some of "
                "them as `actions`."
            )
        return range(int(start), int(start) + int(n or 0))

    def true_state(self, env: Any) -> int:
        """The true state of this moment; 0 where it is not known."""
        s = 0 if self.state is None else self.state(env)
        if not (is_whole(s) and 0 <= s < self.n_states):
            raise InvalidDataError(
                f"The true state must be an integer in 0..{self.n_states - 1}; {quoted(s)} was read; check `state` and "
                "`n_states`."
            )
        return int(s)


class Draw(NamedTuple):
    """One episode: whose it is, which of the agent's, and all that is random in it."""

    agent: int
    episode: int
    env_seed: int
    u: NDArray[np.float64]  # (H-1,), uniform on [0, 1): chooses the actions


Episodes = tuple[NDArray[Any], Ints, Ints, Ints]  # observations (n, H, *obs), lengths (n,), states and actions


def play_episodes(
    world: GymWorld, policies: Sequence[Policy], counts: Sequence[int], seed: Any, workers: int, progress: bool
) -> Episodes:
    """counts[k] episodes of each policy k, grouped by agent.

    Past the end of an episode observations are 0, states and actions -1; states are -1 where they are not known.
    """
    if any(policy.batch for policy in policies):
        raise InvalidParameterError(
            "Agents of a GymWorld may not learn from their earlier episodes, which may run in other processes; one "
            "with a batch was given; use another policy."
        )
    env, n = world.made(), sum(counts)
    space = env.observation_space
    env.close()
    if getattr(space, "shape", None) is None or getattr(space, "dtype", None) is None:
        raise InvalidDataError(
            f"Observations must be arrays of one shape; the environment's are {space}; wrap it, for instance in "
            "gymnasium.wrappers.AddRenderObservation."
        )
    needed = n * world.H * (prod(space.shape) * space.dtype.itemsize + 8)  # and a number for each action
    check_room_in_memory(f"{n} trajectories", needed, "collect fewer, or shorter ones")
    latent_rng, noise_rng = np.random.default_rng(seed).spawn(2)
    env_seed, u = noise_rng.integers(MAX_SEED, size=n), latent_rng.random((n, world.H - 1))
    whose = ((k, i) for k, m in enumerate(counts) for i in range(m))
    draws = [Draw(*of, *drawn) for of, drawn in zip(whose, zip(env_seed.tolist(), u))]
    with progress_bar(total=n, desc="collect", unit="episode", disable=not progress) as bar:
        if workers == 1:
            return _play(world, policies, draws, bar.update)
        from joblib import Parallel, delayed

        size, found = -(-n // (workers * BLOCKS_PER_WORKER)), []
        parallel = Parallel(workers, backend="loky", return_as="generator", batch_size=1)
        blocks = (draws[start : start + size] for start in range(0, n, size))
        for episodes in parallel(delayed(_play)(world, policies, block) for block in blocks):
            bar.update(len(episodes[0]))
            found.append(episodes)
    x, lengths, states, actions = map(np.concatenate, zip(*found))
    return x, lengths, states, actions


def _play(
    world: GymWorld, policies: Sequence[Policy], draws: Sequence[Draw], count: Callable[[int], Any] = lambda done: None
) -> Episodes:
    """The episodes that were drawn, one after the other, in an environment of their own."""
    env, n = world.made(), len(draws)
    space = env.observation_space
    x, lengths = np.zeros((n, world.H, *space.shape), dtype=space.dtype), np.ones(n, dtype=np.int64)
    states, actions = np.full((n, world.H), -1), np.full((n, world.H - 1), -1)
    try:
        for i, (agent, episode, env_seed, u) in enumerate(draws):
            seen, over = env.reset(seed=env_seed)[0], False
            for h in range(world.H):
                _check_observation(seen, x[i, h])
                x[i, h], states[i, h] = seen, world.true_state(env)
                lengths[i] = h + 1
                if over or h == world.H - 1:
                    break
                history = states[i : i + 1, : h + 1]
                (a,) = choose_actions(policies[agent], history, np.array([episode]), world.n_actions, u[h : h + 1])
                actions[i, h] = a
                seen, _, terminated, truncated, _ = env.step(world.actions[a])
                over = terminated or truncated
            count(1)
    except CraftError:
        raise
    except Exception as error:  # an environment of others may fail at anything
        text = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0].rstrip('.')}"
        raise InvalidDataError(
            f"The environment must run without errors; {text}, in episode {episode + 1} of agent {agent}."
        ) from error
    finally:
        env.close()
    return x, lengths, states if world.state is not None else np.full_like(states, -1), actions


def _check_observation(seen: Any, wanted: NDArray[Any]) -> None:
    if np.shape(seen) != wanted.shape or not np.can_cast(np.asarray(seen).dtype, wanted.dtype, "same_kind"):
        raise InvalidDataError(
            f"Observations must be as the environment says, {wanted.dtype} of shape {wanted.shape}; one is "
            f"{np.asarray(seen).dtype} of shape {np.shape(seen)}; correct its observation_space."
        )
