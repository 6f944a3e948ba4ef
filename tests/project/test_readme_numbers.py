"""Headline numbers of the README, computed again from the rows that are committed."""

import json
from pathlib import Path

import numpy as np
import pytest

from craftrl.paper.sweep import estimate

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def rows_of(name):
    return [json.loads(line) for line in (ROOT / "studies" / name).read_text().splitlines()]


def mean(rows, field="accuracy", **settings):
    values = [row[field] for row in rows if all(row[name] == value for name, value in settings.items())]
    assert values
    return 100 * estimate(values).mean


def line_of(start):
    """The line of a table that begins so."""
    return next(line for line in README.splitlines() if line.startswith(f"| {start}"))


@pytest.mark.parametrize(
    ("technique", "start"), [("craft", "CRAFT |"), ("single", "Single observation"), ("paired", "Paired observation")]
)
def test_table_1(technique, start):
    rows = rows_of("table1/rows.jsonl")
    assert len({row["seed"] for row in rows}) == 20
    for size, digits in ((500, 1), (1000, 1), (5000, 2 if technique == "craft" else 1)):
        assert f" {mean(rows, technique=technique, size=size):.{digits}f} [" in line_of(start)


def test_single_states_over_200_seeds():
    rows = [row for row in rows_of("table1-200-seeds/rows.jsonl") if row["technique"] == "craft"]
    assert len({row["seed"] for row in rows}) == 200
    assert f"the cell is {mean(rows, size=1000):.1f} [" in README
    worst = [mean(rows, "state_worst", size=size) for size in (500, 1000, 5000)]
    assert f"right {worst[0]:.0f}%, {worst[1]:.0f}% and {worst[2]:.1f}% of the time" in README


def test_less_data():
    rows = rows_of("efficiency/rows.jsonl")

    def at_200(world, method):
        values = [row["accuracy"][method] for row in rows if row["world"] == world and row["size"] == 200]
        assert len(values) == 20
        return 100 * sum(values) / 20

    line = line_of("less data")
    assert f"right on {at_200('paper', 'markov, relabelled'):.1f}%" in line
    assert f"the paper's choice of encoders on {at_200('paper', 'independent'):.1f}%" in line
    assert f"it is right on {at_200('control', 'markov, relabelled'):.1f}%" in line
    chain, posterior = (at_200("control", f"{name}, relabelled") for name in ("chain", "posterior"))
    assert f"reach {int(chain)}%" in line
    assert int(chain) == int(posterior)
    assert f"the paper's choice {at_200('control', 'independent'):.0f}%" in line


def test_agents_that_take_turns():
    rows = [row for row in rows_of("agents/rows.jsonl") if row["factor"] == 1.0]
    two, three = (mean(rows, kind="turns", n_agents=k, total=1200, coupling="chain") for k in (2, 3))
    assert f"leave CRAFT at {two:.1f}%, three lift it to {three:.2f}%" in line_of("two to 64 agents")


def test_who_warns_and_who_is_trusted():
    table = {of["group"]: of for of in json.loads((ROOT / "studies/loud/table.json").read_text())["all"][4:]}
    assert {of["worlds"] for of in table.values()} == {"check"}
    lost = [table["wrong"], table["too few states"]]
    warned, models = (sum(of[name] for of in lost) for name in ("warned", "models"))
    right = table["right"]
    line = line_of("failing loudly")
    assert f"warned of {warned} of {models} models" in line
    assert f"of {right['warned']} of {right['models']} right ones" in line
    assert f"trusted {right['trusted']} of the right ones and one wrong one" in line
    assert sum(of["trusted"] for of in lost) == 1


def test_collectors():
    rows = rows_of("collectors/rows.jsonl")
    for kind in ("memory", "switching", "adaptive"):
        assert mean(rows, kind=kind, size=1000, twin=False, coupling="markov") > 99.85
    assert "99.9% at 1000 trajectories per agent" in line_of("agents of other kinds")


@pytest.mark.parametrize(
    ("world", "start"),
    [("freeway", "Freeway"), ("minigrid", "MiniGrid"), ("seaquest", "Seaquest"), ("doom", "ViZDoom")],
)
def test_games(world, start):
    rows = [row for row in rows_of("games/rows.jsonl") if row["world"] == world]
    names = {row["technique"] for row in rows} - {"craft", "craft-bounds", "ac-state"}
    best = max(mean(rows, technique=name) for name in names)
    values = mean(rows, technique="craft"), mean(rows, technique="ac-state"), best, mean(rows, "one_state")
    assert line_of(start).endswith("| " + " | ".join(f"{value:.1f}" for value in values) + " |")


def test_pixels():
    few, rooms = rows_of("pixels/n.jsonl"), rows_of("pixels/rooms.jsonl")
    found = (mean(few, n=n, bounds="auto") for n in (500, 1000))
    assert " / ".join(f"{value:.1f}" for value in found) in line_of("4x4 cells")
    small, large = ([row for row in rooms if row["size"] == size and row["technique"] == "craft"] for size in (9, 13))
    assert f"| {mean(small):.1f}, {small[0]['n_states'][-1]} states of 68 |" in line_of("9x9 cells")
    names = max(max(row["n_states"]) for row in large)
    assert f"| {mean(large):.1f}, {names} names for 148 states |" in line_of("13x13 cells")


@pytest.mark.parametrize(
    ("technique", "field", "start"),
    [
        ("craft", "offline_latent", "CRAFT's states, learned without actions"),
        ("craft", "offline", "CRAFT's states, each move"),
        ("true", "offline", "true states, each move"),
        ("autoencoder", "offline", "autoencoder's states"),
        ("cloning", "offline", "behaviour cloning"),
    ],
)
def test_planning(technique, field, start):
    rows = [row for row in rows_of("planning/rows.jsonl") if (row["world"], row["technique"]) == ("pixels", technique)]
    after = [
        100 * np.mean([row[field][row["labels"].index(labels)] for row in rows]).round(4) for labels in (1, 10, 100)
    ]
    assert line_of(start).endswith("| " + " | ".join(f"{value:.0f}" for value in after) + " |")


def test_planning_beside_chance_and_ppo():
    chance = np.mean([row["chance"] for row in rows_of("planning/rows.jsonl") if row["world"] == "pixels"])
    assert f"random actions reach {100 * chance:.0f})" in README
    assert sorted(row["steps_needed"] for row in rows_of("planning/ppo.jsonl")) == [1000, 1504]
    assert "PPO from pixels needs 1,000 to 1,500 environment steps" in README
