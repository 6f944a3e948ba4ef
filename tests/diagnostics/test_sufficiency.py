"""The check of learned states, with exact log-odds and an embedding that knows cell, walker and light."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from craftrl import TrajectoryDataset
from craftrl.core.oracle import CheckablePairFunction
from craftrl.diagnostics.findings import findings_of_checks
from craftrl.diagnostics.sufficiency import sufficiency
from small_worlds import to_the_right, walked

CELLS, H, N = 4, 5, 600
RIGHT = np.array([0.3, 0.7])  # how often each agent steps to the right


def exact(first, habits=(RIGHT,) * (H - 1)):
    """Log-odds (H-1, CELLS, CELLS) of agents that begin in cells with chances `first` and go right as `habits` say."""
    visits, found = np.stack([first, first]), []
    for right in habits:
        pairs = visits[..., None] * to_the_right(*right, cells=CELLS)
        visits = pairs.sum(axis=1)
        found.append(np.log((pairs[0] + 1e-12) / (pairs[1] + 1e-12)))
    return np.array(found)


@dataclass(frozen=True)
class ExactLogOdds:
    """Log-odds of the agents, read off the cells alone, with an error that depends on the grain in an observation."""

    unseen: np.ndarray
    table: np.ndarray
    scatter: float = 0.1

    def __call__(self, x):
        cell = x[..., 0].astype(int)
        odds = self.table[np.arange(H - 1), cell[:, :-1], cell[:, 1:]]
        return (odds + self.scatter * (x[:, :-1, 2] + x[:, 1:, 2]))[..., None]

    def of_unseen(self, x, rows):
        assert np.isin(rows, self.unseen).all()
        return self(x)


ONE_START, ANYWHERE = exact(np.eye(CELLS)[1]), exact(np.full(CELLS, 1 / CELLS))


def walks(seed=0, one_start=True):
    """Cells (2N, H) that two agents walk, a walker's cells, and observations with both and some grain."""
    rng = np.random.default_rng(seed)
    start = np.eye(CELLS)[1] if one_start else np.full(CELLS, 1 / CELLS)
    cell, _ = walked(N, to_the_right(*RIGHT, cells=CELLS), H, start, seed)
    walker = rng.integers(CELLS, size=(2 * N, H))
    for h in range(1, H):
        stays = rng.random(2 * N) < 0.8
        walker[stays, h] = walker[stays, h - 1]
    x = np.stack([cell, walker, rng.normal(size=cell.shape)], axis=-1)
    return cell, walker, TrajectoryDataset.from_arrays([x[:N], x[N:]])


CELL, WALKER, TAU = walks()
F = ExactLogOdds(np.arange(0, 2 * N, 5), ONE_START)


def embed(x):
    """What a network makes of observations: the cell, and a little of the walker and the grain."""
    return np.column_stack([x[:, 0], 0.05 * x[:, 1], 0.05 * x[:, 2]])


def check(codes, labels=None, f=F, tau=TAU, **more):
    found = sufficiency(f, embed, codes, codes if labels is None else labels, tau, **more)
    assert found is not None
    return found


def findings(found):
    return list(findings_of_checks(TAU, np.full(H, CELLS), None, None, found))


def kinds(found):
    return [finding.kind for finding in findings(found)]


@pytest.mark.parametrize("one_start", [True, False])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_right_states_hold_all_that_the_log_odds_know(seed, one_start):
    cell, _, tau = walks(seed, one_start)
    f = replace(F, table=ONE_START if one_start else ANYWHERE)
    found = check(cell, f=f, tau=tau)
    assert found.share == pytest.approx(1, abs=0.1)
    assert found.error < 0.05
    assert found.held > 0.99
    assert kinds(found) == []
    assert kinds(check(cell, f=f, tau=tau, by_step=True)) == []
    assert "the state is as good as the whole observation" in " ".join(found.reasons())


def test_codes_that_follow_noise_tell_nothing_of_the_agents():
    found = check(WALKER)
    assert found.share < 0.1
    assert found.held < 0.1
    assert "not sufficient" in kinds(found)
    assert "the state is not as good as the whole observation" in " ".join(found.reasons())


