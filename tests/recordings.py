"""Tiny recordings in every format that can be imported, written as the tools that make them do."""

from __future__ import annotations

import io
import json
from fractions import Fraction
from pathlib import Path

import av
import gymnasium
import minari
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from minari.data_collector import EpisodeBuffer
from PIL import Image

from craftrl.data import TrajectoryDataset

FPS = 10


def episodes(seed, shape=(16, 16, 3), lengths=(5, 3, 4)):
    """Unequal episodes of noise: bytes for pictures, small floats for vectors."""
    rng = np.random.default_rng(seed)
    if len(shape) == 1:
        return [rng.normal(size=(n, *shape)).astype(np.float32) for n in lengths]
    return [rng.integers(256, size=(n, *shape), dtype=np.uint8) for n in lengths]


def action_labels(seed, lengths=(5, 3, 4)):
    rng = np.random.default_rng(100 + seed)
    return [rng.normal(size=(n, 2)).astype(np.float32) for n in lengths]


def stored(path):
    """The episodes of every agent of a dataset."""
    tau = TrajectoryDataset.open(path)
    return [[tau.episode(i) for i in range(*tau.agent_slice(k).indices(tau.n))] for k in range(tau.K)]


def assert_same(found, expected):
    assert len(found) == len(expected)
    for mine, other in zip(found, expected):
        assert [x.shape for x in mine] == [x.shape for x in other]
        assert all(np.array_equal(x, y) for x, y in zip(mine, other))


def write_video(path, frames, codec="ffv1", pixels="", times=None, **options):
    """A video of frames (n, rows, columns, 3); FFV1 of colours as they are loses nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=FPS, options=options)
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = pixels or {"ffv1": "bgr0", "libx264": "yuv420p"}[codec]
        for at, pixels in zip(times or range(len(frames)), frames):
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            frame.pts, frame.time_base = at, Fraction(1, FPS)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def write_videos(folder, given, suffix="mkv", **how):
    for i, frames in enumerate(given):
        write_video(folder / f"episode{i}.{suffix}", frames, **how)
    return folder


def write_frames(folder, given):
    """A folder of PNG files for every episode, numbered without leading zeros."""
    for i, frames in enumerate(given):
        (folder / f"run {i}").mkdir(parents=True)
        for h, frame in enumerate(frames):
            Image.fromarray(frame).save(folder / f"run {i}" / f"{h}.png")
    return folder


def png_bytes(frame):
    file = io.BytesIO()
    Image.fromarray(frame).save(file, format="PNG")
    return file.getvalue()


def write_table(path, given, actions=None, agent=None):
    """One row per step: episode, step, features, and actions if there are any."""
    rows = [(i, h) for i, x in enumerate(given) for h in range(len(x))]
    columns = {"episode": [i for i, _ in rows], "step": [h for _, h in rows]}
    if agent is not None:
        columns["agent"] = [agent[i] for i, _ in rows]
    columns |= {f"f{j}": [float(given[i][h, j]) for i, h in rows] for j in range(given[0].shape[1])}
    if actions is not None:
        columns |= {f"action_{j}": [float(actions[i][h, j]) for i, h in rows] for j in range(actions[0].shape[1])}
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        lines = [",".join(columns), *(",".join(map(repr, row)) for row in zip(*columns.values()))]
        path.write_text("\n".join(lines).replace("'", "") + "\n")
    return path


def write_minari(folder, given, actions, key=None, **how):
    """A Minari dataset; the action after the last observation is not recorded there. With a key, parts are named."""
    low, high = (0, 255) if given[0].dtype == np.uint8 else (-np.inf, np.inf)
    space = gymnasium.spaces.Box(low, high, given[0].shape[1:], given[0].dtype)
    data = folder / "data"
    data.mkdir(parents=True)
    storage = minari.dataset.minari_storage.MinariStorage.new(
        data,
        observation_space=space if key is None else gymnasium.spaces.Dict({key: space, "mission": space}),
        action_space=gymnasium.spaces.Box(-np.inf, np.inf, actions[0].shape[1:], np.float32),
        **how,
    )
    storage.update_metadata({"minari_version": minari.__version__, "dataset_id": f"tests/{folder.name}-v0"})
    storage.update_episodes(
        EpisodeBuffer(
            id=i,
            observations=list(x) if key is None else {key: list(x), "mission": list(x * 0)},
            actions=list(a[:-1]),
            rewards=[0.0] * (len(x) - 1),
            terminations=[False] * (len(x) - 1),
            truncations=[False] * (len(x) - 1),
            infos={},
        )
        for i, (x, a) in enumerate(zip(given, actions))
    )
    return folder


def write_lerobot(root: Path, given, actions, camera="observation.images.front", version="v3.0", kind="video"):
    """The on-disk layout of LeRobot v3: all episodes in one file of rows, pictures there too or in one video.

    https://huggingface.co/docs/lerobot/lerobot-dataset-v3
    """
    pictures = given[0].ndim == 4
    starts = np.concatenate([[0], np.cumsum([len(x) for x in given])])
    features = {"action": {"dtype": "float32", "shape": [2], "names": None}}
    if pictures:
        features[camera] = {"dtype": kind, "shape": list(given[0].shape[1:]), "names": None}
    else:
        features["observation.state"] = {"dtype": "float32", "shape": list(given[0].shape[1:]), "names": None}
    info = {
        "codebase_version": version,
        "fps": FPS,
        "total_episodes": len(given),
        "total_frames": int(starts[-1]),
        "chunks_size": 1000,
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
        "features": features,
    }
    (root / "meta/episodes/chunk-000").mkdir(parents=True)
    (root / "data/chunk-000").mkdir(parents=True)
    (root / "meta/info.json").write_text(json.dumps(info))
    episode = np.repeat(np.arange(len(given)), [len(x) for x in given])
    frame = np.concatenate([np.arange(len(x)) for x in given])
    rows = {
        "action": [row.tolist() for a in actions for row in a],
        "timestamp": (frame / FPS).astype(np.float32),
        "frame_index": frame,
        "episode_index": episode,
        "index": np.arange(starts[-1]),
        "task_index": np.zeros(starts[-1], dtype=np.int64),
    }
    if pictures and kind == "image":
        rows[camera] = [{"bytes": png_bytes(frame), "path": None} for x in given for frame in x]
    elif pictures:
        place = root / f"videos/{camera}/chunk-000/file-000.mp4"
        write_video(place, np.concatenate(given), "libx264rgb", "rgb24", qp="0")
    else:
        rows["observation.state"] = [row.tolist() for x in given for row in x]
    pq.write_table(pa.table(rows), root / "data/chunk-000/file-000.parquet")
    table = {
        "episode_index": range(len(given)),
        "length": [len(x) for x in given],
        "tasks": [["walk"]] * len(given),
        "data/chunk_index": [0] * len(given),
        "data/file_index": [0] * len(given),
        "dataset_from_index": starts[:-1],
        "dataset_to_index": starts[1:],
    }
    if pictures and kind == "video":
        table |= {f"videos/{camera}/{name}": [0] * len(given) for name in ("chunk_index", "file_index")}
        table[f"videos/{camera}/from_timestamp"] = starts[:-1] / FPS
        table[f"videos/{camera}/to_timestamp"] = starts[1:] / FPS
    pq.write_table(
        pa.table({name: list(column) for name, column in table.items()}),
        root / "meta/episodes/chunk-000/file-000.parquet",
    )
    return root
