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


@settings(max_examples=100)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 720]))
def test_the_matching_is_the_best_of_all_and_ties_go_to_the_first_table_and_relabelling(seed, most_tried):
    rng = np.random.default_rng(seed)
    tables = rng.integers(3, size=(5, *rng.integers(1, 5, size=2))) / 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relabelling, "MOST_TRIED", most_tried)
        index, rows, columns, weight = first_best_matching(tables)
    matchings = literal_matchings(tables[index])
    weights = [max(weight for weight, _ in literal_matchings(table)) for table in tables]
    assert (index, weight) == (int(np.argmax(weights)), max(weights))
    assert (weight, sorted(zip(rows, columns))) in [(total, sorted(matching)) for total, matching in matchings]
    if most_tried:
        assert list(zip(rows, columns)) == next(matching for total, matching in matchings if total == weight)
    found = best_matching(tables[0])
    assert (weights[0], sorted(found.items())) in [
        (total, sorted(pairs)) for total, pairs in literal_matchings(tables[0])
    ]


def test_many_labels_are_matched_too_and_none_match_nothing():
    names = np.random.default_rng(0).permutation(30)
    table = np.zeros((30, 30), dtype=np.int64)
    table[np.arange(30), names] = 5
    assert best_matching(table) == {r: int(c) for r, c in enumerate(names)}
    assert first_best_matching(np.stack([np.zeros((30, 30)), table]))[0] == 1
    assert best_matching(np.zeros((0, 3))) == {}