@pytest.mark.parametrize(("cell", "by_step"), [(2, False), (2, True), (3, False)])
def test_two_states_that_are_one_are_named(cell, by_step):
    """Also where the noise that splits them persists, and agents stay in the cell."""
    split = (cell == CELL) & (WALKER > 1)
    if by_step:
        split[:, :3] = split[:, 4:] = False
    found = check(np.where(split, CELLS, CELL), by_step=by_step)
    assert [found.named(s) for pair in found.alike for s in pair] == [((4,) * by_step, s) for s in (cell, CELLS)]
    assert found.share > 0.9  # which shows nothing of it
    assert found.held == 1 - found.doubtful < 0.97
    assert np.array_equal(found.joined(np.where(split, CELLS, CELL)), CELL)
    told = [str(finding) for finding in findings(found)]
    assert any(text.startswith(f"States {cell} and 4{' at h = 4' * by_step} look like one") for text in told)


def test_states_that_one_agent_alone_visits_are_not_one():
    assert check(np.where((CELL == 2) & (TAU.agent[:, None] == 1), CELLS, CELL)).alike == ()


@pytest.mark.parametrize(("misread", "fine"), [(0.01, True), (0.2, False)])
def test_misread_observations_are_noticed(misread, fine):
    rng = np.random.default_rng(1)
    wrong = rng.random(CELL.shape) < misread
    codes = np.where(wrong, rng.permutation(CELL, axis=0), CELL)
    assert (check(codes).held > 0.95) == fine
    by_encoder_alone = check(codes, CELL)
    assert (by_encoder_alone.read > 0.95) == fine
    assert bool(kinds(by_encoder_alone)) != fine


def test_few_held_out_trajectories_are_said_to_be_few():
    found = check(CELL, f=replace(F, unseen=np.arange(0, 2 * N, 200)))
    assert kinds(found) == ["hardly known"]


def test_habits_that_change_with_time_are_no_fault():
    """Agents that swap their habits half-way: a table of all steps together would know nothing of them."""
    habits = [RIGHT, RIGHT, RIGHT[::-1], RIGHT[::-1]]
    cell, _ = walked(N, [to_the_right(*right, cells=CELLS) for right in habits], H, start=1)
    x = np.stack([cell, 0 * cell, np.random.default_rng(0).normal(size=cell.shape)], axis=-1)
    table = exact(np.eye(CELLS)[1], habits)
    found = check(cell, f=replace(F, table=table), tau=TrajectoryDataset.from_arrays([x[:N], x[N:]]))
    assert found.share > 0.85
    assert kinds(found) == []


def test_trajectories_of_unequal_length_and_the_same_again():
    lengths = np.random.default_rng(0).integers(2, H + 1, size=TAU.n)
    x = np.stack([TAU.at(h) for h in range(1, H + 1)], axis=1)
    tau = TrajectoryDataset.from_episodes([[x[i, : lengths[i]] for i in range(k * N, (k + 1) * N)] for k in range(2)])
    codes = np.where(np.arange(H) < lengths[:, None], CELL, -1)
    one, other = check(codes, tau=tau), check(codes, tau=tau)
    assert one.share == other.share > 0.85
    assert one.held > 0.95


def test_log_odds_that_saw_everything_say_nothing():
    assert sufficiency(replace(F, unseen=np.arange(0)), embed, CELL, CELL, TAU) is None


def test_log_odds_that_know_nothing_are_said_to():
    class Nothing(ExactLogOdds):
        def __call__(self, x):
            return 0.0 * super().__call__(x)

    found = check(CELL, f=Nothing(F.unseen, F.table))
    assert np.isnan(found.share)
    assert kinds(found) == ["hardly known"]
    assert "the log-odds tell nothing" in " ".join(found.reasons())


def test_the_stand_in_is_what_the_check_asks_for():
    assert isinstance(F, CheckablePairFunction)
