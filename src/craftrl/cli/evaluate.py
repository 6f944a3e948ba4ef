"""`craftrl evaluate`: a learned model on a dataset, with the truth where there is one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

__all__ = ["add_arguments", "main"]

EXAMPLES = """\
examples:
  craftrl evaluate model data.h5 --truth data.truth.npz
  craftrl evaluate model new.h5

With --truth: the share of states that are right at each step under the best relabelling. Without: how the trajectories
are spread over the states that the encoders name."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="as craftrl fit writes it")
    parser.add_argument("data", type=Path, metavar="DATA", help="as craftrl collect writes it")
    parser.add_argument("--truth", type=Path, metavar="FILE", help="NAME.truth.npz of the same data")
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    from craftrl import TrajectoryDataset, load

    tau = TrajectoryDataset.open(args.data)
    states = load(args.model).transform(tau)
    if args.truth is None:
        print(_spread(states))
        return
    from craftrl.data.truth import read_true_states
    from craftrl.states.accuracy import accuracy_by_step

    print(_accuracy(accuracy_by_step(states, read_true_states(args.truth, tau))))


def _accuracy(accuracy: Any) -> str:
    lines = [f"{h:4d}  {value:8.2%}" for h, value in enumerate(accuracy, start=1)]
    H = len(accuracy)
    mean = f"mean over h = 1..{H}: {accuracy.mean():.2%}, over h = 2..{H}: {accuracy[1:].mean():.2%}"
    return "\n".join(["   h  accuracy", *lines, mean])


def _spread(states: Any) -> str:
    """For each step, the share of the trajectories in each state."""
    from craftrl.states.visits import count_visits

    lines = ["   h  states  share of trajectories in each"]
    for h, s_h in enumerate(states.T, start=1):
        visits = count_visits(s_h)
        text = " ".join(f"{share:.1%}" for share in visits / max(visits.sum(), 1))
        lines.append(f"{h:4d}  {int((visits > 0).sum()):6d}  {text}")
    return "\n".join(lines)
