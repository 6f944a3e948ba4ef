"""Bounds from the data alone: the loss that they are chosen by, and the search."""

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftrl import CRAFT, AssumptionWarning, CoordinateOracle, TrajectoryDataset
from craftrl.core.craft import Bounds
from craftrl.core.encoders import ConstantEncoder, read_states
from craftrl.envs import BitsExBMDP, collect
from craftrl.estimators.bounds import (
    EXACT_STARTS,
    LIMITS,
    START,
    STARTS,
    GivenUp,
    Pace,
    Tried,
    limits_for,
    lowered,
    search_bounds,
    starts_for,
    unnamed,
    worth_sharing,
)
from craftrl.estimators.evidence import chained_loss

NAMES = ("alpha", "eta", "nu")


def bit(i):
    return lambda x: x[:, i].astype(int)


def codes(encoders, tau):
    return [read_states(encoder, tau, h) for h, encoder in enumerate(encoders, start=1)]


def loss_of(encoders, tau):
    return chained_loss(codes(encoders, tau), tau)


def best_bounds(loss, start, free=NAMES):
    """The search with nothing but a loss."""
    return search_bounds(lambda bounds, at_most: Tried(bounds, None, loss(bounds)), [start], free)[0].bounds


@pytest.fixture(scope="module")
def toy():
    world = BitsExBMDP(8, 12, seed=1)
    return world, collect(world, world.paper_policies(), 1500, seed=0)


def test_the_loss_by_hand():
    # One pair of steps; agent 0 shows code 0 three times and 1 once, agent 1 the other way round.
    x = [np.array([[[0], [v]] for v in values]) for values in ([0, 0, 0, 1], [0, 1, 1, 1])]
    tau = TrajectoryDataset.from_arrays(x)
    entropy = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    penalty = 2 * 0.5 * np.log(8)  # two cells, K - 1 = 1
    assert loss_of([ConstantEncoder(), bit(0)], tau) == pytest.approx(entropy + penalty / 8)


def test_the_true_encoders_have_the_least_loss(toy):
    world, data = toy
    true = [ConstantEncoder(), *(bit(world.controllable_feature(h)) for h in range(2, world.H + 1))]
    best = loss_of(true, data.tau)
    for h in range(2, world.H + 1):
        for feature in set(range(world.M)) - {world.controllable_feature(h)}:
            other = [*true[: h - 1], bit(feature), *true[h:]]
            assert loss_of(other, data.tau) > best


def test_states_split_for_nothing_do_not_pay(toy):
    world, data = toy
    true = [ConstantEncoder(), *(bit(world.controllable_feature(h)) for h in range(2, world.H + 1))]
    coin = np.random.default_rng(0)
    split = [*true[:3], lambda x: 2 * true[3](x) + coin.integers(0, 2, len(x)), *true[4:]]
    assert loss_of(split, data.tau) > loss_of(true, data.tau)


def test_trajectories_that_are_over_do_not_count():
    episodes = [[np.array([0, 1, 1]), np.array([0, 0])], [np.array([0, 0, 0]), np.array([0, 1])]]
    tau = TrajectoryDataset.from_episodes(episodes)
    encoder = lambda x: np.asarray(x).reshape(len(x)).astype(int)  # noqa: E731
    # (x_1, x_2) says nothing of the agent, (x_2, x_3) says all; two cells each; six pairs.
    assert loss_of([encoder] * 3, tau) == pytest.approx((4 * np.log(2) + 4 * 0.5 * np.log(4)) / 6)


@given(
    st.tuples(st.integers(-3, 0), st.integers(-3, 1), st.integers(-4, 2)),
    st.sampled_from([NAMES, NAMES[:1], NAMES[1:]]),
)
def test_the_search_finds_the_bottom_of_a_bowl(target, free):
    def loss(bounds):
        return sum((np.log2(getattr(bounds, n) / getattr(START, n)) - t) ** 2 for n, t in zip(NAMES, target))

    found = best_bounds(loss, START, free)
    for name, steps in zip(NAMES, target):
        low, high = LIMITS[name]
        expected = getattr(START, name) * 2.0**steps if name in free else getattr(START, name)
        assert getattr(found, name) == pytest.approx(min(max(expected, low), high))


