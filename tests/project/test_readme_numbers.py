"""Every number of the README's table "What it finds", computed again from the rows that are committed."""

import json
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def rows_of(name):
    return [json.loads(line) for line in (ROOT / "studies" / name).read_text().splitlines()]


def chosen(rows, **settings):
    found = [row for row in rows if all(row[name] == value for name, value in settings.items())]
    assert found
    return found


def mean(rows, field="accuracy"):
    return 100 * float(np.mean([row[field] for row in rows]))


def cells_of(start):
    """The cells of the line of the table that begins so: world, found / true, ours, reference."""
    (line,) = (line for line in README.splitlines() if line.startswith(f"| {start}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def states(rows):
    """States found / true in all; found: one number, or the least and the most over seeds."""
    most = sorted(row["found"] for row in rows)
    (true,) = {row["true"] for row in rows}
    return f"{most[0]} / {true}" if most[0] == most[-1] else f"{most[0]} to {most[-1]} / {true}"


@pytest.mark.parametrize("size", [500, 1000, 5000])
def test_table_1(size):
    craft = chosen(rows_of("table1/rows.jsonl"), technique="craft", size=size)
    assert len(craft) == 20
    ours = cells_of(f"paper's Table 1, {size} ")[2]
    assert ours.startswith(f"{mean(craft):.{2 if size == 5000 else 1}f}")
    if size == 1000:
        many = chosen(rows_of("table1-200-seeds/rows.jsonl"), technique="craft", size=size)
        assert len(many) == 200
        assert ours.endswith(f"(200 seeds: {mean(many):.1f})")


def test_the_default_coupling_beside_the_papers_algorithm():
    rows = chosen(rows_of("efficiency/rows.jsonl"), world="paper", size=200)
    assert len(rows) == 20
    ours, papers = (
        100 * np.mean([row["accuracy"][name] for row in rows]) for name in ("markov, relabelled", "independent")
    )
    _, found, shown, reference = cells_of("the same world, 200")
    assert (shown, reference) == (f"{ours:.1f}", f"{papers:.1f}, the paper's algorithm")
    assert found == "2 / 2"


def test_cells_in_video():
    rows = chosen(rows_of("pixels/few.jsonl"), n=1000)
    _, found, shown, reference = cells_of("4x4 cells")
    assert found == states(rows)
    assert (shown, reference) == (f"{mean(rows, 'pooled'):.2f}", f"{mean(rows, 'one_state'):.1f}, naming one state")


def test_rooms():
    rows = rows_of("pixels/rooms.jsonl")
    small, large = (chosen(rows, size=size, technique="craft") for size in (9, 13))
    _, found, shown, reference = cells_of("9x9 cells")
    assert (found, shown) == (states(small), f"{mean(small, 'pooled'):.1f}")
    assert reference == f"{mean(chosen(rows, size=9, technique='ac-state')):.1f}, AC-State with actions"
    _, found, shown, reference = cells_of("13x13 cells")
    assert (found, shown) == (states(large), f"{mean(large, 'pooled'):.1f}")
    assert reference == f"{mean(large, 'one_state'):.1f}, naming one state"


@pytest.mark.parametrize(
    ("world", "start"),
    [("freeway", "Freeway"), ("seaquest", "Seaquest")],
)
def test_games(world, start):
    rows = chosen(rows_of("games/rows.jsonl"), world=world)
    craft = chosen(rows, technique="craft")
    _, found, shown, reference = cells_of(start)
    assert shown == f"{mean(craft, 'pooled'):.1f}"
    assert reference == f"{mean(chosen(rows, technique='ac-state')):.1f}, AC-State with actions"
    assert found == states(craft)
