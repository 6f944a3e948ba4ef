"""The one place that calls oracles: it counts and times what they are asked, and remembers what they answered.

While the bounds alpha, eta and nu are searched for, Algorithm 2 runs many times on one dataset. Most of what it asks
was asked before: log-odds depend on the grid alone, separation and encoding on the labels of one step. A question that
was asked before gets the answer that it got then.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from craftrl.core.encoders import Encoder
from craftrl.core.grid import Grid
from craftrl.core.merging import Merged
from craftrl.core.seam import Coupling, EncoderFit, LogOdds, PreparedOracle, Profiles, Separation
from craftrl.core.starts import StartTest
from craftrl.core.trace import OracleUse
from craftrl.data.dataset import TrajectoryDataset
from craftrl.progress import tell

__all__ = ["RememberingOracle"]

Ints = NDArray[np.integer]
Answer = TypeVar("Answer")
ABOUT_A_STEP = ("log-odds given states", "profiles", "separation", "encoding")
MEMORY_BYTES = 2**30  # beyond this the answers that were not asked for longest are forgotten


class RememberingOracle(PreparedOracle):
    """An oracle that counts, times and, where that pays, remembers; it answers as the one that it stands for.

    prepared  the oracle that answers
    remember  whether the same questions may come again: costs memory, and the hashing of labels
    """

    def __init__(self, prepared: PreparedOracle, remember: bool, max_bytes: int = MEMORY_BYTES) -> None:
        self.prepared = prepared
        self.remember = remember
        self.max_bytes = max_bytes
        self.N_s = prepared.N_s
        self.seed = prepared.seed
        self._use: dict[str, OracleUse] = {}
        self._answers: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._bytes = 0
        if remember:
            prepared.keep_for_reuse()

    @property
    def use(self) -> tuple[OracleUse, ...]:
        """What was asked so far, one entry for each kind of question."""
        return tuple(self._use.values())

    def log_odds(self, grid: Grid, coupling: Coupling) -> LogOdds:
        return self._answer("log-odds", lambda: self.prepared.log_odds(grid, coupling), grid, coupling)

    def log_odds_given(self, h: int, label: Ints, f: LogOdds, grid: Grid) -> Any:
        if type(self.prepared).log_odds_given is PreparedOracle.log_odds_given:
            return f.at(h)
        return self._answer(
            "log-odds given states", lambda: self.prepared.log_odds_given(h, label, f, grid), h, label, f.bins, grid
        )

    def profiles(self, h: int, label: Ints, f: LogOdds, grid: Grid) -> Profiles | None:
        if type(self.prepared).profiles is PreparedOracle.profiles:
            return None
        return self._answer("profiles", lambda: self.prepared.profiles(h, label, f, grid), h, label, f.bins, grid)

    def separation(self, h: int, cluster: Ints, n_clusters: int) -> Separation:
        return self.prepared.separation(h, cluster, n_clusters)

    def merge(self, h: int, cluster: Ints, predecessors: Sequence[int], strays: bool = False) -> Merged:
        # What came of the comparisons is kept, and not what they were made with: of a network that is the logits of
        # every observation for every cluster, a hundred megabytes a step.
        return self._answer(
            "separation",
            lambda: self.prepared.merge(h, cluster, predecessors, strays),
            h, cluster, tuple(predecessors), strays,
        )  # fmt: skip

    def encode(self, h: int, label: Ints, n_states: int) -> EncoderFit:
        return self._answer("encoding", lambda: self.prepared.encode(h, label, n_states), h, label, n_states)

    def read(self, encoder: Encoder, tau: TrajectoryDataset, h: int) -> Ints:
        # The answer holds the encoder, so that no other one can come to have its id.
        answer = self._answer("reading", lambda: (encoder, self.prepared.read(encoder, tau, h)), id(encoder), h)
        return answer[1]

    def share(self, labels: Ints, n_states: int, name: str) -> EncoderFit:
        return self._answer("sharing", lambda: self.prepared.share(labels, n_states, name), labels, n_states, name)

    def instead_of(self, coupling: Coupling) -> tuple[Coupling, str] | None:
        return self.prepared.instead_of(coupling)

    def expect_several_starts(self) -> None:
        self.prepared.expect_several_starts()

    def find_starts(self) -> Ints:
        return self._answer("starts", self.prepared.find_starts)

    def test_start(self) -> StartTest | None:
        if type(self.prepared).test_start is PreparedOracle.test_start:
            return None
        return self._answer("start", self.prepared.test_start)

    def _answer(self, question: str, ask: Callable[[], Answer], *what: Any) -> Answer:
        use = self._use.get(question, OracleUse(question, 0, 0, 0.0))
        key = (question, *map(_hashable, what)) if self.remember else None
        if key in self._answers:
            self._answers.move_to_end(key)
            self._use[question] = OracleUse(question, use.asked + 1, use.reused + 1, use.seconds)
            return self._answers[key][0]
        tell(question, what[0] if what and isinstance(what[0], int) and question in ABOUT_A_STEP else None)
        start = time.perf_counter()
        answer = ask()
        seconds = time.perf_counter() - start
        self._use[question] = OracleUse(question, use.asked + 1, use.reused, use.seconds + seconds)
        if key is not None:
            self._keep(key, answer)
        return answer

    def _keep(self, key: Hashable, answer: Any) -> None:
        size = _bytes_of(answer)
        self._answers[key] = answer, size
        self._bytes += size
        while self._bytes > self.max_bytes and len(self._answers) > 1:
            self._bytes -= self._answers.popitem(last=False)[1][1]


def _hashable(value: Any) -> Hashable:
    """Arrays by a digest of their content, everything else as it is."""
    if not isinstance(value, np.ndarray):
        return value
    return hashlib.blake2b(np.ascontiguousarray(value).data, digest_size=16).digest(), value.shape, value.dtype.str


def _bytes_of(answer: Any) -> int:
    """The arrays that an answer holds, which is nearly all of it."""
    if isinstance(answer, np.ndarray):
        return answer.nbytes
    parts = answer if isinstance(answer, tuple) else vars(answer).values() if hasattr(answer, "__dict__") else ()
    return sum(part.nbytes for part in parts if isinstance(part, np.ndarray))
