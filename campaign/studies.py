"""The studies of `craftrl reproduce`: a line of each that takes seconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from campaign.bench import Bench
from craftrl.cli.reproduce import available_studies
from studies import study

__all__ = ["STUDIES", "Enough", "a_few_runs", "study_words"]

Words = dict[str, list[str]]
STUDIES = available_studies()
EPISODES = 8  # of games that are not recorded yet
FEW = 8  # runs of a sweep that is run whole; of a longer one the first is

# What makes the runs of a study small, where it has options for that.
SMALL: dict[str, Words] = {
    "table1": {"--sizes": ["20"], "--horizon": ["3"], "--features": ["4"]},
    "error-growth": {"--size": ["50"], "--horizon": ["4"], "--features": ["6"]},
    "figures": {"--n": ["100"]},
    "games": {"--worlds": ["minigrid"], "--techniques": ["single"], "--n": ["2"], "--rates": ["1e-3"]},
    "pixels": {"--techniques": ["single"], "--walkers": ["0"], "--n": ["10"], "--rates": ["1e-3"]},
    "planning": {
        "--worlds": ["multimaze"],
        "--techniques": ["true"],
        "--n": ["20"],
        "--labels": ["1"],
        "--goals": ["1"],
    },
}
DATA = ("games", "planning")  # those that keep recordings of games in a folder
LONG = ("bounds", "loud")  # those a single run of which takes minutes: the sweep ends before it


class Enough(BaseException):
    """A long sweep has begun well."""


def study_words(name: str, bench: Bench) -> Words:
    """A line of this study that works: one seed, small runs, results in a folder that is not there yet."""
    words = {**SMALL.get(name, {}), "--out": [str(bench.new())]}
    if name != "figures":
        words |= {"--seeds": ["1"], "--quiet": []}
    if name in DATA:
        words |= {"--data": [str(_played(bench))]}
    return words


@cache
def _played(bench: Bench) -> Path:
    """A folder with a few episodes of MiniGrid, as the study of games keeps them."""
    from craftrl.envs import collect
    from studies.games.data import file_of, world_of, write

    folder = bench.new()
    folder.mkdir()
    world = world_of("minigrid")
    write(file_of(str(folder), "minigrid"), collect(world, world.agents, EPISODES, 0))
    return folder


@contextmanager
def a_few_runs(name: str) -> Iterator[None]:
    """Within the block, a sweep of many runs of this study ends with Enough after the first."""
    run_sweep = study.run_sweep

    def first(name_: str, settings_list: Sequence[Any], *given: Any) -> list[study.Row]:
        if name in LONG:
            raise Enough
        rows = run_sweep(name_, settings_list if len(settings_list) <= FEW else settings_list[:1], *given)
        if len(settings_list) > FEW:
            raise Enough
        return rows

    with mock.patch.object(study, "run_sweep", first), mock.patch("studies.games.data.EPISODES", EPISODES):
        yield
