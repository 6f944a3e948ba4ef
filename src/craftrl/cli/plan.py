"""`craftrl plan`: from a model and a few labelled transitions to a plan, executed and drawn."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from craftrl.cli.environments import add_environment_arguments, environment_of
from craftrl.data.files import check_new
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.reproduce.arguments import natural, positive

if TYPE_CHECKING:
    from craftrl.cli.plan_words import PlanWords
    from craftrl.data.dataset import TrajectoryDataset
    from craftrl.planning import Episode, Grounding, Moves, Planner

__all__ = ["add_arguments", "main"]

FIRST = 1000  # trajectories whose first state is looked at
EXAMPLES = """\
examples:
  craftrl plan model frames.h5 --world pixels --size 3 --walkers 2 --goal 8 --explore 200 --out plan.gif
  craftrl plan model frames.h5 --env my_module:make_env --goal goal.png --labels frames.actions.npz
  craftrl plan model frames.h5 --dry-run --goal 8 --labels labels.npz --label-count 40

Which action makes which move has to be told: by transitions whose action is known (--labels: what craftrl import or
craftrl collect keeps beside DATA, or an NPZ file with x (n, 2, ...) and actions (n,)), by trying (--explore), or by a
file of an earlier run (--grounding)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="as craftrl fit writes it")
    parser.add_argument("data", type=Path, metavar="DATA", help="the store that it was fitted to: it shows the moves")
    parser.add_argument(
        "--goal", required=True, metavar="GOAL", help="a state, H:STATE for a state at step H, or a file: image or NPY"
    )
    parser.add_argument("--labels", type=Path, metavar="FILE", help="transitions whose action is known, NPZ")
    parser.add_argument("--label-count", type=positive, metavar="N", help="take only the first N of them")
    parser.add_argument("--explore", type=positive, metavar="STEPS", help="try actions for at most so many steps first")
    parser.add_argument("--grounding", type=Path, metavar="FILE", help="read what is known if it is there; written at the end")
    parser.add_argument("--action-names", type=_names, default=(), metavar="A,B,...", help="such as up,down,left,right")
    parser.add_argument(
        "--by",
        choices=["shortest", "reliable"],
        default="shortest",
        help="fewest moves, or most likely to succeed (default: %(default)s)",
    )
    parser.add_argument("--stochastic", action="store_true", help="an action may lead from one state to several")
    parser.add_argument("--episodes", type=positive, default=1, metavar="N", help="(default: %(default)s)")
    parser.add_argument("--max-steps", type=natural, metavar="N", help="actions per episode, at most")
    parser.add_argument("--seed", type=natural, default=0, metavar="N", help="of the environment (default: %(default)s)")
    parser.add_argument("--dry-run", action="store_true", help="plan only, without an environment")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the episodes as NAME.gif, NAME.mp4 or NAME.mkv")
    parser.add_argument("--force", action="store_true", help="replace a file that is there already")
    add_environment_arguments(parser)
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    from craftrl import TrajectoryDataset, load
    from craftrl.cli.goals import read_goal
    from craftrl.cli.plan_words import PlanWords, saying_warnings
    from craftrl.planning import Moves, Planner

    _check(args)
    env = None if args.dry_run else environment_of(args)
    model, tau = load(args.model), TrajectoryDataset.open(args.data)
    _check_observations(args, env, model)
    goal = read_goal(args.goal, model.obs_shape_)
    moves = Moves.from_model(model, tau)
    grounding = _grounding(args, env, model, tau, moves)
    planner, words = Planner(model, grounding, by=args.by), PlanWords(grounding, args.action_names)
    goals = planner.goal_nodes(goal)
    with saying_warnings():
        explored = 0 if args.explore is None else _explore(args, env, model, grounding)
        print(words.grounded())
        _keep(args, grounding)
        _print_plan(words, _start(model, tau, moves), goals, args)
        if env is not None:
            episodes = _run(args, planner, env, goals, words)
            print(words.outcome(episodes, explored))
            _keep(args, grounding)
            _draw(args, model, tau, grounding, episodes, goals)


def _check(args: argparse.Namespace) -> None:
    """What can be said before any work is done."""
    if args.out is not None:
        from craftrl.deploy.canvas import check_video

        if args.dry_run:
            raise InvalidParameterError("--out draws what happens; --dry-run lets nothing happen; leave out one of them.")
        check_video(args.out)
        check_new(args.out, "video", args.force)
    known = args.grounding is not None and args.grounding.exists()
    if args.labels is None and args.explore is None and not known:
        raise InvalidParameterError(
            "Which action makes which move must be told, since videos do not say it; nothing was given that does; give "
            "labelled transitions (--labels FILE), let it try (--explore STEPS), or both."
        )
    if args.label_count is not None and args.labels is None:
        raise InvalidParameterError("--label-count counts labels; none were given; give --labels FILE.")
    if args.dry_run and args.explore is not None:
        raise InvalidParameterError("--explore needs the environment; --dry-run has none; leave out one of them.")


