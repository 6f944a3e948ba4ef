"""Odd arguments: one parameter after the other of every public callable is given values that make no sense.

What must come is a result or one of our errors. `CALLS` has a working call of each; a public callable that is missing
there is found by a test. Classes that only store what they are given are used at once (`USES`).
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from decimal import Decimal  # noqa: F401, for ODD
from fractions import Fraction  # noqa: F401
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from campaign.bench import Bench, make_bits, unfitted
from campaign.cases import Case
from craftrl import CRAFT, CoordinateOracle, NeuralOracle, Training
from craftrl.core.encoders import ConstantEncoder, CoordinateEncoder
from craftrl.data import DatasetWriter
from craftrl.envs import collect
from craftrl.errors import CraftError
from craftrl.planning import save_grounding

__all__ = ["CALLS", "NOT_CALLED", "ODD", "PATHS", "PUBLIC", "cases", "make_odd_paths", "run_case", "tried"]

MODULES = ("", ".data", ".oracles", ".paper", ".diagnostics", ".envs", ".importing", ".deploy", ".report")
MODULES += (".planning", ".evaluation", ".testing")
PUBLIC: dict[str, Any] = {
    name: getattr(module, name) for module in (import_module(f"craftrl{m}") for m in MODULES) for name in module.__all__
}
# Records that the library makes and hands out, and base classes, which craftrl.testing checks.
NOT_CALLED = {"Choice", "EncoderFit", "LogOdds", "Assumptions", "AgentPairs", "Diagnosis", "Finding", "Collection"}
NOT_CALLED |= {"GroundTruth", "Inspection", "Episode", "Exploration", "LatentActions", "Plan"}
NOT_CALLED |= {"Oracle", "PreparedOracle", "PreparedLearned", "ExBMDP", "Policy", "TrajectoryDataset", "StateGraph"}
LONG = {("Training", "epochs", "None"), ("NeuralOracle", "networks", "None")}  # what trains as long as it helps
BOUNDS = {"alpha": 1, "eta": 0.2, "nu": 0.1}
SIZE = {"delta": 0.1, "H": 4, "class_size": 8, "N_s": 2, **BOUNDS, "nu_prime": 0.2}


def given(**values: Any) -> dict[str, Any]:
    return values


class OwnError(Exception):
    """Raised by a function of the caller's; it may pass through with its traceback, for that is where to look."""


def _raises(*given: Any, **named: Any) -> Any:
    raise OwnError


def _features(h: int) -> list[Any]:
    return [ConstantEncoder() if h == 1 else CoordinateEncoder(0, np.array([0, 1]))]


def _tree() -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_depth=3, random_state=0)


def _writer(b: Bench) -> Any:
    return DatasetWriter(b.new()).__enter__()


def _grounded(b: Bench) -> Path:
    save_grounding(path := b.new(".npz"), b.grounding, "name")
    return path


def _oracle(b: Bench, oracle: Any) -> Any:
    return CRAFT(oracle, **BOUNDS).fit(b.x, b.tau.agent)


def _network(b: Bench, oracle: Any) -> Any:
    if oracle.training is None:
        oracle.training = Training(epochs=1, progress=False)
    return CRAFT(oracle, **BOUNDS).fit(b.network[1])


def _sampled(b: Bench, world: Any) -> Any:
    return collect(world, [world.policies() if hasattr(world, "policies") else world.paper_policies()][0], 3, seed=0)


