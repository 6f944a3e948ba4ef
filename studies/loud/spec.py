"""Which runs count wrong models that say nothing, and right ones that are not trusted."""

from __future__ import annotations

from dataclasses import dataclass

from studies.study import Later, Study

__all__ = ["FULL_SEEDS", "SEEDS", "SIZES", "STUDY", "Run", "sweep"]

SEEDS, FULL_SEEDS = 20, 150
SIZES = (1000, 3000)  # geometric mean of the largest and the smallest agent's trajectories
FIRST = {"calibration": 10_000, "check": 30_000, "fresh": 60_000}  # the first number of a case


@dataclass(frozen=True)
class Run:
    """One random world, one fit, one diagnosis.

    worlds       "calibration"; "check", of other kinds as well, never looked at while the first thresholds were chosen;
                 "fresh", like those, never looked at while the present tests were written
    bounds       "chosen" from the data, or "known": those of the unbroken world
    n_resamples  refits for the diagnosis
    """

    worlds: str
    bounds: str
    n: int
    seed: int
    n_resamples: int = 8


def sweep(n_seeds: int) -> list[Run]:
    """Every third model gets the true bounds, and sizes take turns."""
    return [
        Run(worlds, "known" if i % 3 == 2 else "chosen", SIZES[i % 2], first + i)
        for i in range(n_seeds)
        for worlds, first in FIRST.items()
    ]


STUDY = Study(
    name="loud",
    summary="wrong models that say nothing, right ones that are not trusted",
    seeds=SEEDS,
    runs=lambda args: sweep(args.seeds),
    run_one=Later("studies.loud.run", "run_one"),
    report=Later("studies.loud.report", "report"),
    writes=("table.json",),
    full_seeds=FULL_SEEDS,
    examples=("--workers 2", "--full --workers 2 --out results/loud-full"),
)
