"""One kind of progress bar for everything that takes long, and a way to watch a fit from outside."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

__all__ = ["progress_bar", "shown", "tell", "watched_by"]

IN_A_FILE = 30.0  # seconds between two states of a bar where nobody watches: a log should stay short

Watcher = Callable[[str, int | None], None]
_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


def progress_bar(**given: Any) -> Any:
    """tqdm's bar with these arguments; it moves at once on a terminal, twice a minute in a log."""
    from tqdm import tqdm

    return tqdm(mininterval=0.1 if sys.stderr.isatty() else IN_A_FILE, **given)


@contextmanager
def watched_by(watcher: Watcher) -> Iterator[None]:
    """Within the block, `watcher(what, h)` is called whenever a fit begins with something: "run", "separation" and so
    on, at step h where it is about one. A watcher sees what happens and changes nothing."""
    before = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(before)


def tell(what: str, h: int | None = None) -> None:
    """Tell whoever watches, if anybody does."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher(what, h)


@contextmanager
def shown(H: int) -> Iterator[None]:
    """A bar over the steps of the present run, for the fit within the block.

    A search for bounds makes many runs, and nobody knows how many: the time left is that of the present one.
    """
    live = sys.stderr.isatty()
    with progress_bar(total=H - 1, desc="fit", unit="step", leave=False, delay=0.0 if live else 1.0) as bar:
        runs = 0

        def watch(what: str, h: int | None) -> None:
            nonlocal runs
            if what == "run":
                runs += 1
                if live:
                    bar.reset()
                else:  # which would write a line for every run
                    bar.n = bar.last_print_n = 0
                return
            if h is not None and h - 1 > bar.n:
                bar.update(h - 1 - bar.n)
            where = "" if h is None else f" at h = {h}"
            bar.set_description_str(f"run {max(runs, 1)}, {what}{where}", refresh=live)

        with watched_by(watch):
            yield
