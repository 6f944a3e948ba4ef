"""`craftrl plan`: from a model and a few labelled transitions to a plan, executed and drawn."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from craftrl.arguments import check_source, check_whole
from craftrl.cli.options import Count, Data, Environment, Force, Model, Positive, opt, refuse
from craftrl.errors import AssumptionWarning, require

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from craftrl.planning import Episode, Grounding, LatentActions, Plan, StateGraph
    from craftrl.planning.plan import By

NAMED, LONGEST = 6, 24  # moves that a line names, and moves of an episode that are written out
STOPPED = {
    "time is up": "there was no step left",
    "episode ended": "the environment ended the episode",
    "not reachable": "no way was left",
}


def plan(
    model: Model,
    data: Data,
    /,
    *,
    goal: Annotated[
        tuple[str, ...], opt("a state, H:STATE at step H, image or NPY; or several", consume_multiple=True)
    ],
    labels: Annotated[str | None, opt("DATA again, if it has actions, or NPZ: x (n, 2, ...), actions (n,)")] = None,
    label_count: Annotated[Positive | None, opt("take only the first N of them")] = None,
    explore: Annotated[Positive | None, opt("try actions for at most so many steps first")] = None,
    grounding: Annotated[str | None, opt("a file: read what is known if it is there; written at the end")] = None,
    latent: Annotated[
        Literal["auto", "yes", "no"],
        opt("whether labels count in all states, by latent actions; auto: if these are sure"),
    ] = "auto",
    action_names: Annotated[str, opt("such as up,down,left,right")] = "",
    by: Annotated[Literal["shortest", "reliable"], opt("fewest moves, or most likely to succeed")] = "shortest",
    stochastic: Annotated[bool, opt("an action may lead from one state to several")] = False,
    episodes: Annotated[Positive, opt("for each goal")] = 1,
    max_steps: Annotated[Count | None, opt("actions per episode, at most")] = None,
    seed: Annotated[Count, opt("of the environment")] = 0,
    dry_run: Annotated[bool, opt("plan only, without an environment")] = False,
    out: Annotated[str | None, opt("the episodes as NAME.gif, NAME.mp4 or NAME.mkv")] = None,
    force: Force = False,
    where: Environment = Environment(),
) -> None:
    """Reach a goal: which action makes which move, a plan, and a video of it.

    Which action makes which move has to be known: by transitions whose action is known (--labels), by trying
    (--explore), or by a file of an earlier run (--grounding).

    examples:
      craftrl plan model.safetensors frames --world pixels --size 3 --walkers 2 --goal 8 --explore 200 --out plan.gif
      craftrl plan model.safetensors frames --env my_module:make_env --goal goal.png --labels frames
      craftrl plan model.safetensors frames --dry-run --goal 8 --labels labels.npz --label-count 40
    """
    import numpy as np

    from craftrl import TrajectoryDataset, load
    from craftrl.deploy.video import check_images, check_video
    from craftrl.planning import Grounding, Planner, StateGraph
    from craftrl.planning import explore as try_actions
    from craftrl.planning.acting import n_actions
    from craftrl.planning.files import load_grounding, model_fingerprint, read_labels, save_grounding
    from craftrl.planning.graph import check_same_observations

    names = tuple(name.strip() for name in action_names.split(",")) if action_names else ()
    kept = grounding if grounding is not None and Path(grounding).exists() else None
    refuse(
        (not all(names), f"--action-names must be names with commas between them; {action_names!r} was given."),
        (out and dry_run, "--out draws what happens; --dry-run lets nothing happen; leave out one of them."),
        (explore and dry_run, "--explore needs the environment; --dry-run has none; leave out one of them."),
        (label_count and not labels, "--label-count counts labels; none were given; give --labels FILE."),
        (
            not (labels or explore or kept),
            "Which action makes which move must be known, since videos do not say it; nothing was given that does; "
            "give transitions with their actions (--labels FILE), let it try (--explore STEPS), or both.",
        ),
    )
    check_whole("--episodes", episodes, 1, 1000)
    check_whole("--seed", seed, 0, 2**31 - 1001, "environments take no larger ones")
    if out is not None:
        check_video(out, force)
    environment = None if dry_run else where.environment()
    learned, tau = load(model), TrajectoryDataset.open(data)
    n = None
    if environment is not None:
        n, space = n_actions(environment), getattr(environment, "observation_space", None)
        shape, dtype = getattr(space, "shape", None), getattr(space, "dtype", None)
        check_same_observations("The environment", learned, shape, dtype)
    refuse((n and len(names) > n, f"--action-names must name the environment's {n} actions; {len(names)} were given."))
    if out is not None:
        check_images(learned.obs_shape_, "leave out --out")
    wanted = [_goal(text, learned.obs_shape_) for text in goal]
    graph = StateGraph.from_model(learned, tau)
    shared = None if latent == "no" else _latent(graph, n, stochastic, latent == "auto")
    if kept is not None:
        known = load_grounding(kept, graph, model_fingerprint(model), latent=shared, deterministic=not stochastic)
        other = f"A grounding must be of the environment's {n} actions; {kept} is of {known.n_actions}"
        refuse((n not in (None, known.n_actions), f"{other}; choose another name, and ground again."))
        again = f"; {labels} is not read again, remove {kept} to start anew" if labels else ""
        print(f"Read from {kept}: {known.n_labels} labels of earlier runs{again}.")
    else:
        given = None if labels is None else read_labels(labels, tau, label_count)
        most = n or max(1, len(names), 0 if given is None else given.n_actions)
        known = Grounding(graph, most, shared, not stochastic)
        lost = given is not None and not given.add_to(known, learned)
        none = f"Labels must hold transitions between states that the model names, with actions; {labels} has none"
        refuse((lost, f"{none}; record some, or let it try with --explore STEPS."))
    planner, lines = Planner(learned, known, by=by), _Lines(graph, names)
    goals = [planner.goal_nodes(one) for one in wanted]

    tried = 0
    if explore is not None:
        found = try_actions(environment, learned, known, steps=explore, seed=seed)
        tried, end = found.steps, "nothing is left to try" if found.finished else "the budget is used up"
        print(f"Explored: {tried} steps in {found.episodes} episodes; {end}.", flush=True)
    lines.say_what_is_known(known)
    if grounding is not None:
        save_grounding(grounding, known, model_fingerprint(model))
    if environment is None:
        begin = tau.at(1, slice(0, 1000))  # episodes start in the commonest first state of the videos
    else:
        begin = np.asarray(environment.reset(seed=seed)[0])[None]  # as the first of them will
    first = learned.encode(begin, 1)
    start = graph.node(int(np.bincount(first[first >= 0], minlength=1).argmax()), 1)
    ran: list[Episode] = []
    for one in goals:
        lines.say_plan(known, start, one, by, acting=environment is not None)
        for _ in range(0 if environment is None else episodes):
            ran.append(planner.run(environment, one, seed=seed + len(ran), max_steps=max_steps, keep=out is not None))
            print(f"Episode {len(ran)}: {lines.episode(ran[-1])}", flush=True)
    if environment is None:
        return
    reached, steps = sum(episode.reached for episode in ran), tried + sum(len(episode.actions) for episode in ran)
    cost = f"{_count(known.n_labels, 'label')}, {_count(steps, 'environment step')}"
    split = f" ({tried} of them to explore)" if tried else ""
    print(f"Goal reached in {reached} of {_count(len(ran), 'episode')}; used in all: {cost}{split}.")
    if grounding is not None:
        save_grounding(grounding, known, model_fingerprint(model))
    if out is not None:
        from craftrl.deploy import write_plan

        played = [one for one in goals for _ in range(episodes)]
        write_plan(out, ran, planner, tau, goals=played, action_names=names, overwrite=force)
        print(f"Written to {out}")


def _latent(graph: StateGraph, n: int | None, stochastic: bool, only_if_sure: bool) -> LatentActions | None:
    """Latent actions, where they are asked for, or where nothing that they rest on fails."""
    import numpy as np

    from craftrl.planning import find_latent_actions

    if stochastic and n is None:
        return None
    latent = find_latent_actions(graph, n=n if stochastic else None, deterministic=not stochastic)
    if only_if_sure and any(condition.holds is False for condition in latent.conditions):
        return None
    states = f"{int(np.bincount(latent.group).max())} of {len(latent.group)} states"
    print(f"Latent actions: {latent.n}, each of one meaning in {states}: a label in one of them counts in all.")
    return latent


def _goal(text: str, shape: tuple[int, ...]) -> str | NDArray[Any] | tuple[int, NDArray[Any]]:
    """A goal as `Planner.goal_nodes` takes it: "8", "4:8", or the observation in a file, with its step before it."""
    import numpy as np

    from craftrl.data.files import readable

    if re.fullmatch("([0-9]{1,9}:)?[0-9]{1,9}", text):
        return text
    step = re.match("([0-9]{1,9}):", text)
    path = check_source("The goal", text[step.end() :] if step else text)
    none = f"a file that shows what is to be reached; {text!r} is none of these; check the name."
    refuse((not path.is_file(), f"--goal must be a state such as 8, a state at a step such as 4:8, or {none}"))
    with readable(path, "a picture or an NPY file", "check the name"):
        if path.suffix.lower() == ".npy":
            x = np.load(path, allow_pickle=False)
        else:
            with require("PIL.Image", "video").open(path) as image:
                x = np.asarray(image.convert("L" if shape[-1:] == (1,) else "RGB"))
            x = x[..., None] if x.ndim == 2 else x
    return (int(step[1]), x) if step else x


@dataclass(frozen=True)
class _Lines:
    """Plans and episodes as lines of text; numbers stand for actions without a name."""

    graph: StateGraph
    names: Sequence[str]

    def say_what_is_known(self, known: Grounding) -> None:
        missing, n = known.missing(), len(self.graph.edges)
        grounded = f"{n - len(missing)} of {_count(n, 'move')} that the videos show"
        print(f"Grounded: {grounded}, by {_count(known.n_labels, 'label')}.")
        if missing:
            some = ", ".join(f"{self.state(s)} -> {self.state(t)}" for s, t in missing[:NAMED])
            more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
            print(f"Not grounded, since no label shows the action: {some}{more}.")

    def say_plan(self, known: Grounding, start: int, goals: frozenset[int], by: By, acting: bool) -> None:
        """The plan from where episodes start; where there is none, how near one comes, and an error unless acting."""
        from craftrl.planning import UnreachableGoal, plan_path

        try:
            plan = plan_path(known, start, goals, by=by)
            likely = f" ({_count(len(plan), 'move')}, probability {plan.probability:.2f})"
            print(
                f"Plan: {self.path(plan) + likely if plan.actions else 'nothing to do, this is the goal.'}", flush=True
            )
        except UnreachableGoal as error:
            if error.nearest is not None and error.nearest != start:
                near = self.path(plan_path(known, start, {error.nearest}, by=by))
                print(f"As near as labels lead: {near}", flush=True)
            if not acting or not error.missing:
                raise
            warnings.warn(str(error), AssumptionWarning, stacklevel=2)

    def state(self, node: int) -> str:
        """A state as short as it can be: 3, or 4:3 for state 3 at step 4."""
        h, state = self.graph.name(node) if node >= 0 else (None, "?")
        return str(state) if h is None else f"{h}:{state}"

    def path(self, way: Plan | Episode) -> str:
        """As in 0 -up-> 7 -left-> 2; an exclamation mark after a state that was a surprise."""
        surprises = getattr(way, "surprises", ())
        named = [self.names[a] if a < len(self.names) else str(a) for a in way.actions]
        moves = enumerate(zip(named, way.nodes[1:]), start=2)
        parts = [f"-{a}-> {self.state(node)}{'!' if h in surprises else ''}" for h, (a, node) in moves]
        if len(parts) > LONGEST:
            parts = [*parts[: LONGEST // 2], f"... {len(parts) - LONGEST} more ...", *parts[-(LONGEST // 2) :]]
        return " ".join([f"state {self.state(way.nodes[0])}", *parts])

    def episode(self, episode: Episode) -> str:
        """What happened, and how it ended."""
        read, likely = episode.nodes[-1], episode.believed[-1]
        if episode.reached:
            end = f"goal reached in {_count(len(episode.actions), 'step')}"
        elif episode.stopped != "not confirmed":
            end = f"goal not reached: {STOPPED[episode.stopped]}"
        elif read == likely:
            end = "goal not confirmed: too few frames show it"
        else:
            end = f"goal not confirmed: state {self.state(read)} was read where {self.state(likely)} is likelier"
        surprises = f", {_count(len(episode.surprises), 'surprise')} (!)" if episode.surprises else ""
        return f"{self.path(episode)}; {end}{surprises}."


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