def test_a_flat_loss_moves_nothing_and_nothing_is_tried_twice():
    tried = []
    assert best_bounds(lambda bounds: tried.append(bounds) or 0.0, START) == START
    assert len(set(tried)) == len(tried)


def test_the_search_keeps_to_the_limits():
    found = best_bounds(lambda bounds: bounds.alpha + bounds.eta - bounds.nu, START)
    assert found == Bounds(LIMITS["alpha"][0], LIMITS["eta"][0], LIMITS["nu"][1])


def test_bounds_are_chosen_without_the_truth_and_lead_to_it(toy):
    world, data = toy
    model = CRAFT(CoordinateOracle(), coupling="independent", relabel=False).fit(data.tau)
    assert [model.encoders_[h].feature for h in range(2, 9)] == [world.controllable_feature(h) for h in range(2, 9)]
    assert all(LIMITS[name][0] <= getattr(model.bounds_, name) <= LIMITS[name][1] for name in NAMES)


@pytest.mark.parametrize("start", [Bounds(0.25, 0.05, 0.02), Bounds(1.0, 0.4, 0.8)])
def test_what_is_chosen_is_never_worse_by_its_own_measure_than_the_start(toy, start):
    tau = toy[1].tau

    def loss(bounds):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AssumptionWarning)
            return loss_of(CRAFT.paper(CoordinateOracle(), **vars(bounds)).fit(tau).encoders_, tau)

    found = best_bounds(loss, start)
    assert loss(found) <= loss(start)
    for name, factor in [(name, factor) for name in NAMES for factor in (0.5, 2.0)]:
        low, high = LIMITS[name]
        neighbour = replace(found, **{name: min(max(getattr(found, name) * factor, low), high)})
        assert loss(neighbour) >= loss(found) - 1e-12


def two_valleys(bounds):
    """A shallow one at START and a deep one at low bounds, with a ridge between them."""
    low = np.log(bounds.eta / 0.0125) ** 2 + np.log(bounds.nu / 0.0016) ** 2
    high = np.log(bounds.eta / START.eta) ** 2 + np.log(bounds.nu / START.nu) ** 2
    return float(min(low, high + 0.5))


def test_several_starts_reach_a_valley_that_one_does_not():
    def run(bounds, at_most):
        return Tried(bounds, None, two_valleys(bounds))

    alone = search_bounds(run, [START], NAMES)
    assert alone[0].loss == 0.5
    tried = search_bounds(run, STARTS, NAMES)
    assert tried[0].loss < 0.1
    assert tried[0].loss == min(t.loss for t in tried)
    assert len({t.bounds for t in tried}) == len(tried)  # none twice


def test_runs_worth_sharing_are_the_best_and_the_best_of_each_level():
    tried = search_bounds(lambda bounds, _: Tried(bounds, None, two_valleys(bounds) - bounds.alpha), STARTS, NAMES)
    kept = worth_sharing(tried, STARTS)
    assert kept[0] is tried[0]
    levels = {(bounds.eta, bounds.nu) for bounds in STARTS}
    assert {(t.bounds.eta, t.bounds.nu) for t in kept} >= levels
    assert all(t.bounds.alpha == 1.0 for t in kept[1:])  # the better alpha of each
    assert worth_sharing(tried, ()) == tried[:1]


def test_a_bound_is_lowered_within_its_limits():
    assert lowered(START, "nu", 4.0).nu == START.nu / 4
    least = LIMITS["eta"][0]
    assert lowered(Bounds(1.0, 1.5 * least, 0.1), "eta", 4.0).eta == least
    below = Bounds(1.0, least / 10, 0.1)
    assert lowered(below, "eta", 4.0) == below


def of_sizes(*sizes):
    return TrajectoryDataset.from_arrays([np.zeros((n, 2, 1), dtype=int) for n in sizes])