def _check_observations(args: argparse.Namespace, env: Any, model: Any) -> None:
    """The environment must show what the model knows, and a video must have something to show."""
    shape = getattr(getattr(env, "observation_space", None), "shape", None)
    if env is not None and shape != model.obs_shape_:
        raise InvalidDataError(
            f"The environment must show what the model was fitted to, observations of shape {model.obs_shape_}; its "
            f"have shape {shape}; make or wrap it as the data was recorded."
        )
    if args.out is not None:
        from craftrl.deploy.canvas import check_images

        check_images(model.obs_shape_, "leave out --out")


def _grounding(args: argparse.Namespace, env: Any, model: Any, tau: TrajectoryDataset, moves: Moves) -> Grounding:
    """What labels and earlier runs tell."""
    from craftrl.planning import Grounding
    from craftrl.planning.grounding_files import load_grounding, model_fingerprint
    from craftrl.planning.label_files import read_labels

    labels = None if args.labels is None else read_labels(args.labels, tau, args.label_count)
    n_actions = None if env is None else _n_actions(env)
    if args.grounding is not None and args.grounding.exists():
        fingerprint = model_fingerprint(args.model)
        grounding = load_grounding(args.grounding, moves, fingerprint, deterministic=not args.stochastic)
        print(f"Read from {args.grounding}: {grounding.n_labels} labels.")
        if n_actions not in (None, grounding.n_actions):
            raise InvalidDataError(
                f"A grounding must be of the environment's {n_actions} actions; {args.grounding} is of "
                f"{grounding.n_actions}; choose another name, and ground again."
            )
    else:
        least = max(0 if labels is None else labels.n_actions, len(args.action_names), 1)
        grounding = Grounding(moves, least if n_actions is None else n_actions, deterministic=not args.stochastic)
    if labels is not None:
        used = labels.add_to(grounding, model)
        if not used:
            raise InvalidDataError(
                f"Labels must hold transitions between states that the model names, each with an action; {args.labels} "
                "has none; record some, or let it try with --explore STEPS."
            )
    return grounding


def _n_actions(env: Any) -> int:
    from craftrl.arguments import is_whole, shown

    n = getattr(getattr(env, "action_space", None), "n", None)
    if not is_whole(n) or getattr(env.action_space, "start", 0) != 0:
        raise InvalidParameterError(
            "The environment must have discrete actions, numbered from 0; its are "
            f"{shown(getattr(env, 'action_space', None))}; wrap it with a list of actions."
        )
    return int(n)


def _explore(args: argparse.Namespace, env: Any, model: Any, grounding: Grounding) -> int:
    """Try actions; returned is how many steps that took."""
    from craftrl.planning import explore

    found = explore(env, model, grounding, steps=args.explore, seed=args.seed)
    end = "nothing is left to try" if found.finished else "the budget is used up"
    print(f"Explored: {found.steps} steps in {found.episodes} episodes; {end}.", flush=True)
    return found.steps


def _start(model: Any, tau: TrajectoryDataset, moves: Moves) -> int:
    """The state that episodes start in: the most frequent first one of the videos."""
    import numpy as np

    states = model.encode(tau.steps.read(0, 0, min(tau.n, FIRST)), 1)
    return moves.nodes.number(int(np.bincount(states[states >= 0]).argmax()), 1)


def _print_plan(words: PlanWords, start: int, goals: frozenset[int], args: argparse.Namespace) -> None:
    """The plan; where there is none, one that leads as near as it gets."""
    from craftrl.planning import UnreachableGoal, plan_path

    try:
        print(words.plan(plan_path(words.grounding, start, goals, by=args.by)), flush=True)
    except UnreachableGoal as error:
        if error.nearest is not None:
            near = plan_path(words.grounding, start, {error.nearest}, by=args.by)
            print(f"As near as labels lead: {words.path(near.nodes, near.actions)}", flush=True)
        if args.dry_run or not error.missing:
            raise
        print(f"Warning: {error}", flush=True)


def _run(
    args: argparse.Namespace, planner: Planner, env: Any, goals: frozenset[int], words: PlanWords
) -> list[Episode]:
    episodes = []
    for i in range(args.episodes):
        how = {"seed": args.seed + i, "max_steps": args.max_steps, "keep": args.out is not None}
        episodes.append(planner.run(env, goals, **how))
        print(words.episode(i + 1, episodes[-1]), flush=True)
    return episodes


def _keep(args: argparse.Namespace, grounding: Grounding) -> None:
    """What was tried is not to be tried again."""
    if args.grounding is not None:
        from craftrl.planning.grounding_files import model_fingerprint, save_grounding

        save_grounding(args.grounding, grounding, model_fingerprint(args.model))


def _draw(
    args: argparse.Namespace,
    model: Any,
    tau: TrajectoryDataset,
    grounding: Grounding,
    episodes: list[Episode],
    goals: frozenset[int],
) -> None:
    if args.out is None:
        return
    from craftrl.deploy.plan_video import portraits, write_plan

    moves, names = grounding.moves, args.action_names
    looks = portraits(model, tau, moves)
    write_plan(args.out, episodes, moves, goals=goals, portraits=looks, grounded=grounding.grounded, action_names=names)
    print(f"Written to {args.out}")


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise argparse.ArgumentTypeError(f"must be names with commas between them; {text!r} was given")
    return names
