"""One kind of progress bar for everything that takes long, and a way to watch a fit from outside."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

IN_A_FILE = 30.0  # seconds between two states of a bar where nobody watches: a log should stay short
COMPILING, COMPILED = "compiling what counts, once on this machine", "compiled"
AGENTS, STATES = "telling the agents apart", "finding states"  # the phases of a fit
TRAINING = 0.5  # the share of the first, as measured on images; where no network is trained, there is the second alone
ROUNDS = ("run", "cells", "states")  # of the second phase begin with one of these
HALF = 5  # rounds that are taken for half of them: nobody knows how many come

Watcher = Callable[[str, int | None, float | None], None]
_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


def progress_bar(**given: Any) -> Any:
    """tqdm's bar with these arguments; it moves at once on a terminal, twice a minute in a log."""
    from tqdm import tqdm

    return tqdm(mininterval=0.1 if sys.stderr.isatty() else IN_A_FILE, **given)


@contextmanager
def doing(what: str) -> Iterator[None]:
    """On a terminal, a line that says what takes its time within the block, wiped away afterwards."""
    with progress_bar(desc=what, bar_format="{desc} ...", leave=False, disable=not sys.stderr.isatty()):
        yield


@contextmanager
def watched_by(watcher: Watcher) -> Iterator[None]:
    """Within the block, `watcher(what, h, trained)` is called whenever a fit begins with something: "run", "separation"
    and so on, at step h where it is about one; while networks are trained, with the share of it that is done. A watcher
    sees what happens and changes nothing."""
    before = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(before)


def watched() -> bool:
    """Whether anybody watches."""
    return _watcher.get() is not None


def tell(what: str, h: int | None = None, trained: float | None = None) -> None:
    """Tell whoever watches, if anybody does."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher(what, h, trained)


@contextmanager
def fit_bar(H: int, wanted: bool | None = True) -> Iterator[None]:
    """One bar over all phases of the fit within the block, with the time left if they take their usual shares; where
    it is wanted (None: if there is a terminal) and nobody watches already."""
    if watched() or not (sys.stderr.isatty() if wanted is None else wanted):
        yield
        return
    form = "{desc}: {percentage:3.0f}%|{bar}| {elapsed} so far, about {remaining} left"
    delay = 0.0 if sys.stderr.isatty() else 1.0
    style = {"total": 100.0, "leave": False, "delay": delay, "smoothing": 0, "miniters": 0, "bar_format": form}
    phase, begin, rounds = STATES, 0.0, 0
    with progress_bar(desc=phase, **style) as bar:

        def watch(what: str, h: int | None, trained: float | None) -> None:
            nonlocal phase, begin, rounds
            before = phase
            if trained is not None:
                phase, begin, rounds, done = AGENTS, TRAINING, 0, TRAINING * trained
            else:
                phase, rounds = STATES, rounds + (what in ROUNDS)
                done = begin + (1 - begin) * (1 - 0.5 ** ((max(rounds, 1) - 1 + (h or 0) / H) / HALF))
            bar.n = max(bar.n, 100 * done)
            bar.set_description_str(COMPILING if what == COMPILING else phase, refresh=phase is not before)
            if phase is not before:  # tqdm takes it that nothing was drawn within the delay, and would not wipe it away
                bar.last_print_t = max(bar.last_print_t, bar.start_t + bar.delay)
            bar.update(0)

        with watched_by(watch):
            yield
