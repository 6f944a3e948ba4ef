"""`compiled`: the decorator of every loop that numba compiles.

The machine code is kept on disk. Where there is none yet, as on first use, compiling takes seconds: whoever watches is
told, or, where nobody does, the terminal if there is one.

This module imports numba; see `count_kernel`.
"""

from __future__ import annotations

import multiprocessing
import sys
from typing import Any

from numba import njit
from numba.core import event

from craftrl.data.ranks import speaks
from craftrl.progress import COMPILED, COMPILING, tell, watched

__all__ = ["compiled"]

OURS = "craftrl."

compiled: Any = njit(cache=True, nogil=True)


class _Told(event.Listener):
    """Tells of every loop of ours that is compiled, and not of those whose code is read from disk."""

    def __init__(self) -> None:
        self.said = False

    def on_start(self, event: Any) -> None:
        if not _is_ours(event):
            return
        tell(COMPILING)
        alone = not watched() and speaks() and multiprocessing.parent_process() is None
        if alone and sys.stderr.isatty() and not self.said:
            self.said = True
            print(f"craftrl: {COMPILING} ...", file=sys.stderr)

    def on_end(self, event: Any) -> None:
        if _is_ours(event):
            tell(COMPILED)


def _is_ours(event: Any) -> bool:
    return str(event.data["dispatcher"].py_func.__module__).startswith(OURS)


TOLD = _Told()
event.register("numba:compile", TOLD)
