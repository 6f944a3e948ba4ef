"""Whether states hold what log-odds know: the check of networks, with exact log-odds in place of a network's."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest

from craftrl import TrajectoryDataset
from craftrl.core.oracle import CheckablePairFunction
from craftrl.diagnostics.sufficiency import sufficiency

CELLS, H, N = 4, 5, 800
RIGHT = np.array([0.3, 0.7])  # how often each agent steps to the right


@dataclass(frozen=True)
class ExactLogOdds:
    """log-odds of the agents, read off the cell alone, with an error that depends on the grain in an observation."""

    unseen: np.ndarray
    scatter: float = 0.2

    def pair(self, x_h, x_next):
        c = np.log(RIGHT[1] / RIGHT[0])
        step = x_next[..., 0] - x_h[..., 0]
        step = np.where(step == 0, np.sign(x_h[..., 0] - 1), step)  # against a wall
        return -c * step + self.scatter * (x_h[..., 2] + x_next[..., 2])

    def __call__(self, x):
        return self.pair(x[:, :-1], x[:, 1:])[..., None]

    def of_unseen(self, x, rows):
        assert np.isin(rows, self.unseen).all()
        return self(x)

    def beside(self, x, references):
        """Literally: every observation with every reference."""
        n, steps = x.shape[:2]
        found = np.zeros((n, steps, 2, len(references), 1))
        for h, (r, ref) in product(range(steps - 1), enumerate(references)):
            found[:, h, 0, r, 0] = self.pair(x[:, h], ref[h + 1][None])
            found[:, h + 1, 1, r, 0] = self.pair(ref[h][None], x[:, h + 1])
        return found.reshape(n, steps, -1)


def walks(n=N, seed=0):
    """Cells (2n, H) that two agents walk from cell 1, a walker's cells, and observations with both and some grain."""
    rng = np.random.default_rng(seed)
    cell, walker = np.ones((2 * n, H), dtype=int), rng.integers(CELLS, size=(2 * n, H))
    for h in range(1, H):
        move = np.where(rng.random(2 * n) < np.repeat(RIGHT, n), 1, -1)
        cell[:, h] = np.clip(cell[:, h - 1] + move, 0, CELLS - 1)
        stays = rng.random(2 * n) < 0.8
        walker[stays, h] = walker[stays, h - 1]
    x = np.stack([cell, walker, rng.normal(size=cell.shape)], axis=-1)
    return cell, walker, TrajectoryDataset.from_arrays([x[:n], x[n:]])


CELL, WALKER, TAU = walks()
F = ExactLogOdds(np.arange(0, 2 * N, 5))


def check(codes, f=F, at_chance=(), tau=TAU):
    found = sufficiency(f, codes, tau, at_chance, seed=0)
    assert found is not None
    return found


def test_right_states_hold_all_that_the_log_odds_know():
    found = check(CELL)
    assert found.captured > 0.98
    assert found.error < 0.1
    assert (found.closed == 1).all()
    assert np.isnan(found.read[0])  # one state
    assert (found.read[1:] > 0.97).all()
    assert (found.held[1:] > 0.95).all()
    assert found.told == pytest.approx(np.log(2) + (RIGHT * np.log(RIGHT)).sum(), abs=0.03)


def test_codes_that_follow_noise_capture_nothing_and_are_no_states_to_the_log_odds():
    found = check(np.column_stack([CELL[:, 0], WALKER[:, 1:]]))
    assert found.captured < 0.2
    assert (found.read[1:] < 0.5).all()


def test_fused_states_are_not_closed_at_their_step_and_its_neighbours_alone():
    codes = CELL.copy()
    codes[:, 2] = np.minimum(codes[:, 2], 1)  # at h = 3, cells 1 and 3 are one state
    found = check(codes)
    assert (found.closed[[1, 2]] < 0.8).all()
    assert (found.closed[[0, 3]] == 1).all()


def test_a_state_that_noise_splits_is_read_no_better_than_a_coin():
    codes = np.where((CELL == 2) & (WALKER > 1), CELLS, CELL)
    found = check(codes)
    at = int(np.nanargmin(found.read))
    assert found.read[at] < 0.65
    assert found.worst[at] in (2, CELLS)
    assert found.captured > 0.95  # which shows nothing of it
    assert (found.closed == 1).all()


@pytest.mark.parametrize(("misread", "least", "most"), [(0.01, 0.9, 1.0), (0.2, 0.0, 0.7)])
def test_misread_observations_lower_what_is_held(misread, least, most):
    rng = np.random.default_rng(1)
    wrong = rng.random(CELL.shape) < misread
    codes = np.where(wrong, rng.permutation(CELL, axis=0), CELL)
    assert least < check(codes).held[1:].mean() <= most


