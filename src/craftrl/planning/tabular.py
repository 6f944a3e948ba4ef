"""Q-learning on encoded states: once the encoder is there, a table of values is all that has to be learned."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_method, check_number, check_room_in_memory, check_whole, is_whole, shown
from craftrl.errors import InvalidDataError, NotFittedError
from craftrl.planning.curves import Curve

__all__ = ["TabularQ"]

Step = float | Literal["visits"]


class TabularQ:
    """Q-learning (Watkins, 1989) for observations that are numbers 0..n-1 and actions 0..m-1.

    An environment wrapped by `craftrl.deploy.StateObservation` is of this kind, and so is any other with two `Discrete`
    spaces. Values start at `optimism`, so that whatever was not tried looks worth a try.

    H         a table for each step h = 1..H of an episode, in place of one for all. Needed for a model with an
              encoder for each step: its states have the same numbers at every h and mean something else each time.
              Where time runs out, it also lets the best action depend on what is left. Steps after H use the table of H
    discount  what a reward is worth one step later
    step      how far a value moves towards what was seen: a number in (0, 1], or "visits" for 1/n at the nth visit,
              which converges in random worlds and is slow at the start
    epsilon   how often a random action is taken in a state that is new; falls with visits, see `half`
    half      visits of a state after which epsilon is half as large: it is epsilon * half / (half + visits)
    optimism  the value that everything starts with; the largest possible return, or 0 for none
    seed      of the random actions, and of the first episode

    After `fit`: `q_` (H or 1, n, m), `visits_` of the same shape, `steps_` (environment steps so far) and `curve_`, the
    return of every episode, random actions included, over environment steps.
    """

    q_: NDArray[np.float64]
    visits_: NDArray[np.int64]
    steps_: int

    def __init__(
        self,
        H: int | None = None,
        discount: float = 0.95,
        step: Step = 0.5,
        epsilon: float = 0.2,
        half: float = 10.0,
        optimism: float = 1.0,
        seed: int = 0,
    ) -> None:
        self.H = H
        self.discount = discount
        self.step = step
        self.epsilon = epsilon
        self.half = half
        self.optimism = optimism
        self.seed = seed

    def fit(self, env: Any, steps: int) -> Self:
        """Learn from so many environment steps, from nothing; the last episode may be broken off."""
        self._check()
        check_whole("steps", steps, 1)
        n, m = _size(env, "observation_space"), _size(env, "action_space")
        check_room_in_memory("The table of values", 16 * (self.H or 1) * n * m, "lower H")
        self.q_ = np.full((self.H or 1, n, m), float(self.optimism))
        self.visits_ = np.zeros(self.q_.shape, dtype=np.int64)
        self.steps_ = 0
        self._episodes: list[tuple[int, float]] = []
        self._rng = np.random.default_rng(self.seed)
        return self.partial_fit(env, steps)

    def partial_fit(self, env: Any, steps: int) -> Self:
        """Learn from so many more, in new episodes; the first call is `fit`."""
        if not hasattr(self, "q_"):
            return self.fit(env, steps)
        self._check()
        check_whole("steps", steps, 1)
        sizes = _size(env, "observation_space"), _size(env, "action_space")
        if self.q_.shape[1:] != sizes:
            raise InvalidDataError(
                f"The environment must have {self.q_.shape[1]} states and {self.q_.shape[2]} actions, as before; it "
                f"has {sizes[0]} and {sizes[1]}; call fit to start anew."
            )
        end = self.steps_ + steps
        while self.steps_ < end:
            self._episode(env, end)
        return self

    def act(self, state: int, h: int = 1) -> int:
        """The action of the largest value in a state, at step h where there is a table for each step."""
        self._check_fitted()
        check_whole("state", state, 0, self.q_.shape[1] - 1)
        check_whole("h", h, 1)
        return int(self.q_[self._layer(h), state].argmax())

    @property
    def curve_(self) -> Curve:
        """The return of every whole episode, at the number of environment steps at which it ended."""
        self._check_fitted()
        return Curve.of(self._episodes)

    def _episode(self, env: Any, end: int) -> None:
        state, _ = env.reset(seed=self.seed if self.steps_ == 0 else None)
        total, h, over = 0.0, 1, False
        while not over and self.steps_ < end:
            action = self._explore(self._layer(h), state)
            after, reward, terminated, truncated, _ = env.step(action)
            self._update(h, state, action, float(reward), after, bool(terminated))
            self.steps_ += 1
            state, total, h, over = after, total + float(reward), h + 1, bool(terminated or truncated)
        if over:
            self._episodes.append((self.steps_, total))

    def _explore(self, layer: int, state: int) -> int:
        values, seen = self.q_[layer, state], self.visits_[layer, state].sum()
        half = float(self.half)
        if self._rng.random() < self.epsilon * half / (half + seen):
            return int(self._rng.integers(len(values)))
        return int(self._rng.choice(np.flatnonzero(values == values.max())))

    def _update(self, h: int, state: int, action: int, reward: float, after: int, terminated: bool) -> None:
        """A value moves towards reward + discount * best value afterwards; after the end there is none."""
        here = self._layer(h), state, action
        target = reward if terminated else reward + self.discount * self.q_[self._layer(h + 1), after].max()
        self.visits_[here] += 1
        rate = 1 / self.visits_[here] if self.step == "visits" else self.step
        self.q_[here] += rate * (target - self.q_[here])

    def _layer(self, h: int) -> int:
        return min(h, len(self.q_)) - 1

    def _check(self) -> None:
        if self.H is not None:
            check_whole("H", self.H, 1)
        check_number("discount", self.discount, "a number from 0 to 1", lambda v: 0 <= v <= 1)
        if not (isinstance(self.step, str) and self.step == "visits"):
            advice = 'or "visits" for one over the number of visits'
            check_number("step", self.step, "a number in (0, 1]", lambda v: 0 < v <= 1, advice)
        check_number("epsilon", self.epsilon, "a number from 0 to 1", lambda v: 0 <= v <= 1)
        check_number("half", self.half, "a positive number", lambda v: v > 0)
        check_number("optimism", self.optimism, "a finite number", lambda _: True)
        check_whole("seed", self.seed)

    def _check_fitted(self) -> None:
        if not hasattr(self, "q_"):
            raise NotFittedError("TabularQ must be fitted first; call fit(env, steps).")


def _size(env: Any, space: str) -> int:
    """How many numbers a Discrete space from 0 has; no other space will do."""
    check_method("env", env, "step", "a Gymnasium environment")
    found = getattr(env, space, None)
    n = getattr(found, "n", None)
    if not is_whole(n) or getattr(found, "shape", None) != () or getattr(found, "start", 0) != 0:
        raise InvalidDataError(
            f"The environment must have Discrete observations and actions, counted from 0; its {space} is "
            f"{shown(found)}; wrap it with craftrl.deploy.StateObservation."
        )
    return int(n)  # type: ignore[arg-type]
