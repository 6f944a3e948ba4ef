"""Damaged files: every format that is read, damaged as a seed says.

It must be read as it was (same), or be refused in one sentence. Formats of others have no checksums: there a changed
number is a number (read).
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import craftrl
from campaign.bench import Bench, bits, fitted, stacked
from campaign.cases import Case
from craftrl import TrajectoryDataset
from craftrl.data import read_actions, read_true_states
from craftrl.errors import CraftError
from craftrl.importing import import_data, inspect

__all__ = ["FORMATS", "mutate", "run_case"]

ODD_VALUES: tuple[Any, ...] = (None, True, -1, 0, 1, 2**63, 1e308, float("nan"), "", "x", [], {}, [[]], "../../x", 0.5)


@dataclass(frozen=True)
class Format:
    """make(folder) writes files; read(folder) returns what a user would see; sealed: whether they have checksums."""

    make: Callable[[Path], Any]
    read: Callable[[Path], Any]
    sealed: bool = True


def _digest(value: Any) -> str:
    def plain(part: Any) -> Any:
        if isinstance(part, np.ndarray):
            return [hashlib.sha256(part.tobytes()).hexdigest(), str(part.dtype), part.shape]
        return [plain(one) for one in part] if isinstance(part, (list, tuple)) else repr(part)

    return json.dumps(plain(value))


def _dataset(path: Any) -> Any:
    tau = TrajectoryDataset.open(path)
    return [tau.agent, tau.lengths, *tau.names, *(tau.at(h) for h in range(1, tau.H + 1))]


def _recorded(folder: Path) -> Any:
    actions = [list(map(np.asarray, agent)) for agent in read_actions(folder / "data")]
    seen = str(inspect(folder / "data")).replace(str(folder), "")
    return [_dataset(folder / "data"), actions, read_true_states(folder / "data"), seen]


def _model(path: Any, kind: str) -> Any:
    model, some = craftrl.load(path), _fitted(kind)[1]
    return [model.transform(some), list(model.n_states_), model.labels_, model.summary(), repr(model.bounds_)]


_fitted = cache(fitted)


def imported(write: Callable[[Path, np.ndarray[Any, Any]], Any]) -> Format:
    """Recordings of two agents in one format; read by importing them."""

    def make(folder: Path) -> None:
        x = stacked(bits(6).tau)
        for k in (0, 1):
            write(folder / f"agent{k}", x[6 * k : 6 * k + 6].astype(np.uint8))

    def read(folder: Path) -> Any:
        target = folder.parent / "imported"
        for old in folder.parent.glob("imported*"):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        import_data(sorted(folder.glob("agent*")), target, progress=False)
        return _dataset(target)

    return Format(make, read, sealed=False)


def _csv(path: Path, x: np.ndarray[Any, Any]) -> None:
    rows = [f"{e},{h},{','.join(map(str, x[e, h]))}" for e, h in np.ndindex(x.shape[:2])]
    head = ",".join(f"f{i}" for i in range(x.shape[2]))
    path.with_suffix(".csv").write_text("\n".join([f"episode,step,{head}", *rows]) + "\n")


def _videos(path: Path, x: np.ndarray[Any, Any]) -> None:
    import av

    path.mkdir()
    for i, bits_of in enumerate(x[:2]):
        frames = np.kron(bits_of.reshape(-1, 2, 3, 1) * 200, np.ones((1, 6, 6, 3))).astype(np.uint8)
        with av.open(str(path / f"{i}.mkv"), "w") as video:
            stream: Any = video.add_stream("ffv1", rate=10)
            stream.width, stream.height, stream.pix_fmt = frames.shape[2], frames.shape[1], "bgr0"
            for frame in frames:
                video.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
            video.mux(stream.encode())


MODEL = "model.safetensors"
FORMATS: dict[str, Format] = {
    "dataset": Format(lambda folder: Bench(folder).stored.rename(folder / "data"), _recorded),
    **{
        f"model, {kind}": Format(
            lambda folder, kind=kind: _fitted(kind)[0].save(folder / MODEL),
            lambda folder, kind=kind: _model(folder / MODEL, kind),
        )
        for kind in ("bits", "classifier", "network")
    },
    "NPZ": imported(lambda path, x: np.savez(path.with_suffix(".npz"), observations=x)),
    "NPY": imported(lambda path, x: np.save(path.with_suffix(".npy"), x)),
    "CSV": imported(_csv),
    "videos": imported(_videos),
}


def run_case(case: Case, folder: Path) -> Case:
    """Damage one file of a format, read it, and say what came of it."""
    form, place, rng = FORMATS[case["format"]], folder / case["format"], random.Random(case["seed"])
    right, damaged = _whole(case["format"], place), place / "damaged"
    shutil.rmtree(damaged, ignore_errors=True)
    shutil.copytree(place / "whole", damaged)
    file = rng.choice(sorted(path for path in damaged.rglob("*") if path.is_file()))
    done = {"file": file.name, "done": mutate(file, rng)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got = _digest(form.read(damaged))
    except CraftError as error:
        return {**done, "outcome": "refused", "said": str(error)[:300]}
    except Exception as error:
        return {**done, "outcome": "foreign", "said": f"{type(error).__name__}: {error}"[:300]}
    return {**done, "outcome": "same" if got == right else "changed" if form.sealed else "read", "said": ""}


@cache
def _whole(name: str, place: Path) -> str:
    (place / "whole").mkdir(parents=True)
    FORMATS[name].make(place / "whole")
    return _digest(FORMATS[name].read(place / "whole"))


# -- damage --------------------------------------------------------------------------------------------------------


def mutate(path: Path, rng: random.Random) -> str:
    """Damage one file in place as disks, transfers and curious people do; what was done, in a word."""
    data = bytearray(path.read_bytes())
    if path.suffix == ".json" and rng.random() < 0.5:
        path.write_text(_mutated_json(data.decode(), rng))
        return "JSON"
    kind = rng.choice(("bits", "bytes", "truncated", "run", "cut", "inserted", "moved"))
    length = min(len(data), rng.choice([1, 4, 16, 64, 512]))
    at = rng.randrange(len(data) - length + 1)
    part = bytes(data[at : at + length])
    if kind in ("bits", "bytes"):
        for _ in range(rng.choice([1, 1, 2, 8])):
            i = rng.randrange(len(data))
            data[i] = data[i] ^ 1 << rng.randrange(8) if kind == "bits" else rng.choice([0, 0xFF, rng.randrange(256)])
    elif kind == "truncated":
        del data[rng.randrange(len(data)) :]
    elif kind == "run":
        data[at : at + length] = rng.choice([b"\0" * length, b"\xff" * length, rng.randbytes(length)])
    elif kind == "inserted":
        data[at:at] = rng.randbytes(length)
    else:
        del data[at : at + length]
        if kind == "moved":
            to = rng.randrange(len(data) + 1)
            data[to:to] = part
    path.write_bytes(bytes(data))
    return kind


def _mutated_json(text: str, rng: random.Random) -> str:
    """Valid JSON with one value replaced or removed."""
    content = json.loads(text)
    holder, key = rng.choice(list(_places(content)) or [({"": 0}, "")])
    if rng.random() < 0.3:
        del holder[key]
    else:
        holder[key] = rng.choice(ODD_VALUES)
    return json.dumps(content)


def _places(content: Any) -> Any:
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in list(items):
        yield content, key
        yield from _places(value)