CALLS: dict[str, Callable[[Bench], dict[str, Any]]] = {
    "CRAFT": lambda b: given(oracle=CoordinateOracle(), **BOUNDS),
    "CRAFT.paper": lambda b: given(**BOUNDS),
    "CRAFT.fit": lambda b: given(self=unfitted("bits"), x=b.x, agent=b.tau.agent),
    "CRAFT.diagnose": lambda b: given(self=b.model, x=b.x, agent=b.tau.agent, n_resamples=1),
    "CRAFT.encode": lambda b: given(self=b.model, x=b.tau.at(2), h=2),
    "CRAFT.transform": lambda b: given(self=b.model, x=b.x),
    "CRAFT.log_odds": lambda b: given(self=b.model, x=b.x),
    "CRAFT.embed": lambda b: given(self=b.network[0], x=b.network[1].at(2)),
    "CRAFT.save": lambda b: given(self=b.model, path=b.new(".safetensors")),
    "load": lambda b: given(path=b.saved),
    "ClassifierOracle": lambda b: given(classifier=_tree(), repeats=1),
    "CoordinateOracle": lambda b: given(),
    "FiniteOracle": lambda b: given(encoders=[lambda x: x[:, 0]]),
    "NeuralOracle": lambda b: given(dim=8, networks=1, training=Training(epochs=1, progress=False)),
    "Training": lambda b: given(epochs=1, progress=False),
    "Partition": lambda b: given(),
    "TrajectoryDataset.from_arrays": lambda b: given(arrays=[b.x[:60], b.x[60:]]),
    "TrajectoryDataset.from_episodes": lambda b: given(agents=[list(b.x), list(b.x)]),
    "TrajectoryDataset.open": lambda b: given(path=b.stored),
    "TrajectoryDataset.save": lambda b: given(self=b.tau, path=b.new()),
    "TrajectoryDataset.at": lambda b: given(self=b.tau, h=2),
    "TrajectoryDataset.episode": lambda b: given(self=b.tau, i=3),
    "TrajectoryDataset.first_steps": lambda b: given(self=b.tau, H=2),
    "TrajectoryDataset.rows": lambda b: given(self=b.tau, index=np.arange(4)),
    "TrajectoryDataset.select": lambda b: given(self=b.tau, index=np.arange(40, 80)),
    "DatasetWriter": lambda b: given(path=b.new()),
    "DatasetWriter.append": lambda b: given(self=_writer(b), agent="a", x=b.x[0]),
    "read_actions": lambda b: given(path=b.stored),
    "read_true_states": lambda b: given(path=b.stored),
    **dict.fromkeys(
        ("DRAFT", "RecursiveDRAFT", "SingleObservation", "PairedObservation"),
        lambda b: given(oracle=CoordinateOracle()),
    ),
    "chance_accuracy": lambda b: given(world=b.world, policies=b.policies),
    "empirical_assumptions": lambda b: given(agent=b.tau.agent, states=b.states),
    "population_assumptions": lambda b: given(world=b.world, policies=b.policies),
    "guaranteed_epsilon": lambda b: given(n=10**6, **SIZE),
    "sample_size": lambda b: given(epsilon_0=0.1, **SIZE),
    "compare_agents": lambda b: given(tau=b.tau),
    "BitsExBMDP": lambda b: given(horizon=3, n_features=4),
    "PixelsExBMDP": lambda b: given(horizon=3, size=2, n_walkers=0),
    "GymWorld": lambda b: given(make=make_bits, state=lambda env: 0, n_states=2, actions=[0, 1], H=4),
    "MarkovPolicy": lambda b: given(tables=[np.full((2, 2), 0.5)[: h + 1] for h in range(3)]),
    "collect": lambda b: given(world=b.world, policies=b.policies, n=5),
    "record": lambda b: given(world=b.world, policies=b.policies, n=5, path=b.new(), seed=0),
    "contrasting_policies": lambda b: given(world=b.world),
    "import_data": lambda b: given(agents=b.recordings, out=b.new()),
    "read_episodes": lambda b: given(agents=b.recordings),
    "inspect": lambda b: given(path=b.stored),
    "StateModule": lambda b: given(model=b.network[0], h=2),
    "StateObservation": lambda b: given(env=make_bits(), model=b.model),
    "export_onnx": lambda b: given(model=b.network[0], path=b.new(".onnx"), h=2),
    "render": lambda b: given(model=b.network[0], tau=b.network[1], path=b.new(".gif"), trajectories=[0]),
    "write_plan": lambda b: given(path=b.new(".gif"), episodes=b.played[1], planner=b.played[0]),
    "write_states": lambda b: given(path=b.new(".csv"), states=b.states, agent=b.tau.agent),
    "draw_schematic": lambda b: given(trace=b.model.trace_, path=b.new(".png")),
    "write_report": lambda b: given(model=b.model, path=b.new(".html"), x=b.tau, n_resamples=0),
    "StateGraph.from_model": lambda b: given(model=b.model, tau=b.tau),
    "StateGraph.from_states": lambda b: given(states=b.states, agent=b.tau.agent),
    "StateGraph.node": lambda b: given(self=b.graph, state=0, h=2),
    "StateGraph.nodes": lambda b: given(self=b.graph, states=b.model.transform(b.tau)),
    "StateGraph.policy": lambda b: given(self=b.graph, agent=0),
    "StateGraph.successors": lambda b: given(self=b.graph, node=0),
    "Grounding": lambda b: given(graph=b.graph, n_actions=2),
    "Grounding.add": lambda b: given(self=b.grounding, node=0, action=0, successor=1),
    "Grounding.add_labels": lambda b: given(self=b.grounding, model=b.model, x=b.x, actions=b.collected.truth.actions),
    "Planner": lambda b: given(model=b.model, grounding=b.grounding),
    "Planner.run": lambda b: given(self=PUBLIC["Planner"](b.model, b.grounding), env=make_bits(), goal={1}),
    "explore": lambda b: given(env=make_bits(), model=b.model, grounding=b.grounding, steps=10),
    "find_latent_actions": lambda b: given(graph=b.graph),
    "plan_path": lambda b: given(grounding=b.grounding, start=0, goals={1}),
    "read_labels": lambda b: given(path=b.stored, tau=b.tau),
    "save_grounding": lambda b: given(path=b.new(".npz"), grounding=b.grounding, model="name"),
    "load_grounding": lambda b: given(path=_grounded(b), graph=b.graph, model="name"),
    **dict.fromkeys(
        ("accuracy", "accuracy_by_step", "confusion", "state_accuracies", "state_accuracies_by_step"),
        lambda b: given(labels=b.states, states=b.states),
    ),
    **dict.fromkeys(
        ("population_accuracy", "population_state_accuracies", "population_summary"),
        lambda b: given(encoders=_features, world=b.world),
    ),
    "count_visits": lambda b: given(labels=b.states[:, 1]),
    "encoder_accuracy": lambda b: given(learner=b.model, x_at=b.tau.at, states=b.states),
    "state_summary": lambda b: given(by_step=[np.ones(1), np.array([0.5, 1.0])]),
    "check_gym_world": lambda b: given(world=b.gym_world),
    "check_oracle": lambda b: given(oracle=CoordinateOracle(), tau=b.tau),
    "check_world": lambda b: given(world=b.world),
    "check_learner": lambda b: given(learner=unfitted("bits"), x=b.x, agent=b.tau.agent),
}
USES: dict[str, Callable[[Bench, Any], Any]] = {
    **dict.fromkeys(("ClassifierOracle", "CoordinateOracle", "FiniteOracle"), _oracle),
    **dict.fromkeys(("BitsExBMDP", "PixelsExBMDP"), _sampled),
    **dict.fromkeys(
        ("CRAFT", "CRAFT.paper", "RecursiveDRAFT", "SingleObservation", "PairedObservation"),
        lambda b, model: model.fit(b.x, b.tau.agent),
    ),
    "DRAFT": lambda b, model: model.fit(b.x[:, :2], b.tau.agent),
    "NeuralOracle": _network,
    "Training": lambda b, training: _network(b, NeuralOracle(dim=8, networks=1, training=training)),
    "Partition": lambda b, partition: CRAFT(NeuralOracle(networks=1), partition=partition).check_parameters(),
    "GymWorld": lambda b, world: collect(world, world.policies(), 2, seed=0),
    "MarkovPolicy": lambda b, policy: collect(b.world, [policy, policy], 5, seed=0),
    "read_episodes": lambda b, found: list(found),
    "StateObservation": lambda b, env: env.reset(seed=0),
    "Planner": lambda b, planner: planner.run(make_bits(), {1}, seed=0),
}


