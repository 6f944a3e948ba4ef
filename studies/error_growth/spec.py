"""Which runs show how mistakes grow with h.

Paper: Section 3.1.1
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from craftrl.arguments import positive
from studies.study import Study

LEARNERS = {"craft": "CRAFT", "draft": "Recursive DRAFT"}
SCENARIOS = {
    "toy": "the paper's toy world",
    "creeping": "a feature that slowly goes wrong",
    "corrupted": "the same, 0.5% spoilt at h = 2",
}


@dataclass(frozen=True)
class Run:
    """One learner on one dataset."""

    scenario: str
    learner: str
    seed: int
    size: int = 5000
    horizon: int = 20
    n_features: int = 16


def runs(args: argparse.Namespace) -> list[Run]:
    """Both learners in every scenario, on the same data for each seed."""
    return [
        Run(scenario, learner, seed, args.size, args.horizon, args.features)
        for seed in range(args.seeds)
        for scenario in SCENARIOS
        for learner in LEARNERS
    ]


def options(parser: argparse.ArgumentParser) -> None:
    size = "trajectories per agent (default: %(default)s)"
    parser.add_argument("--size", type=positive, default=Run.size, metavar="N", help=size)
    parser.add_argument("--horizon", type=positive, default=Run.horizon, metavar="H", help="default: %(default)s")
    parser.add_argument("--features", type=positive, default=Run.n_features, metavar="M", help="default: %(default)s")


SUMMARY = "mislabelled trajectories against h: CRAFT, recursive DRAFT"
STUDY = Study("error-growth", SUMMARY, runs, 20, options=options, examples=("--seeds 5 --workers 2",))
