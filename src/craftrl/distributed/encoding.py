"""States of all trajectories of a folder of shards, written shard by shard, never through the driver.

A folder of states holds `states_00000.npy`, `states_00001.npy`, ..., one for each shard of the data and in its order:
int32 (n, H), the state of every trajectory at every step, -1 where one is over. `states.json` lists them with their
agents, sizes and checksums. It is written last, and the folder gets its name only then: it is whole or not there. In a
store with a URL, names of files also bear a piece of their checksums, and the folder is what `states.json` says.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_flag, check_kind
from craftrl.data.files import (
    check_nothing_else,
    check_writable,
    moved_into_place,
    temporary_name,
    told_plainly,
    written_whole,
)
from craftrl.data.places import Place, source, target
from craftrl.data.publishing import publishing, taken
from craftrl.data.remote import Remote
from craftrl.data.seals import UNREADABLE, check_seal, sealed
from craftrl.distributed.dataset import parts_of
from craftrl.distributed.executor import Executor, check_executor
from craftrl.distributed.parts import Part, check_unchanged, opened
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.estimators.base import Learner

__all__ = ["StatesOfShard", "check_states_folder", "encode_on_shards", "read_states"]

FORMAT = "craftrl states 1"
MANIFEST = "states.json"
OWN_NAME = re.compile(r"states\.json|states_\d+(\.[0-9a-f]{12})?\.npy")


@dataclass(frozen=True)
class StatesOfShard:
    """The states of one shard's trajectories, on disk.

    agent  whose trajectories they are
    n, H   how many trajectories and steps
    """

    file: Place
    agent: int
    n: int
    H: int
    digest: str

    def load(self) -> NDArray[np.int32]:
        """The states (n, H), -1 where a trajectory is over."""
        try:
            content = self.file.read_bytes()
            if hashlib.sha256(content).hexdigest() != self.digest:
                raise ValueError("its checksum does not fit")
            states: NDArray[np.int32] = np.load(io.BytesIO(content), allow_pickle=False)
            if states.shape != (self.n, self.H):
                raise ValueError(f"its shape is {states.shape}")
        except UNREADABLE as error:
            raise InvalidDataError(
                f"Every file of states must be as it was written; {self.file.name} is missing or altered ({error}); "
                "encode again."
            ) from error
        return states


def encode_on_shards(
    model: Learner,
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    executor: Executor,
    *,
    overwrite: bool = False,
) -> None:
    """Write the states that `model` reads off every trajectory of a folder of shards: `model.transform`, by shard.

    Each shard is read by a worker, which writes its states beside those of the others under `out`. That must be a
    folder that all workers and the driver can reach, or a URL. `read_states(out)` reads them.

    model      any fitted learner of this package
    path       the folder of shards
    out        a new folder; with `overwrite` also one of states, which is replaced
    """
    check_kind("model", model, Learner, "a learner of this package, such as CRAFT")
    check_executor(executor)
    model._check_fitted()
    where, replace = check_states_folder(out, overwrite)
    where = where.absolute() if isinstance(where, Path) else where  # workers may be at home elsewhere
    parts = [part for part, _ in parts_of(path, executor)]
    _check_fits(model, parts)

    def write(folder: Place) -> dict[str, Any]:
        """All states into a folder, and what its index should say."""
        stems = [f"states_{i:05d}" for i in range(len(parts))]
        shards = executor.get([executor.submit(_write_states, p, model, folder, s) for p, s in zip(parts, stems)])
        return sealed({"format": FORMAT, "H": parts[0].H, "shards": shards})

    with told_plainly(where, "folder of states"):
        _publish(where, write, replace) if isinstance(where, Remote) else _write(where, write)


def _write(where: Path, write: Callable[[Place], dict[str, Any]]) -> None:
    """On a disk the folder gets its name when it is whole."""
    temporary = temporary_name(where)
    try:
        temporary.mkdir(parents=True)
        _write_index(temporary, write(temporary))
        moved_into_place(temporary, where)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _publish(where: Remote, write: Callable[[Place], dict[str, Any]], replace: bool) -> None:
    """In a store the index comes last, and names the files that count."""
    with publishing(where, MANIFEST, replace) as work:
        content = write(where)
        work.sent.update(shard["file"] for shard in content["shards"])
        _write_index(work.local, content)


def _write_index(folder: Path, content: dict[str, Any]) -> None:
    (folder / MANIFEST).write_text(json.dumps(content, indent=1) + "\n")


def read_states(folder: str | os.PathLike[str]) -> list[StatesOfShard]:
    """What `encode_on_shards` wrote, one entry for each shard, in the order of the data.

    `numpy.concatenate([part.load() for part in read_states(folder)])` are the states of all trajectories.
    """
    where = source("The folder of states", folder)
    try:
        content = json.loads((where / MANIFEST).read_text())
        check_seal(content)
        if content["format"] != FORMAT:
            raise ValueError(f"its format is {content['format']!r}")
        return [
            StatesOfShard(where / Path(s["file"]).name, int(s["agent"]), int(s["n"]), int(content["H"]), s["sha256"])
            for s in content["shards"]
        ]
    except UNREADABLE as error:
        raise InvalidDataError(
            f"States must be in a folder that encode_on_shards wrote; {where} has no whole {MANIFEST} ({error}); "
            "encode again, or check the name."
        ) from error


def _write_states(part: Part, model: Learner, folder: Place, stem: str) -> dict[str, Any]:
    """The states of one shard to a file, and what the index should say of it. Done twice, it writes the same."""
    states = np.asarray(model.transform(opened(part)), dtype=np.int32)
    check_unchanged(part)
    stream = io.BytesIO()
    np.save(stream, states, allow_pickle=False)
    digest = hashlib.sha256(stream.getvalue()).hexdigest()
    name = f"{stem}.{digest[:12]}.npy" if isinstance(folder, Remote) else f"{stem}.npy"
    with written_whole(folder / name, "states") as temporary:
        temporary.write_bytes(stream.getvalue())
    return {"file": name, "agent": part.shard.agent, "n": part.shard.n, "sha256": digest}


def check_states_folder(out: str | os.PathLike[str], overwrite: bool) -> tuple[Place, bool]:
    """Where states are to be put, and whether some are there; raises, before any work is done, where they cannot be.

    Nothing but states is ever replaced.
    """
    where = target("The folder of states", out)
    check_flag("overwrite", overwrite)
    check_writable(where.parent)
    if not taken(where):
        return where, False
    if not (where / MANIFEST).is_file() or (isinstance(where, Path) and where.is_symlink()):
        raise InvalidParameterError(f"{where} exists and is no folder of states of ours; choose another name.")
    if not overwrite:
        raise InvalidParameterError(
            f"{where} holds states already; choose another name, or replace them with overwrite=True (--force)."
        )
    check_nothing_else(where, lambda name: OWN_NAME.fullmatch(name) is not None)
    return where, True


def _check_fits(model: Any, parts: Sequence[Part]) -> None:
    """What `transform` would say of every shard, said once."""
    H, obs_shape = parts[0].H, parts[0].obs_shape
    if obs_shape != model.obs_shape_ or (len(model.encoders_) < H and not hasattr(model, "encoder_")):
        raise InvalidDataError(
            f"Trajectories must be as those fitted, at most {len(model.encoders_)} steps of shape {model.obs_shape_}; "
            f"{H} of shape {obs_shape} were given."
        )
