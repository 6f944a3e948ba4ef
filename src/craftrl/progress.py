"""One kind of progress bar for everything that takes long, and a way to watch a fit from outside."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

__all__ = [
    "COMPILED",
    "COMPILING",
    "BarOfWords",
    "progress_bar",
    "shown",
    "shown_where",
    "tell",
    "watched",
    "watched_by",
]

IN_A_FILE = 30.0  # seconds between two states of a bar where nobody watches: a log should stay short
QUIET = 1.0  # seconds after which a log says something at all
COMPILING, COMPILED = "compiling what counts, once on this machine", "compiled"
LONG = ("compiling", "training")  # what begins so may take minutes before there is anything else to tell

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


def watched() -> bool:
    """Whether anybody watches."""
    return _watcher.get() is not None


def tell(what: str, h: int | None = None) -> None:
    """Tell whoever watches, if anybody does."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher(what, h)


class BarOfWords:
    """Says beside a bar what is going on: what may last at once, and the rest as often as that can be read.

    say    shows a text with the bar; it takes the text, and whether to draw the bar now
    every  seconds that pass on a terminal between two texts; in a log it is half a minute
    """

    def __init__(self, say: Callable[[str, bool], None], every: float = 0.0) -> None:
        self.say = say
        live = sys.stderr.isatty()
        self.every = every if live else IN_A_FILE
        self._text = ""
        self._compiling = False
        self._due = time.monotonic() + (every if live else QUIET)

    def tell(self, what: str, text: str) -> None:
        """Something begins: what, and how that is put."""
        if what == COMPILED:  # and what was going on before goes on
            self.say(self._text, self.every < IN_A_FILE)
            return
        again = what == COMPILING and self._compiling  # there are several loops, each compiled by itself
        self._compiling |= what == COMPILING
        self._text = self._text if what == COMPILING else text
        now = time.monotonic()
        drawn = now >= self._due or (what.startswith(LONG) and not again)
        self._due = now + self.every if drawn else self._due
        self.say(text, drawn)


@contextmanager
def shown(H: int) -> Iterator[None]:
    """A bar over the steps of the present run, for the fit within the block.

    A search for bounds makes many runs, and nobody knows how many: the time left is that of the present one.
    """
    live = sys.stderr.isatty()
    with progress_bar(total=H - 1, desc="fit", unit="step", leave=False, delay=0.0 if live else QUIET) as bar:
        words = BarOfWords(lambda text, drawn: bar.set_description_str(text, refresh=drawn))
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
                bar.n = h - 1
            words.tell(what, f"run {max(runs, 1)}, {what}" + ("" if h is None else f" at h = {h}"))

        with watched_by(watch):
            yield


def shown_where(wanted: bool | None, H: int) -> AbstractContextManager[None]:
    """`shown`, if that is wanted and nobody watches already; None: if there is a terminal."""
    there = sys.stderr.isatty() if wanted is None else wanted
    return shown(H) if there and not watched() else nullcontext()
