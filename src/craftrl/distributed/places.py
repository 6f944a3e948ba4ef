"""Shards as the places where data lies: a question goes to all of them, and the sum of their answers comes back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

import numpy as np

from craftrl.core.spread import Recipe, needed_by
from craftrl.distributed.executor import Executor, Handle
from craftrl.distributed.parts import answered, made

__all__ = ["ShardPlaces"]

SMALL, KEPT = 2**14, 2**12  # bytes of an answer that is kept for the next time, and how many are
AT_ONCE = 32  # items worked on side by side, so that their questions travel together

Item = TypeVar("Item")
Result = TypeVar("Result")


class ShardPlaces:
    """Packed shards, wherever an executor keeps them.

    packed  a handle of each shard's bit planes
    """

    def __init__(self, executor: Executor, packed: Sequence[Handle]) -> None:
        self.executor = executor
        self.packed = packed
        self._own = threading.local()
        self._held: dict[Recipe, list[Handle]] = {}
        self._answers: dict[Recipe, Any] = {}

    def held(self, recipe: Recipe) -> Recipe:
        """The same, made once on every shard and kept there."""
        if recipe not in self._held:
            self._held[recipe] = self._submit(made, recipe, needed_by([recipe]))
        return Recipe.held(recipe)

    def _submit(self, function: Callable[..., Any], what: Any, held: Sequence[Recipe]) -> list[Handle]:
        """A function of every shard, and of what is held of it."""
        values = zip(*(self._held[recipe] for recipe in held)) if held else [()] * len(self.packed)
        return [self.executor.submit(function, here, what, held, *own) for here, own in zip(self.packed, values)]

    def totals(self, questions: Sequence[Recipe]) -> list[Any]:
        """The sums over all shards; those asked within `together` wait for each other."""
        batch: _Batch | None = getattr(self._own, "batch", None)
        return self._ask(questions) if batch is None else batch.ask(questions)

    def together(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """map(function, items), results in order, with the questions of many items asked at once.

        To ask costs the same for one question or for thirty: a message to every shard and back. So each item has a
        thread, which waits with its question until every other one has a question as well, or has come to its end.
        """
        if len(items) == 1 or getattr(self._own, "batch", None) is not None:
            yield from map(function, items)
            return
        for first in range(0, len(items), AT_ONCE):
            yield from self._side_by_side(function, items[first : first + AT_ONCE])

    def _side_by_side(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        batch = _Batch(self._ask, len(items))

        def work(item: Item) -> Result:
            self._own.batch = batch
            try:
                return function(item)
            finally:
                self._own.batch = None
                batch.leave()

        with ThreadPoolExecutor(len(items)) as pool:  # in copies of this context, so that whoever watches still does
            at_work = [pool.submit(copy_context().run, work, item) for item in items]
            try:
                return [future.result() for future in at_work]
            except BaseException as error:  # such as Ctrl-C, of which threads hear nothing
                batch.stop(error)
                raise

    def _ask(self, questions: Sequence[Recipe]) -> list[Any]:
        """What was asked before is not asked again, if the answer was small enough to keep."""
        different = [question for question in dict.fromkeys(questions) if question not in self._answers]
        told: dict[Recipe, Any] = {}
        if different:
            sums = self.executor.total(self._submit(answered, different, needed_by(different)))
            told = dict(zip(different, sums, strict=True))
        found = [told[question] if question in told else self._answers[question] for question in questions]
        self._answers |= {q: sum_ for q, sum_ in told.items() if isinstance(sum_, np.ndarray) and sum_.nbytes <= SMALL}
        while len(self._answers) > KEPT:
            del self._answers[next(iter(self._answers))]
        return found


class _Batch:
    """Threads that ask together: as soon as all of those that have not come to their end wait for an answer."""

    def __init__(self, ask: Callable[[Sequence[Recipe]], list[Any]], size: int) -> None:
        self._ask = ask
        self._size = size
        self._waiting: list[_Waiting] = []
        self._changed = threading.Condition()
        self._stopped: BaseException | None = None

    def ask(self, questions: Sequence[Recipe]) -> list[Any]:
        mine = _Waiting(questions)
        with self._changed:
            if self._stopped is not None:
                raise self._stopped
            self._waiting.append(mine)
            self._ask_if_all_wait()
            self._changed.wait_for(lambda: mine.answers is not None or mine.error is not None)
        if mine.error is not None:
            raise mine.error
        assert mine.answers is not None
        return mine.answers

    def stop(self, error: BaseException) -> None:
        """Nothing is asked any more: who waits for an answer gets this error."""
        with self._changed:
            self._stopped = error
            for one in self._waiting:
                one.error = error
            self._waiting = []
            self._changed.notify_all()

    def leave(self) -> None:
        with self._changed:
            self._size -= 1
            self._ask_if_all_wait()

    def _ask_if_all_wait(self) -> None:
        if not self._waiting or len(self._waiting) < self._size:
            return
        asked, self._waiting = self._waiting, []
        try:
            answers = iter(self._ask([question for one in asked for question in one.questions]))
            for one in asked:
                one.answers = [next(answers) for _ in one.questions]
        except BaseException as error:
            for one in asked:
                one.error = error
        self._changed.notify_all()


class _Waiting:
    """Questions of one thread, and their answers as soon as they are there."""

    def __init__(self, questions: Sequence[Recipe]) -> None:
        self.questions = questions
        self.answers: list[Any] | None = None
        self.error: BaseException | None = None
