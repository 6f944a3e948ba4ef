"""What a worker does with a shard, or with neighbouring ones: look, read into bit planes, and answer questions.

All of these are pure functions of a shard on disk, and of small values: done again, they give the same. A shard that is
not what it was when the run began is refused, so that nothing is ever counted of two different files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from craftrl.core.spread import Recipe, carried_out
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.manifests import check_shards
from craftrl.data.shards import Manifest, Shard, ShardSteps, read_lengths, shard_identity
from craftrl.engine.packing import PackedStep, constant_step
from craftrl.errors import InvalidDataError
from craftrl.oracles.counting import CountingOracle

__all__ = [
    "PackedShard",
    "Part",
    "PartDataset",
    "Seen",
    "agents_of",
    "answered",
    "beginnings",
    "check_unchanged",
    "largest_in",
    "lengths_of",
    "look_at",
    "made",
    "opened",
    "packed",
    "sizes_of",
    "start_of",
    "step_of",
    "taken_together",
]

Int64 = NDArray[np.int64]

PER_WORKER = 4  # tasks of one question: some take longer than others
MOST_TASKS = 1024  # of one question, unless they would have to read more than the next number: a second to hand out
AT_MOST = 2**31  # bytes of the observations that one task reads


class Part(NamedTuple):
    """One shard, and how it fits into its dataset.

    first     how many trajectories of the same agent come before its own
    K         how many agents there are
    identity  what it was when the run began (`craftrl.data.shards.shard_identity`), "" before that is known
    """

    shard: Shard
    first: int
    K: int
    H: int
    obs_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    identity: str = ""


class Seen(NamedTuple):
    """What is known of a shard before its observations are read.

    running  how many of its trajectories have an observation at h = 1..H
    """

    identity: str
    running: Int64
    shortest: int
    longest: int


class PackedShard(NamedTuple):
    """The values of all encoders on the trajectories of a shard, or of neighbouring ones, as bit planes.

    steps  those of h = 1..H
    start  the constant encoder of x_1
    """

    steps: tuple[PackedStep, ...]
    start: PackedStep
    agent: int

    @property
    def n(self) -> int:
        return int(self.start.counts[self.agent])


def taken_together(parts: Sequence[Part], workers: int) -> list[list[Part]]:
    """Neighbouring shards of one agent that a task takes together.

    Every task takes about a millisecond to hand out, whatever it does, and every question is a task for each of these.
    So there are a few for each worker, and no more than a thousand, however small the shards are; but none reads more
    than `AT_MOST`.
    """
    some, n = parts[0], sum(part.shard.n for part in parts)
    bytes_each = some.H * int(np.prod(some.obs_shape, dtype=np.int64)) * some.dtype.itemsize
    most = min(-(-n // min(PER_WORKER * workers, MOST_TASKS)), AT_MOST // max(1, bytes_each))
    groups: list[list[Part]] = []
    room, agent = 0, -1
    for part in parts:
        if part.shard.agent != agent or part.shard.n > room:
            groups.append([])
            room, agent = most, part.shard.agent
        groups[-1].append(part)
        room -= part.shard.n
    return groups


class PartDataset(TrajectoryDataset):
    """Some trajectories of one agent: a dataset of which the other agents have none.

    Counts of its trajectories then have the shape of those of the whole dataset, and add up to them.
    """

    def __init__(self, steps: ShardSteps, agent: int, K: int, lengths: Int64) -> None:
        self.steps = steps
        self.H, self.n = steps.shape[:2]
        self.obs_shape = tuple(steps.shape[2:])
        self.dtype = steps.dtype
        self.agent = np.full(self.n, agent)
        self.lengths = lengths
        self.counts = np.bincount(self.agent, minlength=K)
        self.K = K
        self.names = tuple(range(K))


def look_at(part: Part) -> Seen:
    """Check a shard's headers and lengths, and take down what it is; its observations are not read."""
    identity = shard_identity(part.shard.file)
    check_shards(Manifest(part.H, part.obs_shape, part.dtype, [part.shard]))
    lengths = read_lengths(part.shard)
    running = (lengths[:, None] > np.arange(part.H)).sum(axis=0)
    return Seen(identity, running, int(lengths.min()), int(lengths.max()))


def opened(*parts: Part) -> PartDataset:
    """Neighbouring shards of one agent as a dataset, if they are what they were when the run began."""
    for part in parts:
        check_unchanged(part)
    some, starts = parts[0], [0, *accumulate(part.shard.n for part in parts)]
    steps = ShardSteps([part.shard.file for part in parts], starts, some.H, some.obs_shape, some.dtype)
    return PartDataset(steps, some.shard.agent, some.K, np.concatenate([lengths_of(part) for part in parts]))


def lengths_of(part: Part) -> Int64:
    """How many steps each trajectory has, of those that are looked at."""
    return np.minimum(read_lengths(part.shard), part.H)


def check_unchanged(part: Part) -> None:
    if shard_identity(part.shard.file) != part.identity:
        raise InvalidDataError(
            f"Shards must stay as they are during a run; {part.shard.file.name} has changed since this one began; let "
            "nobody write there, and start again."
        )


def largest_in(part: Part, most: int) -> int:
    """The largest value of a shard's observations, if they are integers in 0..most-1; else -1."""
    top = opened(part).largest_below(most)
    check_unchanged(part)
    return -1 if top is None else top


def packed(parts: Sequence[Part], oracle: CountingOracle) -> PackedShard:
    """All encoders of all steps on the trajectories of neighbouring shards: the one time that they are read."""
    tau = opened(*parts)
    oracle.check(tau)
    some = parts[0]
    first = np.where(np.arange(some.K) == some.shard.agent, some.first, 0)
    steps = tuple(replace(oracle.evaluate(tau, h), first=first) for h in range(1, some.H + 1))
    for part in parts:
        check_unchanged(part)
    return PackedShard(steps, constant_step(tau, 1), some.shard.agent)


def answered(
    here: PackedShard, questions: Sequence[Recipe], held: Sequence[Recipe] = (), *values: Any
) -> tuple[Any, ...]:
    """What each question makes of a shard: integers, to be added to those of the other shards.

    `values` are what the recipes `held` have made of it before.
    """
    return tuple(carried_out(question, here, dict(zip(held, values))) for question in questions)


def made(here: PackedShard, recipe: Recipe, held: Sequence[Recipe] = (), *values: Any) -> Any:
    """What a recipe makes of a shard, to be kept with it."""
    return carried_out(recipe, here, dict(zip(held, values)))


# -- what recipes begin with: functions of whatever is here ---------------------------------------------------------


def step_of(here: PackedShard, h: int) -> PackedStep:
    return here.steps[h - 1]


def start_of(here: PackedShard) -> PackedStep:
    return here.start


def agents_of(here: PackedShard) -> Int64:
    return np.full(here.n, here.agent)


def beginnings(here: PackedShard) -> Int64:
    """The state 0, in which every trajectory begins."""
    return np.zeros(here.n, dtype=np.int64)


def sizes_of(here: PackedShard) -> list[tuple[int, int]]:
    """How many encoders each step has, and how many values each of them."""
    return [(step.size, step.N_s) for step in here.steps]
