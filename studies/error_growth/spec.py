"""Which runs show how mistakes grow with h.

Paper: Section 3.1.1
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from craftrl.arguments import positive
from studies.study import Later, Study

__all__ = ["FIRST_SHARE", "GROWTH", "LEARNERS", "SCENARIOS", "STUDY", "Run", "Scenario", "sweep"]

FIRST_SHARE, GROWTH = 0.002, 1.4  # of the trajectories, the slow feature is wrong on FIRST_SHARE * GROWTH^(h-2)
LEARNERS = {"craft": "CRAFT", "draft": "Recursive DRAFT"}


@dataclass(frozen=True)
class Scenario:
    """A world and a corruption: which factor lies in wait, and how many trajectories an adversary spoils at h = 2."""

    title: str
    creeping: bool
    bad_share: float


SCENARIOS = {
    "toy": Scenario("The paper's toy world", creeping=False, bad_share=0.0),
    "creeping": Scenario("A feature that slowly goes wrong", creeping=True, bad_share=0.0),
    "corrupted": Scenario("The same, 0.5% spoilt at h = 2", creeping=True, bad_share=0.005),
}


@dataclass(frozen=True)
class Run:
    """One learner on one dataset."""

    scenario: str
    learner: str
    seed: int
    size: int
    horizon: int
    n_features: int


def sweep(n_seeds: int, size: int, horizon: int, n_features: int) -> list[Run]:
    """Both learners in every scenario, on the same data for each seed."""
    return [
        Run(scenario, learner, seed, size, horizon, n_features)
        for seed in range(n_seeds)
        for scenario in SCENARIOS
        for learner in LEARNERS
    ]


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--size", type=positive, default=5000, metavar="N", help="trajectories per agent (default: %(default)s)"
    )
    parser.add_argument("--horizon", type=positive, default=20, metavar="H", help="default: %(default)s")
    parser.add_argument("--features", type=positive, default=16, metavar="M", help="default: %(default)s")


STUDY = Study(
    name="error-growth",
    summary="mislabelled trajectories against h: CRAFT, recursive DRAFT",
    seeds=20,
    runs=lambda args: sweep(args.seeds, args.size, args.horizon, args.features),
    run_one=Later("studies.error_growth.run", "run_one"),
    report=Later("studies.error_growth.report", "report"),
    draw=Later("studies.error_growth.picture", "draw"),
    writes=("curves.json", "error_growth.png"),
    options=_options,
    examples=("--seeds 5", "--seeds 20 --size 5000 --workers 2 --out results/error-growth"),
)
