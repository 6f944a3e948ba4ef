"""One kind of progress bar for everything that takes long."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["progress_bar"]

IN_A_FILE = 30.0  # seconds between two states of a bar where nobody watches: a log should stay short


def progress_bar(**given: Any) -> Any:
    """tqdm's bar with these arguments; it moves at once on a terminal, twice a minute in a log."""
    from tqdm import tqdm

    return tqdm(mininterval=0.1 if sys.stderr.isatty() else IN_A_FILE, **given)
