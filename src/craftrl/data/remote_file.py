"""A file of a store as Python's file objects are, for readers that jump about in it."""

from __future__ import annotations

import io
import os
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from craftrl.data.remote import Remote

__all__ = ["RemoteFile"]

BLOCK = 2**16  # bytes
BLOCKS = 256  # kept


class RemoteFile(io.RawIOBase):
    """Small reads are served from blocks that are kept, each large one is one request for just these bytes.

    Headers, directories and indices lie close together and are read in small pieces; arrays are read once.

    tail  the last bytes of the file, where somebody has read them already
    """

    def __init__(self, remote: Remote, size: int, tail: bytes = b"") -> None:
        super().__init__()
        self.remote, self.size, self.tail = remote, size, tail
        self._at = 0
        self._blocks: OrderedDict[int, bytes] = OrderedDict()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.size}[whence]
        if base + offset < 0:
            raise ValueError(f"there is nothing before a file, and place {base + offset} was asked for")
        self._at = base + offset
        return self._at

    def readall(self) -> bytes:
        """The rest, in one request."""
        start, self._at = self._at, max(self._at, self.size)
        return self.remote.read_range(start, self._at) if start < self._at else b""

    def readinto(self, out: Any, /) -> int:
        left = memoryview(out).cast("B")
        n_bytes = max(min(len(left), self.size - self._at), 0)
        left[:n_bytes] = self._bytes(self._at, self._at + n_bytes)
        self._at += n_bytes
        return n_bytes

    def _bytes(self, start: int, stop: int) -> bytes:
        known = self.size - len(self.tail)
        if start >= known:
            return self.tail[start - known : stop - known]
        if stop - start >= BLOCK:
            return self.remote.read_range(start, stop)
        blocks = range(start // BLOCK, -(-stop // BLOCK))
        data = b"".join(self._block(i) for i in blocks)
        return data[start - blocks.start * BLOCK : stop - blocks.start * BLOCK]

    def _block(self, i: int) -> bytes:
        if i not in self._blocks:
            self._blocks[i] = self.remote.read_range(i * BLOCK, min((i + 1) * BLOCK, self.size))
            if len(self._blocks) > BLOCKS:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(i)
        return self._blocks[i]
