"""Parts of files in a store, many of them at once: a request takes its time, however little it asks for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from craftrl.data.attempts import attempted
from craftrl.data.filesystems import filesystem, patience

__all__ = ["read_ranges"]

AT_ONCE = 128  # ranges asked for together

Range = tuple[str | os.PathLike[str], int, int]  # URL, start, stop


def read_ranges(wanted: Sequence[Range]) -> list[bytes]:
    """The bytes start..stop of each of these files, all at once where the store can; all files of one store.

    EOFError where a file ends before; FileNotFoundError where there is none.
    """
    found: list[bytes] = []
    for first in range(0, len(wanted), AT_ONCE):
        found += _read_batch(wanted[first : first + AT_ONCE])
    return found


def _read_batch(wanted: Sequence[Range]) -> list[bytes]:
    """Only those that failed are asked for again."""
    urls = [os.fspath(url) for url, _, _ in wanted]
    fs, _ = filesystem(urls[0])
    found: list[Any] = [b"" if start >= stop else None for _, start, stop in wanted]

    def read() -> None:
        left = [i for i, data in enumerate(found) if data is None]
        starts, stops = [wanted[i][1] for i in left], [wanted[i][2] for i in left]
        limit = patience(fs, sum(stops) - sum(starts))
        paths = [fs._strip_protocol(urls[i]) for i in left]
        answers: Iterable[Any] = fs.cat_ranges(paths, starts, stops, on_error="return", **limit)
        failed: Exception | None = None
        for i, answer in zip(left, answers):
            if isinstance(answer, Exception):
                failed = failed or _as_end(answer, urls[i])
            elif len(answer) != wanted[i][2] - wanted[i][1]:
                failed = failed or _ended(urls[i])
            else:
                found[i] = bytes(answer)
        if failed is not None:
            raise failed

    attempted(urls[0] if len(urls) == 1 else urls[0].rpartition("/")[0], "read", read)
    return found


def _as_end(error: Exception, url: str) -> Exception:
    """A store that is asked for bytes behind the end of an object refuses."""
    response: Any = getattr(error.__cause__, "response", None) or {}
    return _ended(url) if response.get("Error", {}).get("Code") in ("InvalidRange", "416") else error


def _ended(url: str) -> EOFError:
    return EOFError(f"{url} is shorter than it should be")
