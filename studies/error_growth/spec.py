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


def sweep(n_seeds: int, size: int, horizon: int, n_features: int) -> list[Run]:
    """Both learners in every scenario, on the same data for each seed."""
    return [
        Run(scenario, learner, seed, size, horizon, n_features)
        for seed in range(n_seeds)
        for scenario in SCENARIOS
        for learner in LEARNERS
    ]


def options(parser: argparse.ArgumentParser) -> None:
    size = "trajectories per agent (default: %(default)s)"
    parser.add_argument("--size", type=positive, default=Run.size, metavar="N", help=size)
    parser.add_argument("--horizon", type=positive, default=Run.horizon, metavar="H", help="default: %(default)s")
    parser.add_argument("--features", type=positive, default=Run.n_features, metavar="M", help="default: %(default)s")


STUDY = Study(
    name="error-growth",
    summary="mislabelled trajectories against h: CRAFT, recursive DRAFT",
    module="studies.error_growth.run",
    runs=lambda args: sweep(args.seeds, args.size, args.horizon, args.features),
    seeds=20,
    options=options,
    examples=("--seeds 5", "--seeds 20 --size 5000 --workers 2 --out results/error-growth"),
)
