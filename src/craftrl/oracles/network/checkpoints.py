"""Checkpoints: a killed training run goes on where it stopped, and only there."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import torch

from craftrl.data.files import written_whole
from craftrl.data.ranks import ALONE, Ranks
from craftrl.errors import InvalidDataError

__all__ = ["Checkpoint"]


class Checkpoint:
    """One file per training run, replaced in one move, so that a kill leaves the last whole one.

    settings  how is trained; a file with others is refused
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
                f"The checkpoint {self.path} belongs to other settings; use them again, or give an empty folder."
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
            self.ranks.from_first(lambda: self._write(state))

    def _write(self, state: dict[str, Any]) -> None:
        assert self.path is not None, "there is a folder"
        content = io.BytesIO()
        torch.save({**state, "settings": self.settings, "targets": self.targets}, content)
        with written_whole(self.path, "checkpoint") as temporary, temporary.open("wb") as file:
            file.write(hashlib.sha256(content.getbuffer()).digest())
            file.write(content.getbuffer())


def _split(data: bytes) -> tuple[bytes, bytes]:
    """The checksum in front of a checkpoint, and the checkpoint."""
    return data[: hashlib.sha256().digest_size], data[hashlib.sha256().digest_size :]
