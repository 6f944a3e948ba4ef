"""How rows become tables and curves."""

import pytest

from studies.tables import draw_curves, half_of, percent, right, span, table, unfolded, video_report, worst

ROW = {"technique": "single", "walkers": 2, "state_worst": 0.25, "one_state": 0.125, "probe": 1.0, "seed": 0}


def rows_of(shares):
    return [{"accuracy": share, "seed": seed, "state_worst": share / 2} for seed, share in enumerate(shares)]


@pytest.mark.parametrize(
    ("share", "text"), [(0.5, "50.0"), (0.9994, "99.9"), (0.9997, "99.97"), (0.99994, "99.99"), (1.0, "100.0")]
)
def test_percent_keeps_apart_from_a_hundred_what_is_not_quite(share, text):
    assert percent(share) == text


@pytest.mark.parametrize(
    ("shares", "text"),
    [
        ([0.50, 0.52, 0.54, 0.56, 0.58], "54.0±3.9"),
        ([0.5] * 5, "50.0"),
        ([0.9999] * 4 + [1.0], "99.99"),
        ([0.5, 0.6], "55.0 (50.0 to 60.0)"),
        ([0.6, 0.6], "60.0"),
    ],
)
def test_a_share_has_the_interval_of_its_seeds_or_the_least_and_the_largest_of_few(shares, text):
    assert right(rows_of(shares)) == text


def test_half_an_interval_is_that_of_before_it_was_cut_and_a_seed_counts_once():
    assert half_of([1.0, 1.0, 1.0, 1.0, 0.95]) == pytest.approx(2.776445 * 0.0223607 / 5**0.5, rel=1e-4)
    assert worst(rows_of([1.0, 0.9])) == "95.0 (90.0 to 100.0) / 48"
    assert (span([3, 2]), span([2, 2])) == ("2 to 3", "2")
    with pytest.raises(AssertionError):
        right(2 * rows_of([0.5]))


def test_a_table_has_the_order_of_the_rows_numbers_ascending_and_gaps_where_there_are_none():
    rows = unfolded([{"n": 2000, "accuracy": {"b": 1, "a": 2}}, {"n": 10, "accuracy": {"b": 3}}], "method", "accuracy")
    cells = table(rows, "method", "n", lambda of: str(of[0]["accuracy"]))
    assert cells.splitlines() == ["| method | n 10 | n 2,000 |", "|---|---|---|", "| b | 3 | 1 |", "| a |  | 2 |"]
    pairs = table(rows, "n", "method", lambda of: f"{of[0]['accuracy']} | x", ("one", "two")).splitlines()
    assert pairs[0] == "| n | b, one | b, two | a, one | a, two |"
    assert pairs[-1] == "| 2,000 | 1 | x | 2 | x |"
    assert table(rows, "method", "", lambda of: str(len(of)), ("rows",)).splitlines()[2:] == ["| b | 2 |", "| a | 1 |"]


def test_reports_of_videos_have_states_found_probes_and_what_knowing_nothing_scores():
    craft = {**ROW, "walkers": 0, "technique": "craft", "true": 2}
    rows = [{**craft, "pooled": 0.5 + i / 4, "found": 2 + i, "state_worst": 0.25 + i / 2, "seed": i} for i in (0, 1)]
    rows.append({**ROW, "accuracy": 1.0, "found": None})
    found, told, rivals = video_report(rows, "walkers").split("\n\n")
    assert found.splitlines()[2:] == ["| 0 | 2 to 3 / 2 | 62.5 (50.0 to 75.0) | 25 | 2 | 12.5 |"]
    assert rivals.splitlines()[2:] == ["| agent classifier, one frame | 100.0 / 25, 100 |"]
    assert "probe" in told
    assert video_report(rows[:2], "walkers") == found
    assert video_report(rows[2:], "walkers") == f"{told}\n\n{rivals}"


def test_curves_are_drawn(tmp_path):
    rows = [{"world": w, "n": n, "accuracy": n / 10} for w in "abcde" for n in (1, 2) for _ in range(5)]
    draw_curves(rows, tmp_path / "a.png", lambda r: r["world"], lambda r: "all", "n", "n", {"a": 0.5})
    assert (tmp_path / "a.png").stat().st_size > 10_000
