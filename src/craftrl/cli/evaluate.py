"""`craftrl evaluate`: a learned model on a dataset, with the truth where there is one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

__all__ = ["add_arguments", "main"]

FEWEST = 10  # observations of a true state at a step for it to count by itself; fewer where there is little data

EXAMPLES = """\
examples:
  craftrl evaluate model.safetensors data.h5 --truth data.truth.npz
  craftrl evaluate model.safetensors new.h5

With --truth: the share of states that are right at each step under the best relabelling; the same in each true state by
itself, as a mean over states and in the worst one; and what naming one state at every step would score. Without: how
the trajectories are spread over the states that the encoders name."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="as craftrl fit writes it")
    parser.add_argument("data", type=Path, metavar="DATA", help="as craftrl collect writes it")
    parser.add_argument(
        "--truth",
        type=Path,
        metavar="FILE",
        help="a dataset with the true states of the same data, as craftrl collect writes it",
    )
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    from craftrl import TrajectoryDataset, load

    tau = TrajectoryDataset.open(args.data)
    states = load(args.model).transform(tau)
    if args.truth is None:
        print(_spread(states))
        return
    from craftrl.data import read_true_states

    print(_accuracy(states, read_true_states(args.truth)))


def _accuracy(states: Any, true: Any) -> str:
    """Overall, of single states, and what naming one state at every step would score."""
    import numpy as np

    from craftrl.states.accuracy import accuracy_by_step, state_accuracies_by_step, state_summary

    accuracy, fewest = accuracy_by_step(states, true), min(FEWEST, len(true) // 10)
    of_states = state_accuracies_by_step(states, true, fewest)
    chance = accuracy_by_step(np.zeros_like(true), true)
    lines = ["   h  accuracy  by state     worst    chance"]
    for h, (overall, single, one) in enumerate(zip(accuracy, of_states, chance), start=1):
        mean, worst = (single.mean(), single.min()) if len(single) else (np.nan, np.nan)
        lines.append(f"{h:4d}  {overall:8.2%}  {mean:8.2%}  {worst:8.2%}  {one:8.2%}")
    H, found = len(accuracy), state_summary(of_states)
    lines.append(f"mean over h = 1..{H}: {accuracy.mean():.2%}, over h = 2..{H}: {accuracy[1:].mean():.2%}")
    lines.append(f"single states, h = 2..{H}: mean {found['state_mean']:.2%}, worst {found['state_worst']:.2%}")
    lines.append(f"chance, one state named at every step: mean over h = 2..{H}: {chance[1:].mean():.2%}")
    return "\n".join(lines)


def _spread(states: Any) -> str:
    """For each step, the share of the trajectories in each state."""
    from craftrl.states.visits import count_visits

    lines = ["   h  states  share of trajectories in each"]
    for h, s_h in enumerate(states.T, start=1):
        visits = count_visits(s_h)
        text = " ".join(f"{share:.1%}" for share in visits / max(visits.sum(), 1))
        lines.append(f"{h:4d}  {int((visits > 0).sum()):6d}  {text}")
    return "\n".join(lines)
