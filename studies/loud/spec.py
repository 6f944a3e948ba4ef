"""Which runs count wrong models that say nothing, and right ones that are not trusted."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from studies.study import Study

SIZES = ("about 1000", "200", "about 3000", "4000:200", "10000:200")
CLASSES = ("coordinates", "functions")
FIRST = {"development": 300_000, "fresh": 900_000}  # the first number of a case
LOOKED_AT = 3  # of so many seeds one is of a development world


@dataclass(frozen=True)
class Run:
    """One random world, one fit, one diagnosis.

    worlds       "development": of those on which tests and levels were chosen; "fresh": never looked at before
    encoders     the class: "coordinates", or a list of "functions"
    bounds       "chosen" from the data, or "known": those of the unbroken world
    size         trajectories of the agents (`cases.draw_case`)
    n_resamples  refits for the diagnosis
    """

    worlds: str
    encoders: str
    bounds: str
    size: str
    seed: int
    n_resamples: int = 8


def runs(args: argparse.Namespace) -> list[Run]:
    """Every third model gets the true bounds, sizes take turns, and both classes see the same data."""
    return [
        Run(worlds, encoders, "known" if i % 3 == 2 else "chosen", SIZES[i % len(SIZES)], first + i)
        for worlds, first in FIRST.items()
        for i in range(args.seeds if worlds == "fresh" else -(-args.seeds // LOOKED_AT))
        for encoders in CLASSES
    ]


STUDY = Study("loud", "wrong models that say nothing, right ones that are not trusted", runs, 10, 150)
