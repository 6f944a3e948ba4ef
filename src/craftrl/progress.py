"""One kind of progress bar for everything that takes long, and a way to watch a fit from outside."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

IN_A_FILE = 30.0  # seconds between two states of a bar where nobody watches: a log should stay short
COMPILING, COMPILED = "compiling what counts, once on this machine", "compiled"
# The phases of a fit, and the shares of its time at which each begins and ends, as measured on images.
AGENTS, STATES = ("telling the agents apart", 0.0, 0.5), ("finding states", 0.5, 1.0)
HALF = 5  # rounds of the second that are taken for half of them: nobody knows how many come

Watcher = Callable[[str, int | None], None]
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
    """Within the block, `watcher(what, h)` is called whenever a fit begins with something: "run", "separation" and so
    on, at step h where it is about one. A watcher sees what happens and changes nothing."""
    before = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(before)


def watched() -> bool:
    """Whether anybody watches."""
    return _watcher.get() is not None


def tell(what: str, h: int | None = None) -> None:
    """Tell whoever watches, if anybody does."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher(what, h)


class _Phases:
    """How far a fit is, read off what it tells: it trains networks, if it has any, and then finds states."""

    def __init__(self, H: int) -> None:
        self.H, self.phase, self.trains = H, STATES, False  # finite classes train nothing, and have one phase alone
        self.begun = 0  # parts of the phase: networks, or rounds

    def after(self, what: str, h: int | None) -> tuple[str, float]:
        """What is being done, and the percentage of the fit that is done."""
        before, network = self.phase, re.match(r"(?:training )?log-odds-(\d+)-of-(\d+)", what)
        if network:
            self.phase, self.trains = AGENTS, True
        elif self.phase is AGENTS and (h is not None or what in ("cells", "states")):
            self.phase = STATES
        in_states = self.phase is STATES
        begins = what in ("run", "cells", "states") if in_states else what.startswith("training")
        self.begun = begins + (self.begun if self.phase is before else 0)
        minibatch = re.search(r"minibatch (\d+) of at most (\d+)", what)
        part = int(minibatch[1]) / int(minibatch[2]) if minibatch else (h or 0) / self.H * in_states
        if network:
            done = (int(network[1]) - 1 + part) / int(network[2])
        else:
            done = 1 - 0.5 ** ((max(self.begun, 1) - 1 + part) / HALF)
        name, begin, end = self.phase if self.trains else (STATES[0], 0.0, 1.0)
        return name, 100 * (begin + (end - begin) * done)


@contextmanager
def fit_bar(H: int) -> Iterator[None]:
    """One bar over all phases of the fit within the block, with the time left if they take their usual shares."""
    form = "{desc}: {percentage:3.0f}%|{bar}| {elapsed} so far, about {remaining} left"
    delay = 0.0 if sys.stderr.isatty() else 1.0
    style = {"total": 100.0, "leave": False, "delay": delay, "smoothing": 0, "miniters": 0, "bar_format": form}
    phases = _Phases(H)
    with progress_bar(desc=STATES[0], **style) as bar:

        def watch(what: str, h: int | None) -> None:
            before = phases.phase
            name, percentage = phases.after(what, h)
            changed = phases.phase is not before
            bar.n = max(bar.n, percentage)
            bar.set_description_str(COMPILING if what == COMPILING else name, refresh=changed)
            if changed:  # tqdm takes it that nothing was drawn within the delay, and would not wipe it away
                bar.last_print_t = max(bar.last_print_t, bar.start_t + bar.delay)
            bar.update(0)

        with watched_by(watch):
            yield


def fit_bar_if(wanted: bool | None, H: int) -> AbstractContextManager[None]:
    """`fit_bar`, if that is wanted and nobody watches already; None: if there is a terminal."""
    there = sys.stderr.isatty() if wanted is None else wanted
    return fit_bar(H) if there and not watched() else nullcontext()
