"""Every kind of file that the library reads: how a whole one is made, and what is read from it."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import craftrl
from campaign.format import Format
from campaign.stores import in_store
from craftrl import CRAFT, CoordinateOracle, NeuralOracle, Training, TrajectoryDataset
from craftrl.data import read_actions, read_true_states
from craftrl.envs import BitsExBMDP, PixelsExBMDP, collect, record
from craftrl.importing import import_data, inspect

__all__ = ["FORMATS", "fitted", "recorded_bits", "stacked", "unfitted_network"]


def recorded_bits(n: int = 60, horizon: int = 4) -> Any:
    """A little data of the paper's world, with its ground truth."""
    world = BitsExBMDP(horizon=horizon, n_features=6, seed=0)
    return collect(world, world.paper_policies(), n, seed=0)


def stacked(tau: TrajectoryDataset) -> np.ndarray[Any, Any]:
    """All observations, (n, H, *obs)."""
    return np.stack([tau.at(h) for h in range(1, tau.H + 1)], axis=1)


def _digest(*values: Any) -> str:
    parts = [
        v.tobytes() + str((v.shape, v.dtype)).encode() if isinstance(v, np.ndarray) else repr(v).encode()
        for v in values
    ]
    return hashlib.sha256(b"|".join(parts)).hexdigest()


# -- datasets ------------------------------------------------------------------------------------------------------


def _read_dataset(path: Path | str) -> str:
    tau = TrajectoryDataset.open(path)
    return _digest(tau.agent, tau.lengths, tau.names, *(tau.at(h) for h in range(1, tau.H + 1)))


def _store(folder: Path) -> None:
    tau = recorded_bits().tau
    np.savez(folder / "a.npz", observations=stacked(tau)[:60], actions=np.zeros((60, 4), dtype=int))
    np.savez(folder / "b.npz", observations=stacked(tau)[60:], actions=np.ones((60, 4), dtype=int))
    import_data([folder / "a.npz", folder / "b.npz"], folder / "data", progress=False)
    (folder / "a.npz").unlink()
    (folder / "b.npz").unlink()


def _read_store(folder: Path) -> str:
    actions = [[np.asarray(episode) for episode in agent] for agent in read_actions(folder / "data")]
    seen = inspect(folder / "data")
    flat = [episode for agent in actions for episode in agent]
    return _read_dataset(folder / "data") + _digest(str(seen).replace(str(folder), ""), *flat)


def _read_counted(path: Path | str) -> str:
    """What a fit on shards learns from them."""
    model = CRAFT(CoordinateOracle(), alpha=1, eta=0.2, nu=0.1).fit(path)
    return _digest(list(model.n_states_), str(model.encoders_), str(model.data_))


def _truth(folder: Path) -> None:
    world = BitsExBMDP(horizon=4, n_features=6, seed=0)
    record(world, world.paper_policies(), 60, folder / "data", seed=0)


# -- models --------------------------------------------------------------------------------------------------------


def unfitted_network() -> CRAFT:
    """A small network that takes a second."""
    oracle = NeuralOracle(networks=1, dim=16, training=Training(epochs=1, progress=False))
    return CRAFT(oracle, alpha=1, eta=0.1, nu=0.1)


def fitted(kind: str) -> tuple[Any, TrajectoryDataset]:
    """A small model of this kind, and the data that it was fitted to."""
    if kind == "network":
        world = PixelsExBMDP(horizon=3, size=2, n_walkers=0)
        tau = collect(world, world.policies(), 30, seed=0).tau
        model = unfitted_network()
    elif kind == "classifier":
        from sklearn.tree import DecisionTreeClassifier

        tau = recorded_bits().tau
        model = CRAFT(DecisionTreeClassifier(max_depth=3, random_state=0), alpha=1, eta=0.1, nu=0.1)
    else:
        tau = recorded_bits(300).tau
        model = CRAFT()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(tau), tau


def _model(kind: str) -> Format:
    def make(folder: Path) -> None:
        model, tau = fitted(kind)
        model.save(folder / "model")
        np.save(folder.parent / f"{kind}.npy", stacked(tau)[:20])

    def read(folder: Path) -> str:
        return _read_model(folder / "model", np.load(folder.parent / f"{kind}.npy"))

    return Format(make, read)


def _read_model(path: Path | str, x: np.ndarray[Any, Any]) -> str:
    model = craftrl.load(path)
    labels = getattr(model, "labels_", None)  # those of a fit on shards stay there
    return _digest(model.transform(x), list(model.n_states_), labels, str(model.summary()), str(model.bounds_))


def _model_in_store(kind: str) -> Format:
    """Read with data of its own kind: networks want frames."""
    return in_store(
        lambda url: fitted(kind)[0].save(f"{url}/model"), lambda url: _read_model(f"{url}/model", _some(kind))
    )


