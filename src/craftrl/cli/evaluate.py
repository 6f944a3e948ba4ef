"""`craftrl evaluate`: learned encoders on a dataset, with the truth where there is one."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from craftrl.cli.models import SavedModel
    from craftrl.data import TrajectoryDataset

__all__ = ["add_arguments", "main"]

EXAMPLES = """\
examples:
  craftrl evaluate model.json data.h5 --truth data.truth.npz
  craftrl evaluate model.json new.h5

With --truth: the share of states that are right at each step under the best relabelling. Without: how the trajectories
are spread over the states that the encoders name."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="as craftrl fit writes it")
    parser.add_argument("data", type=Path, metavar="DATA", help="as craftrl collect writes it")
    parser.add_argument("--truth", type=Path, metavar="FILE", help="NAME.truth.npz of the same data")
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    from craftrl import TrajectoryDataset
    from craftrl.cli.models import load_model
    from craftrl.core.encoders import encode_dataset

    model = load_model(args.model)
    tau = TrajectoryDataset.open(args.data)
    states = encode_dataset([partial(model.encode, h=h) for h in range(1, len(model.encoders_) + 1)], tau)
    print(_spread(model, states) if args.truth is None else _accuracy(states, tau, args.truth))


def _accuracy(states: Any, tau: TrajectoryDataset, truth: Path) -> str:
    from craftrl.data.truth import read_true_states
    from craftrl.states.accuracy import accuracy_by_step

    accuracy = accuracy_by_step(states, read_true_states(truth, tau))
    lines = [f"{h:4d}  {value:8.2%}" for h, value in enumerate(accuracy, start=1)]
    mean = f"mean over h = 1..{tau.H}: {accuracy.mean():.2%}, over h = 2..{tau.H}: {accuracy[1:].mean():.2%}"
    return "\n".join(["   h  accuracy", *lines, mean])


def _spread(model: SavedModel, states: Any) -> str:
    """For each step, the share of the trajectories in each state."""
    from craftrl.states.visits import count_visits

    lines = ["   h  states  share of trajectories in each"]
    for h, s_h in enumerate(states.T, start=1):
        visits = count_visits(s_h)
        text = " ".join(f"{share:.1%}" for share in visits / visits.sum())
        lines.append(f"{h:4d}  {model.n_states_[h]:6d}  {text}")
    return "\n".join(lines)
