"""States of different steps, matched by mutual recognition."""

import numpy as np

from craftrl import TrajectoryDataset
from craftrl.core.encoders import read_states
from craftrl.estimators.matching import match_states
from craftrl.states.accuracy import accuracy


def reads(tau):
    return lambda encoder, h: read_states(encoder, tau, h)


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
    matching = match_states([numbered(number) for number in numbers], labels, tau, reads(tau))
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
    matching = match_states(encoders, labels, tau, reads(tau))
    assert matching.n_states == 3
    assert accuracy(matching.labels, s) == 1.0


def test_a_cell_that_one_step_never_sees_stays_apart():
    """The third step knows two cells only, and takes the third for one of them."""
    s, _ = cells(600, 4, 3, seed=2)
    s[:, 2] = s[:, 2] % 2
    tau = TrajectoryDataset.from_arrays([s[:300, :, None], s[300:, :, None]])
    encoders = [numbered([0, 0, 0]), numbered([0, 1, 2]), numbered([0, 1, 1]), numbered([0, 1, 2])]
    labels = np.stack([encode(s[:, h, None]) for h, encode in enumerate(encoders)], axis=1)
    matching = match_states(encoders, labels, tau, reads(tau))
    assert matching.n_states == 3
    assert accuracy(matching.labels, s) == 1.0


def test_two_cells_that_one_step_takes_for_one_are_told_apart_by_the_others():
    s, tau = cells(600, 6, 3, seed=4)
    numbers = [[0, 0, 0], [0, 1, 2], [0, 0, 1], [2, 1, 0], [1, 2, 0], [0, 1, 2]]
    encoders = [numbered(number) for number in numbers]
    labels = np.stack([np.asarray(number)[s[:, h]] for h, number in enumerate(numbers)], axis=1)
    assert accuracy(match_states(encoders, labels, tau, reads(tau)).labels, s) == 1.0


def test_a_step_that_takes_two_cells_for_one_has_no_say_about_them():
    s, tau = cells(1200, 8, 4, seed=6)
    fused = [0, 0, 1, 2]
    numbers = [[0] * 4, [0, 1, 2, 3], fused, [3, 2, 1, 0], fused, [1, 2, 3, 0], [0, 1, 2, 3], [2, 3, 0, 1]]
    labels = np.stack([np.asarray(number)[s[:, h]] for h, number in enumerate(numbers)], axis=1)
    matching = match_states([numbered(number) for number in numbers], labels, tau, reads(tau))
    silent = {node for node, state in zip(matching.nodes, matching.state_of) if state < 0}
    assert silent == {(3, 0), (5, 0)}
    assert accuracy(matching.labels, s) == 1.0


def test_unassigned_observations_are_decoded_and_missing_ones_are_not():
    s, _ = cells(100, 4, 2, seed=3)
    episodes = [x[: 3 + i % 2, None] for i, x in enumerate(s)]
    tau = TrajectoryDataset.from_episodes([episodes[:50], episodes[50:]])
    labels = s.copy()
    labels[::7, 2] = -1
    found = match_states([numbered([0, 1])] * 4, labels, tau, reads(tau)).labels
    assert (found[:, 2] >= 0).all()
    assert np.array_equal(found[:, 3] == -1, tau.lengths == 3)


def test_no_states_at_all_are_no_states():
    s, tau = cells(20, 3, 2, seed=5)
    assert match_states([numbered([0, 0])] * 3, np.full(s.shape, -1), tau, reads(tau)).n_states == 0


def line(n, H, seed):
    """A walk up a line, one cell more at each step at most."""
    rng = np.random.default_rng(seed)
    return np.cumsum(np.concatenate([np.zeros((n, 1)), rng.random((n, H - 1)) < 0.5], axis=1), axis=1).astype(int)


def test_cells_that_most_steps_never_saw_are_states():
    """The encoder of step h knows the cells up to h - 1, and takes those further away for the last that it knows."""
    s = line(4000, 8, seed=0)
    tau = TrajectoryDataset.from_arrays([s[:2000, :, None], s[2000:, :, None]])
    encoders = [numbered(np.minimum(np.arange(8), h)) for h in range(8)]
    matching = match_states(encoders, s, tau, reads(tau))
    assert matching.n_states == 8
    assert accuracy(matching.labels, s) == 1.0


