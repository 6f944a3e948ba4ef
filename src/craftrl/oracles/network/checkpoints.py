"""Checkpoints: a killed fit goes on where it stopped, and only there.

A long training run saves where it stands after every epoch (`Checkpoint`). Small classifiers, of which a fit trains
hundreds, are saved when they are finished (`Finished`).
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from craftrl._version import __version__
from craftrl.data.files import written_whole
from craftrl.data.ranks import ALONE, Ranks
from craftrl.errors import InvalidDataError

__all__ = ["Checkpoint", "Finished"]

Weights = dict[str, Tensor]
ROOM = 2**30  # bytes of finished heads that are kept


class Checkpoint:
    """One file per training run, replaced in one move, so that a kill leaves the last whole one.

    settings  how is trained and from what data, in words; a file with others is refused
    targets   a digest of what is learned; a file with another one is of another run, and nothing is taken from it
    ranks     the first of them writes, and reads for all: only it must see the folder. The state is that of the whole
              training, so that another number of ranks can go on with it
    """

    def __init__(
        self, folder: str | Path | None, name: str, settings: str, targets: str = "", ranks: Ranks = ALONE
    ) -> None:
        self.path = None if folder is None else Path(folder) / f"{name}.pt"
        self.ranks = ranks
        self.settings = settings
        self.targets = targets

    def load(self, device: torch.device) -> dict[str, Any] | None:
        found = self.ranks.from_first(self._read)
        if found is None:
            return None
        try:
            digest, content = _split(found)
            if hashlib.sha256(content).digest() != digest:
                raise ValueError("its checksum does not fit")
            saved = torch.load(io.BytesIO(content), map_location=device, weights_only=True)
            settings = saved["settings"]
        except Exception as error:
            raise self._unreadable() from error
        if settings != self.settings:
            raise InvalidDataError(
                f"The checkpoint {self.path} belongs to other settings or data, or to another version of craftrl; use "
                "those again, or give an empty folder."
            )
        return saved if saved.get("targets", "") == self.targets else None

    def _read(self) -> bytes | None:
        """The file, if there is one."""
        try:
            return None if self.path is None or not self.path.exists() else self.path.read_bytes()
        except OSError as error:
            raise self._unreadable() from error

    def _unreadable(self) -> InvalidDataError:
        return InvalidDataError(
            f"The checkpoint {self.path} cannot be read; it may come from elsewhere or be damaged; delete that one "
            "file to train this part again."
        )

    def save(self, state: dict[str, Any]) -> None:
        if self.path is not None:
            self.ranks.from_first(lambda: self.write(state))

    def write(self, state: dict[str, Any]) -> int:
        """Save, and say how many bytes that took; for the first rank alone."""
        assert self.path is not None, "there is a folder"
        content = io.BytesIO()
        torch.save({**state, "settings": self.settings, "targets": self.targets}, content)
        with written_whole(self.path, "checkpoint") as temporary, temporary.open("wb") as file:
            file.write(hashlib.sha256(content.getbuffer()).digest())
            return file.write(content.getbuffer())


class Finished:
    """Heads that a fit has trained: the same fit, started again, takes them from here and trains the others.

    Each training run has a file in the folder `heads`, named by a digest of all that it learned from and how. A fit
    asks for the same heads in the same order every time, since log-odds, clusters and states follow from what was
    trained before. So the first heads are kept, up to `room` bytes in all, and those after them are trained again.
    """

    def __init__(self, folder: str | Path | None, ranks: Ranks = ALONE, room: int = ROOM) -> None:
        self.folder = None if folder is None else Path(folder) / "heads"
        self.ranks = ranks
        self.room = room
        self._used: int | None = None

    def heads(
        self, name: str, key: Callable[[], str], device: torch.device, train: Callable[[], Sequence[Weights]]
    ) -> Sequence[Weights]:
        """The weights of the heads with this name and key; they are trained if they are not here."""
        if self.folder is None:
            return train()
        digest = key()
        file = Checkpoint(self.folder / name, digest, f"{__version__} {digest}", ranks=self.ranks)
        found = file.load(device)
        if found is not None:
            return found["heads"]
        weights = train()
        self.ranks.from_first(lambda: self._keep(file, weights))
        return weights

    def _keep(self, file: Checkpoint, weights: Sequence[Weights]) -> None:
        assert self.folder is not None, "somebody asked for a file"
        if self._used is None:
            self._used = sum(path.stat().st_size for path in self.folder.glob("*/*.pt"))
        if self._used < self.room:
            self._used += file.write({"heads": list(weights)})


def _split(data: bytes) -> tuple[bytes, bytes]:
    """The checksum in front of a checkpoint, and the checkpoint."""
    return data[: hashlib.sha256().digest_size], data[hashlib.sha256().digest_size :]
