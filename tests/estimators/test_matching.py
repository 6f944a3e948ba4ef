"""States of different steps, matched by mutual recognition."""

import numpy as np

from craftrl import TrajectoryDataset
from craftrl.core.encoders import read_states
from craftrl.estimators.matching import match_states
from craftrl.states.accuracy import accuracy


def cells(n, H, n_cells, seed):
    """Observations that are the cell itself; every cell is visited at every step but the first."""
    rng = np.random.default_rng(seed)
    s = rng.integers(n_cells, size=(n, H))
    s[:, 0] = 0
    return s, TrajectoryDataset.from_arrays([s[: n // 2, :, None], s[n // 2 :, :, None]])


def numbered(number):
    """An encoder with its own numbers for the cells."""
    return lambda x: np.asarray(number)[x[:, 0]]


def test_steps_with_their_own_numbers_get_one():
    s, tau = cells(400, 4, 3, seed=0)
    numbers = [[0, 0, 0], [0, 1, 2], [2, 0, 1], [1, 2, 0]]
    labels = np.stack([np.asarray(number)[s[:, h]] for h, number in enumerate(numbers)], axis=1)
    matching = match_states([numbered(number) for number in numbers], labels, tau, read_states)
    assert matching.n_states == 3
    assert accuracy(matching.labels, s) == 1.0  # the start state too


def test_a_state_split_at_one_step_is_whole_again():
    """At the third step cell 1 was taken for two states, by something that does not matter."""
    rng = np.random.default_rng(1)
    s, _ = cells(600, 5, 3, seed=1)
    x = np.stack([s, rng.integers(2, size=s.shape)], axis=2)
    tau = TrajectoryDataset.from_arrays([x[:300], x[300:]])

    def plain(x):
        return x[:, 0]

    def split(x):
        return np.where((x[:, 0] == 1) & (x[:, 1] == 1), 3, x[:, 0])

    encoders = [plain, plain, split, plain, plain]
    labels = np.stack([encode(x[:, h]) for h, encode in enumerate(encoders)], axis=1)
    matching = match_states(encoders, labels, tau, read_states)
    assert matching.n_states == 3
    assert accuracy(matching.labels, s) == 1.0


def test_a_cell_that_one_step_never_sees_stays_apart():
    """The third step knows two cells only, and takes the third for one of them."""
    s, _ = cells(600, 4, 3, seed=2)
    s[:, 2] = s[:, 2] % 2
    tau = TrajectoryDataset.from_arrays([s[:300, :, None], s[300:, :, None]])
    encoders = [numbered([0, 0, 0]), numbered([0, 1, 2]), numbered([0, 1, 1]), numbered([0, 1, 2])]
    labels = np.stack([encode(s[:, h, None]) for h, encode in enumerate(encoders)], axis=1)
    matching = match_states(encoders, labels, tau, read_states)
    assert matching.n_states == 3
    assert accuracy(matching.labels, s) == 1.0


def test_two_cells_that_one_step_takes_for_one_are_told_apart_by_the_others():
    s, tau = cells(600, 6, 3, seed=4)
    numbers = [[0, 0, 0], [0, 1, 2], [0, 0, 1], [2, 1, 0], [1, 2, 0], [0, 1, 2]]
    encoders = [numbered(number) for number in numbers]
    labels = np.stack([np.asarray(number)[s[:, h]] for h, number in enumerate(numbers)], axis=1)
    assert accuracy(match_states(encoders, labels, tau, read_states).labels, s) == 1.0


def test_a_step_that_takes_two_cells_for_one_has_no_say_about_them():
    s, tau = cells(1200, 8, 4, seed=6)
    fused = [0, 0, 1, 2]
    numbers = [[0] * 4, [0, 1, 2, 3], fused, [3, 2, 1, 0], fused, [1, 2, 3, 0], [0, 1, 2, 3], [2, 3, 0, 1]]
    labels = np.stack([np.asarray(number)[s[:, h]] for h, number in enumerate(numbers)], axis=1)
    matching = match_states([numbered(number) for number in numbers], labels, tau, read_states)
    silent = {node for node, state in zip(matching.nodes, matching.state_of) if state < 0}
    assert silent == {(3, 0), (5, 0)}
    assert accuracy(matching.labels, s) == 1.0


def test_unassigned_observations_are_decoded_and_missing_ones_are_not():
    s, _ = cells(100, 4, 2, seed=3)
    episodes = [x[: 3 + i % 2, None] for i, x in enumerate(s)]
    tau = TrajectoryDataset.from_episodes([episodes[:50], episodes[50:]])
    labels = s.copy()
    labels[::7, 2] = -1
    found = match_states([numbered([0, 1])] * 4, labels, tau, read_states).labels
    assert (found[:, 2] >= 0).all()
    assert np.array_equal(found[:, 3] == -1, tau.lengths == 3)


def test_no_states_at_all_are_no_states():
    s, tau = cells(20, 3, 2, seed=5)
    assert match_states([numbered([0, 0])] * 3, np.full(s.shape, -1), tau, read_states).n_states == 0
