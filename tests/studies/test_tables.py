"""How rows become tables and curves."""

import pytest

from studies.tables import draw_curves, half_of, mean_text, percent, pivot, unfolded, video_table

ROW = {"technique": "single", "walkers": 2, "state_worst": 0.25, "one_state": 0.125, "probe": 1.0, "found": None}


@pytest.mark.parametrize(
    ("share", "text"), [(0.5, "50.0"), (0.9994, "99.9"), (0.9997, "99.97"), (0.99994, "99.99"), (1.0, "100.0")]
)
def test_percent_keeps_apart_from_a_hundred_what_is_not_quite(share, text):
    assert percent(share) == text


def test_half_an_interval_is_that_of_before_it_was_cut_and_few_seeds_have_none():
    assert mean_text([0.50, 0.52, 0.54, 0.56, 0.58]) == "54.0 ± 3.9"
    assert half_of([1.0, 1.0, 1.0, 1.0, 0.95]) == pytest.approx(2.776445 * 0.0223607 / 5**0.5, rel=1e-4)
    assert mean_text([0.5, 0.6]) == "55.0"
    assert mean_text([-0.1] * 5, -1.0) == "-10.0"


def test_a_pivot_has_the_order_of_the_rows_and_a_dash_where_there_are_none():
    rows = unfolded([{"n": 20, "accuracy": {"b": 1, "a": 2}}, {"n": 10, "accuracy": {"b": 3}}], "method", "accuracy")
    table = pivot(rows, "method", lambda r: r["method"], lambda r: str(r["n"]), lambda of: str(of[0]["accuracy"]))
    assert table.splitlines() == ["| method | 20 | 10 |", "| --- | --- | --- |", "| b | 1 | 3 |", "| a | 2 | - |"]


def test_tables_of_videos_have_states_found_probes_and_what_knowing_nothing_scores():
    craft = {**ROW, "walkers": 0, "technique": "craft", "true": 2}
    rows = [{**craft, "pooled": 0.5 + i / 4, "found": 2 + i, "state_worst": 0.25 + i / 2} for i in (0, 1)]
    rows.append({**ROW, "accuracy": 1.0})
    many = [{**rows[0], "walkers": 8, "pooled": 0.9 + i / 100} for i in range(5)]
    table = video_table([*rows, *many], lambda r: r["technique"], lambda r: f"{r['walkers']} walkers").splitlines()
    assert table[0] == "| accuracy / worst state of the worst seed, % | 0 walkers | 2 walkers | 8 walkers |"
    assert table[2:] == [
        "| craft | 62.5 (50.0 to 75.0) / 25, 2 to 3 of 2 states, 2 seeds | - "
        "| 92.0 (90.0 to 94.0) / 25, 2 of 2 states, 5 seeds |",
        "| single | - | 100.0 / 25, probe 100 | - |",
        "| one state named at every step | 12.5 | 12.5 | 12.5 |",
    ]


def test_curves_are_drawn(tmp_path):
    rows = [{"world": w, "n": n, "accuracy": n / 10} for w in "abcde" for n in (1, 2) for _ in range(5)]
    draw_curves(rows, tmp_path / "a.png", lambda r: r["world"], lambda r: "all", "n", "n", {"a": 0.5})
    assert (tmp_path / "a.png").stat().st_size > 10_000
