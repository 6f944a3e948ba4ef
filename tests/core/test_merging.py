"""Lines 12-15 and 22-45: which clusters become one state."""

from collections.abc import Sequence

from craftrl.core.clusters import merge_clusters


class Truth:
    """A separation oracle that knows which state each cluster shows; chance is 1."""

    def __init__(self, *states: str) -> None:
        self.states = states
        self.asked: list[tuple[int, tuple[int, ...]]] = []

    def __call__(self, new: int, state: Sequence[int]) -> float:
        self.asked.append((new, tuple(state)))
        return 1.0 if self.states[new] == self.states[state[0]] else 0.0


def test_successors_of_different_predecessors_are_merged_where_they_look_alike():
    state_of, comparisons = merge_clusters([0, 0, 1, 1], Truth("a", "b", "b", "c"))
    assert state_of.tolist() == [0, 1, 1, 2]
    assert [(c.cluster, c.state, c.merged) for c in comparisons] == [
        (2, 0, False),
        (2, 1, True),
        (3, 0, False),  # state 1 is taken: a cluster of the same predecessor has joined it
    ]


def test_successors_of_one_predecessor_are_never_compared():
    oracle = Truth("a", "a")
    assert merge_clusters([0, 0], oracle)[0].tolist() == [0, 1]
    assert oracle.asked == []


def test_a_state_grows_with_every_cluster_that_joins_it():
    oracle = Truth("a", "a", "a")
    assert merge_clusters([0, 1, 2], oracle)[0].tolist() == [0, 0, 0]
    assert oracle.asked == [(1, (0,)), (2, (0, 1))]


def test_a_loss_of_one_half_separates():
    assert merge_clusters([0, 1], lambda new, state: 0.5)[0].tolist() == [0, 1]


def test_no_cluster_no_state():
    state_of, comparisons = merge_clusters([], Truth())
    assert len(state_of) == len(comparisons) == 0
