"""Each finding by the record that it is made from; right states have none. Whole fits are in tests/estimators."""

import math
from dataclasses import replace

import numpy as np
import pytest

from craftrl import TrajectoryDataset
from craftrl.core.craft import Result
from craftrl.core.grid import Grid
from craftrl.core.trace import StartTest, StepTrace, Trace
from craftrl.diagnostics.findings import findings_of_checks, findings_of_partition, findings_of_steps
from craftrl.diagnostics.mixtures import Mixture
from craftrl.diagnostics.stability import Stability
from craftrl.diagnostics.state_tests import StateTests
from craftrl.diagnostics.sufficiency import Sufficiency
from small_worlds import flips, walked

H, N = 4, 200
LABELS, _ = walked(N, flips(0.25, 0.7), H)
NOISE = np.random.default_rng(0).integers(2, size=LABELS.shape)
ALIKE = LABELS.copy()
ALIKE[:, 1:3] = NOISE[:, 1:3]
RARE = LABELS.copy()
RARE[(LABELS[:, 2] == 1) & (NOISE[:, 0] > 0) & (np.arange(2 * N) < 110), 3] = 2
STEP = StepTrace(1, 0.0, np.zeros((2, 3), dtype=int), (), (), 2, 1.0, "ok", 0.6, 0.0, math.log(2), 1e-9)
ONES, STEPS = np.ones(H - 1), np.zeros(H)
TESTS = StateTests(ONES, -50 * ONES, ONES, ONES, ONES, ONES, STEPS.astype(int) + 8, STEPS + np.inf, STEPS, STEPS, 0.0)
KNOWN = Sufficiency(0.1, 1e-9, 1.0, 0.02, 100, (), 0.0, 0.99, (-1, 1.0), np.zeros(H, dtype=int))
STABLE = Stability(np.array([[1, 2, 2, 2]] * 3), np.ones((3, H)))


def dataset(n=N):
    return TrajectoryDataset.from_arrays([LABELS[:n, :, None], LABELS[N : N + n, :, None]])


def result(labels=LABELS, start=None, one_encoder=True, at=(1, 2, 3), **changes):
    """What a fit has found; the iterations `at` are changed."""
    steps = tuple(replace(STEP, h=h, **(changes if h in at else {})) for h in range(1, H))
    encoders = (len,) * H if one_encoder else (len, *(abs,) * (H - 1))
    return Result(encoders, labels, Trace(Grid.from_bounds(1.0, 0.2), steps, start=start))


def of_partition(tau=None, evidence=50.0, r2=0.9, **changes):
    return findings_of_partition(result(**changes), tau or dataset(), 0.1, evidence, r2)


def of_steps(tests=TESTS, coupling="chain", **changes):
    return findings_of_steps(result(one_encoder=False, **changes), dataset(), 0.1, coupling, tests)


def of_tests(**changes):
    return of_steps(replace(TESTS, **changes))


def of_checks(tau=None, **given):
    return findings_of_checks(tau or dataset(), np.array([1, 2, 2, 2]), **given)


def refits(**changes):
    return of_checks(stability=replace(STABLE, **changes))


def known(**changes):
    return of_checks(sufficient=replace(KNOWN, **changes))


SECOND, THIRD = np.array([1, 1e-9, 1]), np.array([0, 0, 0.9, 0])  # of pairs of steps, and of steps
# What is found as well where these are.
BESIDE = {"alike at some steps": "states tell less", "not sufficient": "hardly known", "independent steps": "one state"}
HALF_LOST, SOME_LOST = LABELS.copy(), LABELS.copy()
HALF_LOST[:300, 3] = SOME_LOST[:50, 3] = -1