ODD = (
    *("None", "True", "-1", "0", "1.5", "2**63", "10**400", "1e308", "5e-324", "1j", "float('nan')", "float('inf')"),
    *("''", "'x'", "'\\0'", "b'x'", "[]", "{}", "[None, None]", "['a', 'b']", "[[1], [2, 3]]", "{'x': 1}", "{1}"),
    *("Decimal('0.3')", "Fraction(1, 3)", "(i for i in (1, 2))", "object()", "int", "lambda *given: None", "_raises"),
    *("_endless()", "np.zeros(0)", "np.zeros((0, 3))", "np.zeros((2, 2, 2), int)", "np.zeros((2, 3, 0), int)"),
    *("np.array(1.0)", "np.array([1])", "np.full((4, 2), np.nan)", "np.full((4, 2), 2**62)", "np.full((4, 2), -5)"),
    *(
        "np.array([None, 'x', 1])",
        "np.array(['a', 'b'])",
        "np.array(['2026-01-01'], 'M8[D]')",
        "np.ones((4, 2), complex)",
    ),
    "np.ma.masked_array([[1, 2], [3, 4]], mask=[[0, 1], [0, 0]])",
)


def _endless() -> list[Any]:
    """A list that holds itself."""
    out: list[Any] = []
    out.append(out)
    return out


