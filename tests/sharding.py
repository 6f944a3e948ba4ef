"""What tests of shards share: datasets cut into shards of any size, and an executor that is as bad as one may be."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from craftrl import CRAFT, TrajectoryDataset
from craftrl.data.shards import ShardWriter
from craftrl.distributed import LocalExecutor, fit_on_shards
from craftrl.distributed.executor import added
from craftrl.errors import AssumptionWarning

LEARNED = ("bounds_", "choices_", "data_", "agents_", "obs_shape_", "oracle_", "f_")


def write_shards(tau: TrajectoryDataset, folder: Path, size: int) -> Path:
    """tau as shards of so many trajectories."""
    writer = ShardWriter(folder, tau.H, tau.obs_shape, tau.dtype)
    writer.block = size
    with writer:
        for k in range(tau.K):
            mine = tau.agent_slice(k)
            x = np.stack([tau.steps.read(step, mine.start, mine.stop) for step in range(tau.H)], axis=1)
            writer.append(k, x, tau.lengths[mine])
    return folder


@dataclass
class Elsewhere:
    """Keeps nothing but bytes, as other machines do: arrays come out read-only.

    It does everything twice, and adds in any order.
    """

    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    asked: int = 0
    workers: int = 10**6  # many more than shards: as far as a thousand, every shard is a task of its own

    def submit(self, function: Any, *args: Any) -> Any:
        function, args = _got(_sent((function, args)))
        results = [function(*(_got(arg) if isinstance(arg, _Bytes) else arg for arg in args)) for _ in range(2)]
        return _sent(results[int(self.rng.integers(2))])

    def get(self, handles: Any) -> list[Any]:
        self.asked += 1
        return [_got(handle) for handle in handles]

    def total(self, handles: Any) -> Any:
        self.asked += 1
        values = [_got(handles[i]) for i in self.rng.permutation(len(handles))]
        while len(values) > 1:
            i = int(self.rng.integers(len(values) - 1))
            values[i : i + 2] = [added(values[i], values[i + 1])]
        return values[0]

    def close(self) -> None:
        """Nothing is kept."""


@dataclass(frozen=True)
class _Bytes:
    content: bytes
    buffers: tuple[bytes, ...]


def _sent(value: Any) -> _Bytes:
    buffers: list[pickle.PickleBuffer] = []
    content = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return _Bytes(content, tuple(bytes(buffer.raw()) for buffer in buffers))


def _got(value: _Bytes) -> Any:
    return pickle.loads(value.content, buffers=value.buffers)


def fitted(folder: Path, executor: Any = None, **given: Any) -> tuple[CRAFT, list[str]]:
    """A model fitted on one machine or, with an executor, on shards; and what it warned of."""
    model = CRAFT(**given)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(folder) if executor is None else fit_on_shards(model, folder, executor)
    assert all(issubclass(warning.category, AssumptionWarning) for warning in caught)
    return model, [str(warning.message) for warning in caught]


def assert_same(one: CRAFT, other: CRAFT, but: tuple[str, ...] = ()) -> None:
    """The same bits in everything that was learned, and so in what is saved."""
    for name in set(LEARNED) - set(but):
        assert bits(getattr(one, name)) == bits(getattr(other, name)), name
    assert bits(list(one.encoders_)) == bits(list(other.encoders_))
    assert list(one.n_states_) == list(other.n_states_)
    assert bits((one.trace_.grid, one.trace_.steps, one.trace_.models)) == bits(
        (other.trace_.grid, other.trace_.steps, other.trace_.models)
    )
    if "start" not in but:
        assert bits(one.trace_.start) == bits(other.trace_.start)


def bits(value: Any) -> Any:
    """A value as something to compare: floats by all their digits, arrays by type and content."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, (list, tuple)):
        return [bits(part) for part in value]
    if isinstance(value, dict):
        return {name: bits(part) for name, part in value.items()}
    if isinstance(value, float):
        return value.hex()
    if hasattr(value, "__dict__") and not callable(value):
        return type(value).__name__, bits(vars(value))
    return repr(value)


LOCAL = LocalExecutor()
