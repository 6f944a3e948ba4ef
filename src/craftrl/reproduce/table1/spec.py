"""Which runs make up Table 1, and what the paper reports.

Paper: Section 4, Table 1
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass

from craftrl.reproduce.arguments import positive
from craftrl.reproduce.study import Later, Study

__all__ = ["NAMES", "PAPER_SEEDS", "PAPER_SIZES", "PUBLISHED", "STUDY", "Published", "Run", "published", "sweep"]

PAPER_SIZES = (500, 1000, 5000)
PAPER_SEEDS = 20

NAMES = {"craft": "CRAFT", "single": "Single observation", "paired": "Paired observation"}


@dataclass(frozen=True)
class Run:
    """One fit: which technique, on how many trajectories per agent, with which seed, in which toy world."""

    technique: str
    size: int
    seed: int
    horizon: int = 30
    n_features: int = 128


@dataclass(frozen=True)
class Published:
    """A cell of the paper's table; "> 99.9%" is a bound from below."""

    accuracy: float
    is_bound: bool = False

    def __str__(self) -> str:
        return f"{'>' if self.is_bound else ''}{100 * self.accuracy:.1f}"


PUBLISHED = {
    ("craft", 500): Published(0.864),
    ("craft", 1000): Published(0.977),
    ("craft", 5000): Published(0.999, is_bound=True),
    ("single", 500): Published(0.678),
    ("single", 1000): Published(0.687),
    ("single", 5000): Published(0.697),
    ("paired", 500): Published(0.874),
    ("paired", 1000): Published(0.861),
    ("paired", 5000): Published(0.821),
}


def published(run: Run) -> Published | None:
    """The paper's number for a run's cell, where it has one."""
    in_paper = run.horizon == Run.horizon and run.n_features == Run.n_features
    return PUBLISHED.get((run.technique, run.size)) if in_paper else None


def sweep(sizes: Iterable[int], n_seeds: int, horizon: int, n_features: int) -> list[Run]:
    """All techniques at all sizes, seed by seed, so that an unfinished sweep has seen every cell."""
    return [
        Run(technique, size, seed, horizon, n_features)
        for seed in range(n_seeds)
        for size in dict.fromkeys(sizes)
        for technique in NAMES
    ]


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sizes", type=positive, nargs="+", default=list(PAPER_SIZES), metavar="N", help="trajectories per agent"
    )
    parser.add_argument("--horizon", type=positive, default=Run.horizon, metavar="H", help="default: %(default)s")
    parser.add_argument("--features", type=positive, default=Run.n_features, metavar="M", help="default: %(default)s")


STUDY = Study(
    name="table1",
    summary="the paper's Table 1 beside ours: CRAFT and its two shortcuts",
    seeds=PAPER_SEEDS,
    runs=lambda args: sweep(args.sizes, args.seeds, args.horizon, args.features),
    run_one=Later("craftrl.reproduce.table1.run", "run_one"),
    report=Later("craftrl.reproduce.table1.report", "report"),
    draw=Later("craftrl.reproduce.table1.picture", "draw"),
    writes=("table.json", "table1.png"),
    options=_options,
    examples=("--seeds 4 --workers 2", "--seeds 20 --sizes 500 1000 5000 --workers 2 --out results/table1"),
)