def test_the_search_starts_from_the_agents_sizes():
    assert starts_for(of_sizes(7, 7), exact=True) == EXACT_STARTS
    assert starts_for(of_sizes(7, 7), exact=False) == STARTS
    assert starts_for(of_sizes(100, 20, 5), exact=True)[0].eta == pytest.approx(1 / 81)  # odds of 1 to 4, and 1 to 20
    assert limits_for(of_sizes(7, 7)) == LIMITS
    assert limits_for(of_sizes(1, 50))["eta"][0] < LIMITS["eta"][0] / 40


def test_unnamed_counts_codes_without_a_state_and_states_without_a_code():
    codes = [np.array([0, 0, 0, -1]), np.array([0, 1, 2, 2])]
    assert unnamed(codes, [1, 3]) == 0
    assert unnamed(codes, [1, 2]) == pytest.approx(0.5)
    assert unnamed(codes, [2, 4]) == 2


def test_between_equal_losses_the_states_that_encoders_read_decide():
    def run(bounds, at_most):
        return Tried(bounds, None, 1.0, unnamed=abs(np.log2(bounds.eta / START.eta) + 2))

    assert search_bounds(run, [START], NAMES)[0].bounds == replace(START, eta=START.eta / 4)


@pytest.mark.parametrize(("of_first", "expected"), [(0.0, 1.0), (0.5, 0.25)])
def test_other_starts_are_tried_only_where_the_first_names_other_states(of_first, expected):
    def run(bounds, at_most):
        return Tried(bounds, None, 0.9 if bounds.alpha == 0.25 else 1.0, unnamed=of_first * (bounds.alpha == 1))

    found = search_bounds(run, EXACT_STARTS, ["nu"], one_will_do=True)
    assert found[0].bounds.alpha == expected


# -- runs that are given up ------------------------------------------------------------------------------------------


def test_a_run_is_given_up_once_the_best_of_all_runs_could_not_make_up_for_it():
    pace = Pace(TrajectoryDataset.from_arrays([np.zeros((5, 5, 1), dtype=int)] * 2))  # 40 pairs at four pairs of steps
    pace.check([1e9], at_most=np.inf)  # the first run has nobody to beat
    pace.ended([4.0, 4.0, 4.0, 4.0])
    pace.ended([6.0, 6.0, 2.0, 2.0])
    assert pace.best.tolist() == [4.0, 4.0, 2.0, 2.0]
    pace.check([8.0, 4.0], at_most=16 / 40)  # with 2 and 2 it is as good
    with pytest.raises(GivenUp):
        pace.check([8.0, 4.1], at_most=16 / 40)


def test_starts_come_to_their_end_and_others_are_told_the_best_loss_so_far():
    told, losses = [], []

    def run(bounds, at_most):
        told.append(at_most)
        losses.append(bounds.alpha + bounds.eta + bounds.nu)  # lower bounds are better, so that moves pay
        return Tried(bounds, None, losses[-1])

    search_bounds(run, STARTS, NAMES)
    assert told[: len(STARTS)] == [np.inf] * len(STARTS)
    assert told[len(STARTS) :] == [min(losses[:i]) for i in range(len(STARTS), len(losses))]
    assert told[-1] < told[len(STARTS)]


@pytest.mark.parametrize(("stationary", "seed"), [(False, 1), (False, 7), (True, 7)])
def test_giving_runs_up_changes_no_choice(monkeypatch, stationary, seed):
    """Scattered log-odds in a world of nine cells: the bounds and states of a search in which every run ends."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    from bounds_search import StandIn, true_states

    tau = true_states("tiny", seed=seed)
    given_up = CRAFT(StandIn(), stationary=stationary).fit(tau)
    monkeypatch.setattr(Pace, "check", lambda *args: None)
    whole = CRAFT(StandIn(), stationary=stationary).fit(tau)
    asked = [{use.question: use.asked for use in model.trace_.oracle_use} for model in (given_up, whole)]
    assert asked[0]["separation"] < asked[1]["separation"]
    assert given_up.bounds_ == whole.bounds_
    assert np.array_equal(given_up.labels_, whole.labels_)
    assert given_up.choices_ == whole.choices_
