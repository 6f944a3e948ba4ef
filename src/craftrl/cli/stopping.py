"""Commands that are told to stop: by Ctrl-C, or by SIGTERM, which batch systems and `kill` send."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Terminated", "stopped_as_by_hand"]


class Terminated(KeyboardInterrupt):
    """SIGTERM came."""


@contextmanager
def stopped_as_by_hand() -> Iterator[None]:
    """Within the block SIGTERM ends a command as Ctrl-C does, so that what is half-written is removed.

    Python would leave without a word, and with parts of files on the disk. Whoever handles the signal already goes on
    doing so.
    """
    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if ours:
        signal.signal(signal.SIGTERM, _stop)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _stop(number: int, frame: Any) -> None:
    raise Terminated
