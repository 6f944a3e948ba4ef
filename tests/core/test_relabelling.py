"""One-to-one matchings, against trying every one of them."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from craftrl.core import relabelling
from craftrl.core.relabelling import best_matching, first_best_matching


def literal_matchings(table):
    """Every one-to-one matching of the shorter side, in lexicographic order, with its weight."""
    n_rows, n_columns = table.shape
    if n_rows <= n_columns:
        pairs = [list(zip(range(n_rows), chosen)) for chosen in permutations(range(n_columns), n_rows)]
    else:
        pairs = [list(zip(chosen, range(n_columns))) for chosen in permutations(range(n_rows), n_columns)]
    return [(sum(table[r, c] for r, c in matching), matching) for matching in pairs]


def random_tables(seed, n, highest):
    rng = np.random.default_rng(seed)
    return rng.integers(highest, size=(n, *rng.integers(1, 5, size=2)))


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1))
def test_the_matching_is_the_best_of_all(seed):
    for table in random_tables(seed, 6, 9):
        found = best_matching(table)
        assert sum(table[r, c] for r, c in found.items()) == max(weight for weight, _ in literal_matchings(table))
        assert len(found) == len(set(found.values())) == min(table.shape)


@pytest.mark.parametrize("most_tried", [0, 720])
@pytest.mark.parametrize("seed", range(60))
def test_ties_go_to_the_first_table(seed, most_tried, monkeypatch):
    monkeypatch.setattr(relabelling, "MOST_TRIED", most_tried)
    tables = random_tables(seed, 5, 3) / 2
    weights = [max(weight for weight, _ in literal_matchings(table)) for table in tables]
    index, rows, columns, weight = first_best_matching(tables)
    assert (index, weight) == (int(np.argmax(weights)), max(weights))
    assert tables[index, rows, columns].sum() == weight
    assert len(set(rows)) == len(set(columns)) == min(tables.shape[1:])


@pytest.mark.parametrize("seed", range(60))
def test_ties_go_to_the_first_relabelling(seed):
    tables = random_tables(seed, 5, 3) / 2
    index, rows, columns, weight = first_best_matching(tables)
    first = next(matching for total, matching in literal_matchings(tables[index]) if total == weight)
    assert list(zip(rows, columns)) == first


def test_many_labels_are_matched_too():
    rng = np.random.default_rng(0)
    names = rng.permutation(30)
    table = np.zeros((30, 30), dtype=np.int64)
    table[np.arange(30), names] = 5
    assert best_matching(table) == {r: int(c) for r, c in enumerate(names)}
    assert first_best_matching(np.stack([np.zeros((30, 30)), table]))[0] == 1


def test_no_labels_match_nothing():
    assert best_matching(np.zeros((0, 3))) == {}
