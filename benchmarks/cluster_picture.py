"""The picture of `cluster_scaling`: what was measured beside the model, and the model for many nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from craftrl.distributed.cost import estimate
from craftrl.distributed.job import Cluster, Job
from craftrl.distributed.rates import Rates
from craftrl.plots.style import BLUE, GREEN, GREY, INK, RED, picture

PHASES = {"shared": ("read and count", BLUE), "reduction": ("ask and reduce", RED), "seconds": ("all", INK)}


def draw(results: dict[str, Any], path: Path) -> None:
    rates, job = Rates(**results["rates"]), Job(**results["large job"])
    with picture(path, 8.6, 3.4) as figure:
        left, right = figure.subplots(1, 2, width_ratios=[1, 1.5])
        _measured(left, results["rows"])
        _modelled(right, job, rates, results["reduction dominates from nodes"])


def _measured(axes: Any, rows: list[dict[str, Any]]) -> None:
    names = [f"{row['kind']}\n{row['trajectories'] // 1000}k on {row['workers']}" for row in rows]
    at = np.arange(len(rows))
    axes.bar(at - 0.2, [row["at work"] for row in rows], 0.4, color=BLUE, label="a worker's processor time")
    axes.bar(at + 0.2, [row["model at work"] for row in rows], 0.4, color=GREY, label="model of it")
    axes.plot(at, [row["seconds"] for row in rows], "_", ms=18, color=GREEN, label="by the clock, busy machine")
    axes.plot(at, [row["model"] for row in rows], "_", ms=18, color=INK, label="model, idle machine")
    axes.set_xticks(at, names, fontsize=7)
    axes.set_ylabel("seconds")
    axes.set_ylim(0, 1.45 * max(row["seconds"] for row in rows))
    axes.legend(fontsize=7)
    axes.set_title("One fit on one and two workers", loc="left")


def _modelled(axes: Any, job: Job, rates: Rates, where: int | None) -> None:
    nodes = np.unique(np.geomspace(2, 4000, 80).astype(int))
    found = [estimate(job, Cluster(int(n)), rates) for n in nodes]
    for name, (label, colour) in PHASES.items():
        axes.loglog(nodes, [getattr(one, name) for one in found], color=colour, label=label)
    if where is not None:
        axes.axvline(where, color=GREY, ls="--", lw=0.8, label=f"reduction dominates from {where}")
    axes.set_xlabel("nodes of 16 cores")
    axes.set_ylabel("seconds")
    axes.legend(fontsize=7)
    axes.set_title(f"Model: {job.trajectories:.0e} trajectories, H = {job.horizon}, M = {job.features}", loc="left")
