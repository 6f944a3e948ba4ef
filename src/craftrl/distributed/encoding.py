"""States of all trajectories of a folder of shards, written shard by shard, never through the driver.

A folder of states holds `states_00000.npy`, `states_00001.npy`, ..., one for each shard of the data and in its order:
int32 (n, H), the state of every trajectory at every step, -1 where one is over. `states.json` lists them with their
agents, sizes and checksums. It is written last, and the folder gets its name only then: it is whole or not there.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_flag, check_kind, check_source, check_target
from craftrl.data.files import check_writable, moved_into_place, temporary_name, told_plainly, written_whole
from craftrl.data.seals import UNREADABLE, check_seal, file_digest, sealed
from craftrl.distributed.dataset import parts_of
from craftrl.distributed.executor import Executor
from craftrl.distributed.parts import Part, check_unchanged, opened
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.estimators.base import Learner

__all__ = ["StatesOfShard", "encode_on_shards", "read_states"]

FORMAT = "craftrl states 1"
MANIFEST = "states.json"


@dataclass(frozen=True)
class StatesOfShard:
    """The states of one shard's trajectories, on disk.

    agent  whose trajectories they are
    n, H   how many trajectories and steps
    """

    file: Path
    agent: int
    n: int
    H: int
    digest: str

    def load(self) -> NDArray[np.int32]:
        """The states (n, H), -1 where a trajectory is over."""
        try:
            if file_digest(self.file) != self.digest:
                raise ValueError("its checksum does not fit")
            states: NDArray[np.int32] = np.load(self.file, allow_pickle=False)
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
    """Write the states that `model` reads off every trajectory of a folder of shards: `transform`, piece by piece.

    Each shard is read by a worker, which writes its states beside those of the others under `out`. That must be a
    folder that all workers and the driver can reach. `read_states(out)` reads them.

    model      any fitted learner of this package
    path       the folder of shards
    out        a new folder; with `overwrite` also one of states, which is replaced
    """
    check_kind("model", model, Learner, "a learner of this package, such as CRAFT")
    model._check_fitted()
    target = _check_out(out, overwrite)
    parts = [part for part, _ in parts_of(path, executor)]
    _check_fits(model, parts)
    temporary = temporary_name(target)
    try:
        with told_plainly(target, "folder of states"):
            temporary.mkdir(parents=True)
            names = [f"states_{i:05d}.npy" for i in range(len(parts))]
            written = [
                executor.submit(_write_states, part, model, temporary / name) for part, name in zip(parts, names)
            ]
            digests = executor.get(written)
            content = {
                "format": FORMAT,
                "H": parts[0].H,
                "shards": [
                    {"file": name, "agent": part.shard.agent, "n": part.shard.n, "sha256": digest}
                    for name, part, digest in zip(names, parts, digests)
                ],
            }
            (temporary / MANIFEST).write_text(json.dumps(sealed(content), indent=1) + "\n")
            moved_into_place(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def read_states(folder: str | os.PathLike[str]) -> list[StatesOfShard]:
    """What `encode_on_shards` wrote, one entry for each shard, in the order of the data.

    `numpy.concatenate([part.load() for part in read_states(folder)])` are the states of all trajectories.
    """
    where = check_source("The folder of states", folder)
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


def _write_states(part: Part, model: Learner, file: Path) -> str:
    """The states of one shard to a file, and its checksum. Done twice, it writes the same."""
    states = np.asarray(model.transform(opened(part)), dtype=np.int32)
    check_unchanged(part)
    with written_whole(file, "states") as temporary, temporary.open("wb") as stream:
        np.save(stream, states, allow_pickle=False)
    return file_digest(file)


def _check_out(out: str | os.PathLike[str], overwrite: bool) -> Path:
    """Raise, before any work is done, where states cannot be put; nothing but states is ever replaced."""
    target = check_target("The folder of states", out).absolute()  # workers may be at home elsewhere
    check_flag("overwrite", overwrite)
    check_writable(target.parent)
    if not os.path.lexists(target):
        return target
    if target.is_symlink() or not (target / MANIFEST).is_file():
        raise InvalidParameterError(f"{target} exists and is no folder of states of ours; choose another name.")
    if not overwrite:
        raise InvalidParameterError(
            f"{target} holds states already; choose another name, or replace them with overwrite=True (--force)."
        )
    return target


def _check_fits(model: Any, parts: Sequence[Part]) -> None:
    """What `transform` would say of every shard, said once."""
    H, obs_shape = parts[0].H, parts[0].obs_shape
    if obs_shape != model.obs_shape_ or (len(model.encoders_) < H and not hasattr(model, "encoder_")):
        raise InvalidDataError(
            f"Trajectories must be as those fitted, at most {len(model.encoders_)} steps of shape {model.obs_shape_}; "
            f"{H} of shape {obs_shape} were given."
        )