@pytest.mark.parametrize(
    ("found", "kind", "steps", "severity"),
    [
        (lambda: of_partition(p_value=0.5), "at chance", (1, 2, 3), "warning"),
        (lambda: of_partition(labels=ALIKE, p_value=0.5, at=[2]), "alike at some steps", (2,), "note"),
        (lambda: of_partition(p_value=0.5, at=[2]), "test too small", (2,), "note"),
        (lambda: of_partition(p_value=0.5, at=[1, 2]), "test too small", (1, 2), "note"),
        (lambda: of_partition(one_encoder=False, p_value=0.5, at=[1, 2]), "at chance", (1, 2), "warning"),
        (lambda: of_partition(evidence=4.0), "no evidence", (), "warning"),
        (lambda: of_partition(labels=0 * LABELS), "no evidence", (), "warning"),
        (lambda: of_partition(r2=0.4), "embedding holds little", (), "warning"),
        (lambda: of_partition(labels=NOISE), "states tell less", (), "warning"),
        (lambda: of_partition(labels=RARE), "rare move", (), "note"),
        (lambda: of_steps(labels=RARE), "rare move", (3,), "note"),
        (lambda: of_steps(replace(TESTS, log_p=0 * ONES), p_value=0.5), "at chance", (1, 2, 3), "warning"),
        (lambda: of_steps(encoder_loss=0.5, at=[2]), "misread", (3,), "note"),
        (lambda: of_steps(replace(TESTS, doubted=0.3), encoder_loss=0.5, at=[2]), "misread", (3,), "warning"),
        (lambda: of_steps(outcome="no state", at=[3]), "no state", (4,), "warning"),
        (lambda: of_steps(outcome="one state"), "one state", (2, 3, 4), "warning"),
        (lambda: of_steps(outcome="too many states", at=[2]), "too many states", (3,), "note"),
        (lambda: of_steps(coupling="independent", outcome="one state"), "independent steps", (), "note"),
        (lambda: of_steps(start=StartTest(1e-9, 0.5, 0, 1)), "first observations differ", (1,), "warning"),
        (lambda: of_steps(start=StartTest(0.5, 1e-9, 0.5, 1)), "several starts", (1,), "warning"),
        (lambda: of_steps(labels=SOME_LOST), "unassigned", (4,), "note"),
        (lambda: of_tests(p_closure=SECOND), "not closed", (2,), "warning"),
        (lambda: of_tests(p_residual=SECOND), "agents told by more", (2,), "warning"),
        (lambda: of_tests(split=-20 * THIRD), "split", (3,), "warning"),
        (lambda: of_tests(doubt=THIRD, doubted=0.9), "undecided", (3,), "warning"),
        (lambda: of_tests(unnamed=THIRD), "states missing", (3,), "warning"),
        (lambda: of_checks(tests=replace(TESTS, p_closure=SECOND)), "not closed", (2,), "warning"),
        (lambda: of_checks(dataset(19)), "few trajectories", (), "warning"),
        (lambda: refits(n_states=np.ones((3, H))), "counts differ", (2, 3, 4), "warning"),
        (lambda: refits(agreement=np.full((3, H), 0.7)), "unstable", (1, 2, 3, 4), "warning"),
        (
            lambda: of_checks(mixtures=[Mixture(3, 1, 0.3, (0.5, 0.5), (NOISE, NOISE))]),
            "looks like two",
            (3,),
            "warning",
        ),
        (lambda: known(n_unseen=5), "hardly known", (), "warning"),
        (lambda: known(p_gain=0.2), "hardly known", (), "warning"),
        (lambda: known(share=0.75, error=0.1), "not sufficient", (), "warning"),
        (lambda: known(alike=((3, 4),), offsets=np.array([0, 1, 3, 5])), "look like one", (3,), "warning"),
        (lambda: known(misread=(1, 0.8), read=0.9), "misread state", (), "warning"),
        (lambda: known(read=0.9), "misread observations", (), "warning"),
    ],
)
def test_what_speaks_against_states_is_found_at_its_steps(found, kind, steps, severity):
    ours = [finding for finding in found() if finding.kind != BESIDE.get(kind)]
    assert [(one.kind, one.steps, one.severity) for one in ours] == [(kind, steps, severity)]
    assert str(ours[0]) == f"{ours[0].found} {ours[0].advice}".rstrip()


def test_states_that_are_right_have_no_finding():
    for found in (of_partition(), of_steps(), of_steps(None), known(), refits(), of_checks(tests=TESTS)):
        assert list(found) == []
    assert list(of_steps(p_value=0.5)) == []  # all steps together are better than chance
    misread = LABELS.copy()
    misread[np.flatnonzero(LABELS[:, 2] == 1)[:3], 3] = 2  # fewer than Line 19 sees
    assert list(of_steps(labels=misread)) == []
    assert list(of_steps(outcome="one state", at=[2])) == []  # it may be all there is at that step


def test_states_that_most_trajectories_lack_are_warned_of():
    first, *_ = of_steps(labels=HALF_LOST)
    assert (first.kind, first.steps, first.severity) == ("unassigned", (4,), "warning")