def test_a_small_part_split_off_at_one_step_is_no_state():
    """At the last step a twentieth of cell 1 was taken for a state; all other steps know the cell whole."""
    rng = np.random.default_rng(7)
    s, _ = cells(4000, 6, 3, seed=7)
    x = np.stack([s, rng.integers(20, size=s.shape)], axis=2)
    tau = TrajectoryDataset.from_arrays([x[:2000], x[2000:]])

    def split(x):
        return np.where((x[:, 0] == 1) & (x[:, 1] == 0), 3, x[:, 0])

    encoders = [lambda x: x[:, 0]] * 5 + [split]
    labels = np.stack([encode(x[:, h]) for h, encode in enumerate(encoders)], axis=1)
    matching = match_states(encoders, labels, tau, reads(tau))
    assert matching.n_states == 3
    assert accuracy(matching.labels, s) == 1.0


def test_all_observations_at_the_start_are_one_state():
    """A third of them look like another cell to every encoder, as under a cover."""
    s, _ = cells(600, 5, 3, seed=8)
    x = s.copy()
    x[::3, 0] = 1
    tau = TrajectoryDataset.from_arrays([x[:300, :, None], x[300:, :, None]])
    labels = s.copy()
    matching = match_states([numbered([0, 0, 0])] + [numbered([0, 1, 2])] * 4, labels, tau, reads(tau))
    assert matching.n_states == 3
    assert accuracy(matching.labels, s) == 1.0


def test_a_start_that_no_other_step_visits_is_a_state_of_its_own():
    """Each encoder takes the start, which it never saw, for another cell."""
    s, _ = cells(900, 7, 4, seed=9)
    s[:, 1:] = s[:, 1:] % 3 + 1
    tau = TrajectoryDataset.from_arrays([s[:450, :, None], s[450:, :, None]])
    numbers = [[0] * 4, [0, 0, 1, 2], [1, 0, 1, 2], [2, 0, 1, 2], [0, 0, 1, 2], [1, 0, 1, 2], [2, 0, 1, 2]]
    labels = np.stack([np.asarray(number)[s[:, h]] for h, number in enumerate(numbers)], axis=1)
    matching = match_states([numbered(number) for number in numbers], labels, tau, reads(tau))
    assert matching.n_states == 4
    assert accuracy(matching.labels, s) == 1.0


def walk(n, H, n_cells, seed):
    """Cells of a walk on a line, each neighbour as likely as staying."""
    rng = np.random.default_rng(seed)
    s = np.zeros((n, H), dtype=int)
    for h in range(1, H):
        s[:, h] = np.clip(s[:, h - 1] + rng.integers(-1, 2, size=n), 0, n_cells - 1)
    return s


def matched(x, encoders):
    """The states of observations x (n, H, d) that encoders of all steps come to."""
    n = len(x) // 2
    labels = np.stack([encode(x[:, h]) for h, encode in enumerate(encoders)], axis=1)
    tau = TrajectoryDataset.from_arrays([x[:n], x[n:]])
    return match_states(encoders, labels, tau, reads(tau))


def test_a_state_that_several_steps_split_by_noise_is_whole_again():
    """The noise lasts, and says nothing of where the next step leads."""
    rng = np.random.default_rng(4)
    s = walk(2000, 12, 5, seed=4)
    noise = np.repeat(rng.integers(2, size=(2000, 1)), 12, axis=1)

    def plain(x):
        return x[:, 0]

    def split(x):
        return np.where((x[:, 0] == 2) & (x[:, 1] == 1), 5, x[:, 0])

    encoders = [lambda x: 0 * x[:, 0], *[plain] * 6, *[split] * 2, *[plain] * 3]
    matching = matched(np.stack([s, noise], axis=2), encoders)
    assert matching.n_states == 5
    assert accuracy(matching.labels[:, 1:], s[:, 1:]) == 1.0
