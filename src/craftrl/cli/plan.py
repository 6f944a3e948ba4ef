"""`craftrl plan`: from a model and a few labelled transitions to a plan, executed and drawn."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from craftrl.arguments import check_target, check_whole, natural, positive
from craftrl.cli.environments import add_environment_arguments, environment_of
from craftrl.data.files import check_new
from craftrl.errors import InvalidDataError, InvalidParameterError

if TYPE_CHECKING:
    from craftrl.cli.plan_words import PlanWords
    from craftrl.data.dataset import TrajectoryDataset
    from craftrl.planning import Episode, Grounding, Moves, Planner

__all__ = ["add_arguments", "main"]

MOST_EPISODES, MOST_SEED = 1000, 2**31 - 1001
FIRST = 1000  # trajectories whose first state is looked at
EXAMPLES = """\
examples:
  craftrl plan model.safetensors frames.h5 --world pixels --size 3 --walkers 2 --goal 8 --explore 200 --out plan.gif
  craftrl plan model.safetensors frames.h5 --env my_module:make_env --goal goal.png --labels frames.actions.npz
  craftrl plan model.safetensors frames.h5 --dry-run --goal 8 --labels labels.npz --label-count 40

Which action makes which move has to be told: by transitions whose action is known (--labels: what craftrl import or
craftrl collect keeps beside DATA, or an NPZ file with x (n, 2, ...) and actions (n,)), by trying (--explore), or by a
file of an earlier run (--grounding)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="as craftrl fit writes it")
    parser.add_argument("data", type=Path, metavar="DATA", help="the store that it was fitted to: it shows the moves")
    parser.add_argument(
        "--goal",
        required=True,
        nargs="+",
        metavar="GOAL",
        help="a state, H:STATE for a state at step H, or a file: image or NPY; several: one after the other",
    )
    parser.add_argument("--labels", type=Path, metavar="FILE", help="transitions whose action is known, NPZ")
    parser.add_argument("--label-count", type=positive, metavar="N", help="take only the first N of them")
    parser.add_argument("--explore", type=positive, metavar="STEPS", help="try actions for at most so many steps first")
    parser.add_argument(
        "--grounding", type=Path, metavar="FILE", help="read what is known if it is there; written at the end"
    )
    parser.add_argument(
        "--latent",
        choices=["auto", "yes", "no"],
        default="auto",
        help="whether a label counts in other states too, for moves that one latent action makes (auto: if the videos "
        "tell which those are)",
    )
    parser.add_argument("--action-names", type=_names, default=(), metavar="A,B,...", help="such as up,down,left,right")
    parser.add_argument(
        "--by",
        choices=["shortest", "reliable"],
        default="shortest",
        help="fewest moves, or most likely to succeed (default: %(default)s)",
    )
    parser.add_argument("--stochastic", action="store_true", help="an action may lead from one state to several")
    parser.add_argument(
        "--episodes", type=positive, default=1, metavar="N", help="for each goal (default: %(default)s)"
    )
    parser.add_argument("--max-steps", type=natural, metavar="N", help="actions per episode, at most")
    parser.add_argument(
        "--seed", type=natural, default=0, metavar="N", help="of the environment (default: %(default)s)"
    )
    parser.add_argument("--dry-run", action="store_true", help="plan only, without an environment")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the episodes as NAME.gif, NAME.mp4 or NAME.mkv")
    parser.add_argument("--force", action="store_true", help="replace a file that is there already")
    add_environment_arguments(parser)
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    from craftrl import TrajectoryDataset, load
    from craftrl.cli.goals import read_goal
    from craftrl.cli.plan_grounding import grounding_of, keep_grounding
    from craftrl.cli.plan_words import PlanWords, saying_warnings
    from craftrl.planning import Moves, Planner

    _check(args)
    env = None if args.dry_run else environment_of(args)
    model, tau = load(args.model), TrajectoryDataset.open(args.data)
    _check_observations(args, env, model)
    goals = [read_goal(goal, model.obs_shape_) for goal in args.goal]
    moves = Moves.from_model(model, tau)
    grounding = grounding_of(args, env, model, tau, moves)
    planner, words = Planner(model, grounding, by=args.by), PlanWords(grounding, args.action_names)
    goals = [planner.goal_nodes(goal) for goal in goals]
    with saying_warnings():
        explored = 0 if args.explore is None else _explore(args, env, model, grounding)
        print(words.grounded())
        keep_grounding(args, grounding)
        episodes: list[Episode] = []
        for goal in goals:
            _print_plan(words, _start(model, tau, moves), goal, args)
            episodes += [] if env is None else _run(args, planner, env, goal, words, len(episodes))
        if env is not None:
            print(words.outcome(episodes, explored))
            keep_grounding(args, grounding)
            _draw(args, model, tau, grounding, episodes, [goal for goal in goals for _ in range(args.episodes)])


def _check(args: argparse.Namespace) -> None:
    """What can be said before any work is done."""
    check_whole("--episodes", args.episodes, 1, MOST_EPISODES)
    check_whole("--seed", args.seed, 0, MOST_SEED, "environments take no larger ones")
    if args.out is not None:
        from craftrl.deploy.canvas import check_video

        if args.dry_run:
            raise InvalidParameterError(
                "--out draws what happens; --dry-run lets nothing happen; leave out one of them."
            )
        check_video(args.out)
        check_new(args.out, "video", args.force)
    known = args.grounding is not None and check_target("The grounding", args.grounding).exists()
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

    states = model.encode(tau.at(1, slice(0, FIRST)), 1)
    return moves.nodes.number(int(np.bincount(states[states >= 0]).argmax()), 1)


def _print_plan(words: PlanWords, start: int, goal: frozenset[int], args: argparse.Namespace) -> None:
    """The plan; where there is none, one that leads as near as it gets."""
    from craftrl.cli.plan_words import in_commands
    from craftrl.planning import UnreachableGoal, plan_path

    try:
        print(words.plan(plan_path(words.grounding, start, goal, by=args.by)), flush=True)
    except UnreachableGoal as error:
        if error.nearest is not None and error.nearest != start:
            near = plan_path(words.grounding, start, {error.nearest}, by=args.by)
            print(f"As near as labels lead: {words.path(near.nodes, near.actions)}", flush=True)
        if args.dry_run or not error.missing:
            raise InvalidDataError(in_commands(str(error))) from error
        print(f"Warning: {in_commands(str(error))}", flush=True)


def _run(
    args: argparse.Namespace, planner: Planner, env: Any, goal: frozenset[int], words: PlanWords, before: int
) -> list[Episode]:
    """The episodes towards one goal; `before` were run already."""
    episodes = []
    for i in range(before, before + args.episodes):
        episode = planner.run(env, goal, seed=args.seed + i, max_steps=args.max_steps, keep=args.out is not None)
        print(words.episode(i + 1, episode), flush=True)
        episodes.append(episode)
    return episodes


def _draw(
    args: argparse.Namespace,
    model: Any,
    tau: TrajectoryDataset,
    grounding: Grounding,
    episodes: list[Episode],
    goals: list[frozenset[int]],
) -> None:
    if args.out is None:
        return
    from craftrl.deploy.plan_video import portraits, write_plan

    moves, names = grounding.moves, args.action_names
    looks = portraits(model, tau, moves)
    look = {"goals": goals, "portraits": looks, "grounded": grounding.grounded, "action_names": names}
    write_plan(args.out, episodes, moves, **look, overwrite=args.force)
    print(f"Written to {args.out}")


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise argparse.ArgumentTypeError(f"must be names with commas between them; {text!r} was given")
    return names