def test_where_agents_act_alike_nothing_is_asked_and_nothing_is_wrong():
    found = check(CELL, at_chance=[2, 3])
    assert np.isnan(found.read[2])
    assert not np.isnan(found.read[[1, 3, 4]]).any()
    assert found.several[2]
    assert found.captured > 0.98


def test_log_odds_that_saw_everything_say_nothing():
    assert sufficiency(replace(F, unseen=np.arange(0)), CELL, TAU, [], 0) is None


def test_trajectories_of_unequal_length_and_the_same_again():
    lengths = np.random.default_rng(0).integers(2, H + 1, size=TAU.n)
    x = np.stack([TAU.at(h) for h in range(1, H + 1)], axis=1)
    episodes = [[x[i, : lengths[i]] for i in range(k * N, (k + 1) * N)] for k in range(2)]
    tau = TrajectoryDataset.from_episodes(episodes)
    codes = np.where(np.arange(H) < lengths[:, None], CELL, -1)
    one, other = check(codes, tau=tau), check(codes, tau=tau)
    assert one.captured == other.captured > 0.95
    np.testing.assert_array_equal(one.read, other.read)
    assert (one.closed == 1).all()
    assert np.nanmin(one.read) > 0.95


def test_the_stand_in_is_what_the_check_asks_for():
    assert isinstance(F, CheckablePairFunction)


# -- each part, literally ------------------------------------------------------------------------------------------


def literal_captured(log_odds, codes, agent, pairs):
    """Row by row, for two agents."""
    gains = {"f": 0.0, "states": 0.0}
    for h in pairs:
        share = np.bincount(agent) / len(agent)
        log_p = [np.array([-np.logaddexp(0, -f), -np.logaddexp(0, f)]) for f in log_odds[:, h - 1, 0]]
        for i in range(len(agent)):
            alike = [j for j in range(len(agent)) if (codes[j, h - 1 : h + 1] == codes[i, h - 1 : h + 1]).all()]
            mean = np.mean([log_p[j] for j in alike], axis=0)
            mean = mean - np.logaddexp(*mean)
            gains["f"] += log_p[i][agent[i]] - np.log(share[agent[i]])
            gains["states"] += mean[agent[i]] - np.log(share[agent[i]])
    return gains["f"] / (len(agent) * len(pairs)), gains["states"] / gains["f"]


def test_the_captured_share_row_by_row():
    rows = np.sort(np.random.default_rng(0).permutation(2 * N)[:60])
    x = np.stack([TAU.at(h)[rows] for h in range(1, H + 1)], axis=1)
    codes = np.minimum(CELL, 2)
    found = check(codes, replace(F, unseen=rows), at_chance=[2, 4])
    expected = literal_captured(F(x), codes[rows], TAU.agent[rows], [1, 3])
    np.testing.assert_allclose((found.told, found.captured), expected)


def test_its_standard_error_is_the_spread_over_new_trajectories():
    found = []
    for seed in range(1, 31):
        cell, _, tau = walks(100, seed)
        found.append(check(np.minimum(cell, 2), replace(F, unseen=np.arange(200)), tau=tau))
    assert np.std([one.captured for one in found]) == pytest.approx(np.mean([one.error for one in found]), rel=0.5)


def test_references_are_of_all_states_in_turn():
    class Kept(ExactLogOdds):
        def beside(self, x, references):
            object.__setattr__(self, "references", references)
            return super().beside(x, references)

    f = Kept(F.unseen)
    check(CELL, f)
    for h in range(H):
        counts = np.bincount(f.references[:, h, 0].astype(int))[np.unique(CELL[:, h])]
        assert counts.max() - counts.min() <= 1


def test_a_state_with_one_observation_does_no_harm():
    codes = CELL.copy()
    codes[7, 2] = CELLS
    np.testing.assert_allclose(check(codes).read, check(CELL).read, atol=0.02)


def test_a_step_that_nobody_reaches_and_a_state_seen_once_are_answered():
    codes = CELL.copy()
    codes[:, -1] = -1
    found = check(codes)
    assert np.isnan(found.read[-1])
    assert found.closed[-1] == 1
    assert found.captured > 0.95


def test_log_odds_that_know_nothing_tell_no_states_apart():
    class Nothing(ExactLogOdds):
        def pair(self, x_h, x_next):
            return 0.0 * (x_h[..., 0] + x_next[..., 0])

    found = check(CELL, Nothing(F.unseen))
    assert found.told == pytest.approx(0, abs=1e-9)
    assert np.nanmax(found.read[1:]) == 0