@cache
def _some(kind: str) -> np.ndarray[Any, Any]:
    return stacked(fitted(kind)[1])[:20]


def _checkpoint(folder: Path) -> Any:
    from craftrl.oracles.network.training import Checkpoint

    return Checkpoint(folder, "log-odds", lambda: "settings")


def _write_checkpoint(folder: Path) -> None:
    import torch

    generator = torch.Generator().manual_seed(0)
    weights = {"weight": torch.randn(8, 8, generator=generator), "epoch": 3}
    _checkpoint(folder).save({"network": weights, "progress": {"losses": [0.6, 0.5]}})


def _read_checkpoint(folder: Path) -> str:
    import torch

    saved = _checkpoint(folder).load(torch.device("cpu"))
    return _digest(saved["network"]["weight"].numpy(), saved["network"]["epoch"], saved["progress"])


# -- what others write ---------------------------------------------------------------------------------------------


def _imported(write: Callable[[Path, np.ndarray[Any, Any]], None]) -> Format:
    """Recordings of two agents in one format; read by importing them."""

    def make(folder: Path) -> None:
        x = stacked(recorded_bits(6).tau)
        for k in (0, 1):
            write(folder / f"agent{k}", x[6 * k : 6 * k + 6].astype(np.uint8))

    def read(folder: Path) -> str:
        target = folder.parent / "imported"
        for old in folder.parent.glob("imported*"):
            if old.is_file():
                old.unlink()
        sources = sorted(path for path in folder.iterdir() if path.name.startswith("agent"))
        import_data(sources, target, progress=False)
        return _read_dataset(target)

    return Format(make, read, sealed=False)


def _csv(path: Path, x: np.ndarray[Any, Any]) -> None:
    columns = ",".join(f"f{i}" for i in range(x.shape[2]))
    rows = [f"{e},{h},{','.join(map(str, x[e, h]))}" for e in range(len(x)) for h in range(x.shape[1])]
    path.with_suffix(".csv").write_text("\n".join([f"episode,step,{columns}", *rows]) + "\n")


def _parquet(path: Path, x: np.ndarray[Any, Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    flat = x.reshape(-1, x.shape[2])
    table = {"episode": np.repeat(np.arange(len(x)), x.shape[1]), **{f"f{i}": flat[:, i] for i in range(x.shape[2])}}
    pq.write_table(pa.table(table), path.with_suffix(".parquet"))


def _frames(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.kron(x.reshape(*x.shape[:2], 2, 3, 1) * 200, np.ones((1, 1, 6, 6, 3))).astype(np.uint8)


def _videos(path: Path, x: np.ndarray[Any, Any]) -> None:
    import av

    path.mkdir()
    for i, frames in enumerate(_frames(x)[:2]):
        with av.open(str(path / f"{i}.mkv"), "w") as video:
            stream: Any = video.add_stream("ffv1", rate=10)
            stream.width, stream.height, stream.pix_fmt = frames.shape[2], frames.shape[1], "bgr0"
            for frame in frames:
                video.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
            video.mux(stream.encode())


def _pictures(path: Path, x: np.ndarray[Any, Any]) -> None:
    from PIL import Image

    for i, frames in enumerate(_frames(x)[:2]):
        (path / str(i)).mkdir(parents=True)
        for h, frame in enumerate(frames):
            Image.fromarray(frame).save(path / str(i) / f"{h}.png")


FORMATS: dict[str, Format] = {
    "store": Format(_store, _read_store),
    "dataset": Format(
        lambda folder: recorded_bits().tau.save(folder / "data"), lambda folder: _read_dataset(folder / "data")
    ),
    "dataset, counted": Format(
        lambda folder: recorded_bits().tau.save(folder / "data"), lambda folder: _read_counted(folder / "data")
    ),
    "dataset in a store": in_store(
        lambda url: recorded_bits().tau.save(f"{url}/data"), lambda url: _read_dataset(f"{url}/data")
    ),
    "model in a store": _model_in_store("bits"),
    "network in a store": _model_in_store("network"),
    "truth": Format(_truth, lambda folder: _digest(read_true_states(folder / "data"))),
    "model": _model("bits"),
    "classifier model": _model("classifier"),
    "network model": _model("network"),
    "checkpoint": Format(_write_checkpoint, _read_checkpoint),
    "NPZ": _imported(lambda path, x: np.savez(path.with_suffix(".npz"), observations=x)),
    "NPY": _imported(lambda path, x: np.save(path.with_suffix(".npy"), x)),
    "CSV": _imported(_csv),
    "Parquet": _imported(_parquet),
    "videos": _imported(_videos),
    "pictures": _imported(_pictures),
}
