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


@contextmanager
def fit_bar(H: int) -> Iterator[None]:
    """One bar over all phases of the fit within the block, with the time left if they take their usual shares."""
    form, live = "{desc}: {percentage:3.0f}%|{bar}| {elapsed} so far, about {remaining} left", sys.stderr.isatty()
    given = {
        "total": 100.0,
        "leave": False,
        "delay": 0.0 if live else 1.0,
        "smoothing": 0,
        "miniters": 0,
        "bar_format": form,
    }
    with progress_bar(desc=STATES[0], **given) as bar:
        phase, begun, trains = STATES, 0, False  # finite classes train nothing, and have this phase alone

        def watch(what: str, h: int | None) -> None:
            nonlocal phase, begun, trains
            before, network = phase, re.match(r"(?:training )?log-odds-(\d+)-of-(\d+)", what)
            if network:
                phase, trains = AGENTS, True
            elif phase is AGENTS and (h is not None or what in ("cells", "states")):
                phase = STATES
            name, begin, end = phase if trains else (STATES[0], 0.0, 1.0)
            begins = what in ("run", "cells", "states") if phase is STATES else what.startswith("training")
            begun = begins + (begun if phase is before else 0)
            stands = re.search(r"minibatch (\d+) of at most (\d+)", what)
            part = int(stands[1]) / int(stands[2]) if stands else (h or 0) / H * (phase is STATES)
            done = 1 - 0.5 ** ((max(begun, 1) - 1 + part) / HALF)
            if network:
                done = (int(network[1]) - 1 + part) / int(network[2])
            bar.n = max(bar.n, 100 * (begin + (end - begin) * done))
            bar.set_description_str(COMPILING if what == COMPILING else name, refresh=phase is not before)
            if phase is not before:  # tqdm takes it that nothing was drawn within the delay, and would not wipe it away
                bar.last_print_t = max(bar.last_print_t, bar.start_t + bar.delay)
            bar.update(0)

        with watched_by(watch):
            yield


def fit_bar_if(wanted: bool | None, H: int) -> AbstractContextManager[None]:
    """`fit_bar`, if that is wanted and nobody watches already; None: if there is a terminal."""
    there = sys.stderr.isatty() if wanted is None else wanted
    return fit_bar(H) if there and not watched() else nullcontext()
