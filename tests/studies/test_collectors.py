"""The study of collectors that are neither Markovian nor i.i.d., on its smallest sizes and on its rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from craftrl.envs import BitsExBMDP, MarkovPolicy, collect
from studies.collectors.agents import COLLECTORS, markov_twin
from studies.collectors.report import cells, format_cells
from studies.collectors.run import run_one
from studies.collectors.spec import KINDS, Run, sweep

ROWS = Path(__file__).parents[2] / "studies" / "collectors" / "rows.jsonl"
WORLD = BitsExBMDP(6, 8, seed=0)


def test_a_sweep_has_every_collector_beside_its_twin() -> None:
    runs = sweep(2)
    assert len(set(runs)) == len(runs)
    assert set(KINDS) == set(COLLECTORS)
    assert {run.kind for run in runs if run.twin} == set(KINDS) - {"markov"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_twin_makes_the_same_moves_and_remembers_nothing(kind: str) -> None:
    twin = markov_twin(WORLD, COLLECTORS[kind](WORLD, 0), 8000, seed=0)
    assert isinstance(twin, MarkovPolicy)
    own, copied = collect(WORLD, [COLLECTORS[kind](WORLD, 0), twin], 8000, seed=1).truth.states.reshape(2, 8000, -1)
    for h in range(1, WORLD.H):
        pairs = [np.bincount(2 * s[:, h - 1] + s[:, h], minlength=4) / len(s) for s in (own, copied)]
        assert np.allclose(*pairs, atol=0.025)


def test_memory_cannot_be_seen_in_pairs_where_it_skips_the_last_state() -> None:
    twin = markov_twin(WORLD, COLLECTORS["two back"](WORLD, 0), 500, seed=0)
    assert all(np.allclose(*twin.pi(h), atol=0.03) for h in range(2, WORLD.H))  # whatever the last state
    assert twin.pi(2)[0, 0] > twin.pi(4)[0, 0] > 0.5
    history = np.array([[0, 1, 0], [0, 0, 1]])
    assert np.allclose(COLLECTORS["two back"](WORLD, 0).probabilities(history, np.arange(2))[:, 1], [0.75, 0.25])


def test_one_run_tells_how_right_the_states_are_and_how_the_agents_differ() -> None:
    found = run_one(Run("memory", False, 500, "markov", 0, 6, 8))
    assert found["accuracy"] > 0.99
    assert found["state_worst"] > 0.95
    assert 0 < found["alpha"] < np.log(9)
    assert not found["warned"]


def test_crafts_accuracy_is_that_of_the_markov_twin_and_nothing_is_found_where_pairs_show_nothing() -> None:
    table = cells([json.loads(line) for line in ROWS.read_text().splitlines()])
    by = {(c.kind, c.twin, c.size, c.coupling): c for c in table}
    for kind in ("memory", "switching", "adaptive"):
        own, twin = by[kind, False, 1000, "markov"], by[kind, True, 1000, "markov"]
        assert own.accuracy.mean > 0.997
        assert abs(own.accuracy.mean - twin.accuracy.mean) < 0.002
        assert abs(by[kind, False, 200, "markov"].accuracy.mean - by[kind, True, 200, "markov"].accuracy.mean) < 0.015
    for size in (200, 1000):
        lost = by["two back", False, size, "markov"]
        assert lost.accuracy.mean < 0.8
        assert lost.warned >= 0.6  # all of them before the tests of states were calibrated anew
    assert format_cells(table).count("\n") == 2 * 5 * 2
