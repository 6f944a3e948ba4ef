"""The arguments that tell which action makes which move: labels, and files of earlier runs."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from craftrl.arguments import is_whole, shown
from craftrl.data.dataset import TrajectoryDataset
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.planning.grounding import Grounding
from craftrl.planning.grounding_files import load_grounding, model_fingerprint, save_grounding
from craftrl.planning.label_files import read_labels
from craftrl.planning.moves import Moves
from craftrl.states.latent_actions import LatentActions, find_latent_actions

__all__ = ["grounding_of", "keep_grounding"]


def keep_grounding(args: argparse.Namespace, grounding: Grounding) -> None:
    """What was tried is not to be tried again."""
    if args.grounding is not None:
        save_grounding(args.grounding, grounding, model_fingerprint(args.model))


def grounding_of(args: argparse.Namespace, env: Any, model: Any, tau: TrajectoryDataset, moves: Moves) -> Grounding:
    """What an earlier run has kept, or else what labels tell: an earlier run has kept its labels as well."""
    n_actions = None if env is None else _n_actions(env)
    if n_actions is not None and len(args.action_names) > n_actions:
        raise InvalidParameterError(
            f"--action-names must name the environment's {n_actions} actions, or the first of them; "
            f"{len(args.action_names)} names were given."
        )
    if args.grounding is not None and args.grounding.exists():
        return _of_earlier_run(args, n_actions, moves)
    labels = None if args.labels is None else read_labels(args.labels, tau, args.label_count)
    least = max(0 if labels is None else labels.n_actions, len(args.action_names), 1)
    n = least if n_actions is None else n_actions
    grounding = Grounding(moves, n, _latent(args, moves, n), deterministic=not args.stochastic)
    if labels is not None and not labels.add_to(grounding, model):
        raise InvalidDataError(
            f"Labels must hold transitions between states that the model names, each with an action; {args.labels} "
            "has none; record some, or let it try with --explore STEPS."
        )
    return grounding


def _of_earlier_run(args: argparse.Namespace, n_actions: int | None, moves: Moves) -> Grounding:
    fingerprint = model_fingerprint(args.model)
    grounding = load_grounding(
        args.grounding, moves, fingerprint, latent=_latent(args, moves, n_actions), deterministic=not args.stochastic
    )
    if n_actions not in (None, grounding.n_actions):
        raise InvalidDataError(
            f"A grounding must be of the environment's {n_actions} actions; {args.grounding} is of "
            f"{grounding.n_actions}; choose another name, and ground again."
        )
    again = "" if args.labels is None else f"; {args.labels} is not read again, remove {args.grounding} to start anew"
    print(f"Read from {args.grounding}: {grounding.n_labels} labels of earlier runs{again}.")
    return grounding


def _latent(args: argparse.Namespace, moves: Moves, n_actions: int | None) -> LatentActions | None:
    """Latent actions, where they are asked for, or where nothing that they rest on fails."""
    if args.latent == "no" or (args.stochastic and n_actions is None):
        return None
    if args.stochastic:
        latent = find_latent_actions(moves.counts, n=n_actions or "auto", deterministic=False, seed=args.seed)
    else:
        latent = find_latent_actions(moves.counts, deterministic=True, seed=args.seed)
    if args.latent == "auto" and any(condition.holds is False for condition in latent.conditions):
        return None
    largest = int(np.bincount(latent.consistent).max())
    print(
        f"Latent actions: {latent.n}, each of one meaning in {largest} of {len(latent.consistent)} states: a label in "
        "one of them counts in all."
    )
    return latent


def _n_actions(env: Any) -> int:
    n: Any = getattr(getattr(env, "action_space", None), "n", None)
    if not is_whole(n) or getattr(env.action_space, "start", 0) != 0:
        raise InvalidParameterError(
            "The environment must have discrete actions, numbered from 0; its are "
            f"{shown(getattr(env, 'action_space', None))}; wrap it with a list of actions."
        )
    return int(n)
