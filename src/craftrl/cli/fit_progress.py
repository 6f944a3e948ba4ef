"""How far `craftrl fit` is, on one line: which run of CRAFT, which step, what is learned."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from craftrl.data.ranks import speaks
from craftrl.progress import progress_bar, watched_by

__all__ = ["shown"]


@contextmanager
def shown(H: int) -> Iterator[None]:
    """A bar over the steps of the present run, for the fit within the block.

    A search for bounds makes many runs, and nobody knows how many: the time left is that of the present one.
    """
    if not speaks():
        yield
        return
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
