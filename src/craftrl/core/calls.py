"""The one place that asks oracles: it counts and times what they are asked, and remembers what they answered.

While bounds are chosen, Algorithm 2 runs several times on one dataset, and most of what it asks was asked before:
log-odds depend on the grid alone, separation and encoding on the labels of one step.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from craftrl.core.grid import Grid
from craftrl.core.trace import OracleUse
from craftrl.progress import tell

__all__ = ["OracleCalls"]

Answer = TypeVar("Answer")
Asked = ParamSpec("Asked")
MEMORY_BYTES = 2**30  # beyond this, the answers that were not asked for longest are forgotten


class OracleCalls:
    """Counts, times and, with `remember`, keeps the answers to questions; call it with a question, a method, arguments.

    The same method with the same arguments gives the same answer, so a question that was asked before need not be
    answered again. Remembering costs memory, and the hashing of labels.
    """

    def __init__(self, remember: bool = False, max_bytes: int = MEMORY_BYTES) -> None:
        self.remember = remember
        self.max_bytes = max_bytes
        self._use: dict[str, OracleUse] = {}
        self._answers: OrderedDict[Hashable, tuple[Any, int, Any]] = OrderedDict()
        self._bytes = 0

    @property
    def use(self) -> tuple[OracleUse, ...]:
        """What was asked so far, one entry for each kind of question."""
        return tuple(self._use.values())

    def __call__(
        self, question: str, method: Callable[Asked, Answer], *args: Asked.args, **kwargs: Asked.kwargs
    ) -> Answer:
        """What `method` answers."""
        use = self._use.get(question, OracleUse(question, 0, 0, 0.0))
        key = (question, *map(_hashable, args)) if self.remember else None
        if key in self._answers:
            self._answers.move_to_end(key)
            self._use[question] = OracleUse(question, use.asked + 1, use.reused + 1, use.seconds)
            return self._answers[key][0]
        tell(question, args[0] if args and isinstance(args[0], int) else None)
        start = time.perf_counter()
        answer = method(*args, **kwargs)
        seconds = time.perf_counter() - start
        self._use[question] = OracleUse(question, use.asked + 1, use.reused, use.seconds + seconds)
        if key is not None:
            size = _bytes_of(answer)
            self._answers[key] = answer, size, args
            self._bytes += size
            self._forget()
        return answer

    def _forget(self) -> None:
        while self._bytes > self.max_bytes and len(self._answers) > 1:
            self._bytes -= self._answers.popitem(last=False)[1][1]


def _hashable(value: Any) -> Hashable:
    """Arrays by a digest of their content, plain values as they are, everything else by identity."""
    if isinstance(value, (bool, int, float, str, tuple, Grid)):
        return value
    if not isinstance(value, np.ndarray):
        return id(value)  # whoever remembers the answer holds the arguments, so that no other one gets this id
    return hashlib.blake2b(np.ascontiguousarray(value).data, digest_size=16).digest(), value.shape, value.dtype.str


def _bytes_of(answer: Any) -> int:
    """The arrays that an answer holds, which is nearly all of it."""
    if isinstance(answer, np.ndarray):
        return answer.nbytes
    parts = answer if isinstance(answer, tuple) else vars(answer).values() if hasattr(answer, "__dict__") else ()
    return sum(part.nbytes for part in parts if isinstance(part, np.ndarray))
