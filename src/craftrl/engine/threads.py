"""How many threads to use, and an ordered map over them: the compiled loops release the GIL."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from craftrl.arguments import check_whole

Item = TypeVar("Item")
Result = TypeVar("Result")

# Set by the user or, in its workers, by joblib: a limit for whatever runs threads of its own.
LIMITS = ("CRAFTRL_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS")


def usable_threads(n_threads: int | None = None) -> int:
    """`n_threads` if given; else the limit set in the environment; else one per core.

    Inside a worker, be it a process or a thread of a parallel experiment, the default is 1.
    """
    if n_threads is not None:
        check_whole("n_threads", n_threads, 1, advice="leave it out to use all cores")
        return int(n_threads)
    if threading.current_thread() is not threading.main_thread():
        return 1
    limits = [int(os.environ[name]) for name in LIMITS if os.environ.get(name, "").isdigit()]
    if limits or multiprocessing.parent_process() is not None:
        return max([1, *limits[:1]])
    from joblib import cpu_count  # knows about affinities and containers

    return int(cpu_count())


def ordered_map(function: Callable[[Item], Result], items: Iterable[Item], n_threads: int) -> Iterator[Result]:
    """map(function, items) on n_threads threads, results in order, few items taken or results waiting at any time."""
    if n_threads == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        waiting: deque[Future[Result]] = deque()
        for item in items:
            waiting.append(pool.submit(copy_context().run, function, item))  # whoever watches, watches it too
            if len(waiting) > 2 * n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