PATHS: dict[str, Any] = {
    name: name
    for name in (".", "..", "/", "missing/deeper/name", "file.txt/name", "file.txt", "empty.npz", "folder", "pipe")
}
PATHS |= {"a long name": "n" * 300, "a device": "/dev/null", "a full device": "/dev/full", "a loop of links": "loop"}
PATHS |= {"a path": Path("x"), "a surrogate": "\udcff", "a URL of no store": "nosuch://campaign/name"}
PATHS |= {"a URL of nothing": "memory://campaign/nothing", "a URL without a name": "s3://"}


def make_odd_paths(folder: Path) -> None:
    """What the names of PATHS stand for, in a folder in which relative names are read."""
    for name in ("file.txt", "empty.npz"):
        (folder / name).write_text("a few words\n" if name == "file.txt" else "")
    (folder / "folder").mkdir(exist_ok=True)
    for name, make in {"pipe": os.mkfifo, "loop": lambda path: Path(path).symlink_to("loop")}.items():
        if not os.path.lexists(folder / name):
            make(folder / name)


# -- cases ---------------------------------------------------------------------------------------------------------


def _working(name: str, bench: Bench) -> tuple[Any, dict[str, Any]]:
    """A public callable and what it is given; a method is that of `self`, or of its class."""
    (owner, _, method), values = name.partition("."), CALLS[name](bench)
    return (getattr(values.pop("self", PUBLIC[owner]), method) if method else PUBLIC[owner]), values


def cases(bench: Bench) -> list[Case]:
    """Every call as it works, and with every odd value of every parameter; paths get odd paths as well."""
    found: list[Case] = []
    for name in CALLS:
        found.append({"call": name, "parameter": None, "odd": None})
        for p in inspect.signature(_working(name, bench)[0]).parameters.values():
            values = [*ODD, *(PATHS if "Path" in str(p.annotation) else ())] if p.kind is not p.VAR_KEYWORD else []
            found += [{"call": name, "parameter": p.name, "odd": value} for value in values]
    return [case for case in found if (case["call"], case["parameter"], case["odd"]) not in LONG]


def tried(case: Case, bench: Bench) -> Case:
    """fine: a result. refused: one of our errors. own: the error of a function that the caller gave.

    Faults are "foreign", any other error, and "nonsense", NaN where the working call has none.
    """
    name, parameter = case["call"], case["parameter"]
    value = PATHS[case["odd"]] if case["odd"] in PATHS else eval(case["odd"]) if parameter else None
    try:
        result = _called(name, bench, {parameter: value} if parameter else {})
    except OwnError:
        return {"outcome": "own", "said": ""}
    except BaseException as error:
        ours = isinstance(error, CraftError) or (isinstance(error, AssertionError) and name.startswith("check_"))
        outcome = "refused" if ours and parameter else "foreign"
        return {"outcome": outcome, "said": f"{'' if ours else f'{type(error).__name__}: '}{error}"[:300]}
    if parameter and _has_nan(result) and not _has_nan(_called(name, bench, {})):
        return {"outcome": "nonsense", "said": repr(result)[:300]}
    return {"outcome": "fine", "said": repr(result)[:100]}


def _called(name: str, bench: Bench, odd: dict[str, Any]) -> Any:
    function, values = _working(name, bench)
    bound = inspect.signature(function).bind_partial()
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in {**values, **odd}:
            one = {**values, **odd}[parameter.name]
            bound.arguments[parameter.name] = (one,) if parameter.kind is parameter.VAR_POSITIONAL else one
    made = function(*bound.args, **bound.kwargs)
    return USES[name](bench, made) if name in USES else made


def _has_nan(result: Any) -> bool:
    return isinstance(result, (float, np.ndarray)) and np.asarray(result).dtype.kind == "f" and np.isnan(result).any()


@cache
def _bench(folder: Path) -> Bench:
    make_odd_paths(folder)
    os.chdir(folder)
    return Bench(folder)


def run_case(case: Case, folder: Path) -> Case:
    return tried(case, _bench(folder))
