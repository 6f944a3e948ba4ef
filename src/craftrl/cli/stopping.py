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
    doing so. Either signal may come while a library is being imported, which then fails with an error of its own: that
    is a stop as well.
    """
    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if ours:
        signal.signal(signal.SIGTERM, _stop)
    try:
        yield
    except Exception as error:
        if (stop := _stop_behind(error)) is not None:
            raise stop from error
        raise
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _stop_behind(error: BaseException | None) -> KeyboardInterrupt | None:
    """The signal that an error came of, if any."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error


def _stop(number: int, frame: Any) -> None:
    raise Terminated
