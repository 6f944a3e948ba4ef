"""Odd arguments: one parameter after the other of every public callable is given values that make no sense.

What must come is a result or one of our errors. `CALLS` has a working call of each; a public callable that is missing
there is found by a test. Classes that only store what they are given are used at once (`USES`).
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import craftrl
from campaign.bench import Bench, make_bits, ring, unfitted
from campaign.cases import Case
from craftrl import (
    CRAFT,
    CoordinateOracle,
    NeuralOracle,
    Training,
    TrajectoryDataset,
    deploy,
    diagnostics,
    envs,
    evaluation,
    importing,
    paper,
    planning,
    report,
    testing,
)
from craftrl.core.encoders import ConstantEncoder, CoordinateEncoder
from craftrl.data import DatasetWriter, read_actions, read_true_states
from craftrl.errors import CraftError

__all__ = ["CALLS", "NOT_CALLED", "ODD", "PATHS", "cases", "make_odd_paths", "public", "run_case", "tried"]

MODULES = ("", ".data", ".oracles", ".paper", ".diagnostics", ".envs", ".importing", ".deploy", ".report")
MODULES += (".planning", ".evaluation", ".testing")
# Records that the library makes and hands out, and base classes, which craftrl.testing checks.
NOT_CALLED = {"Choice", "EncoderFit", "LogOdds", "Assumptions", "AgentPairs", "Diagnosis", "Finding", "Collection"}
NOT_CALLED |= {"GroundTruth", "Inspection", "Episode", "Exploration", "LatentActions", "Plan"}
NOT_CALLED |= {"Oracle", "PreparedOracle", "ExBMDP", "Policy", "TrajectoryDataset", "StateGraph"}
LONG = {("Training", "epochs", "None"), ("NeuralOracle", "networks", "None")}  # what trains as long as it helps
BOUNDS = {"alpha": 1, "eta": 0.2, "nu": 0.1}
SIZE = {"delta": 0.1, "H": 4, "class_size": 8, "N_s": 2, **BOUNDS, "nu_prime": 0.2}


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
    planning.save_grounding(path := b.new(".npz"), b.grounding, "name")
    return path


def _visits(labels: Any, sizes: Any = None, times: Any = None) -> Any:
    return evaluation.count_visits(labels, sizes=sizes, times=times)


def _oracle(b: Bench, oracle: Any) -> Any:
    return CRAFT(oracle, **BOUNDS).fit(b.x, b.tau.agent)


def _network(b: Bench, oracle: Any) -> Any:
    if oracle.training is None:
        oracle.training = Training(epochs=1, progress=False)
    return CRAFT(oracle, **BOUNDS).fit(b.network[1])


def _sampled(b: Bench, world: Any) -> Any:
    return envs.collect(
        world, [world.policies() if hasattr(world, "policies") else world.paper_policies()][0], 3, seed=0
    )


CALLS: dict[str, Callable[[Bench], partial[Any]]] = {
    "CRAFT": lambda b: partial(CRAFT, CoordinateOracle(), **BOUNDS),
    "CRAFT.paper": lambda b: partial(CRAFT.paper, **BOUNDS),
    "CRAFT.fit": lambda b: partial(unfitted("bits").fit, x=b.x, agent=b.tau.agent),
    "CRAFT.diagnose": lambda b: partial(b.model.diagnose, x=b.x, agent=b.tau.agent, n_resamples=1),
    "CRAFT.encode": lambda b: partial(b.model.encode, x=b.tau.at(2), h=2),
    "CRAFT.transform": lambda b: partial(b.model.transform, x=b.x),
    "CRAFT.log_odds": lambda b: partial(b.model.log_odds, x=b.x),
    "CRAFT.embed": lambda b: partial(b.network[0].embed, x=b.network[1].at(2)),
    "CRAFT.save": lambda b: partial(b.model.save, path=b.new(".safetensors")),
    "load": lambda b: partial(craftrl.load, path=b.saved),
    "ClassifierOracle": lambda b: partial(craftrl.ClassifierOracle, classifier=_tree(), repeats=1),
    "CoordinateOracle": lambda b: partial(CoordinateOracle),
    "FiniteOracle": lambda b: partial(craftrl.FiniteOracle, encoders=[lambda x: x[:, 0]]),
    "NeuralOracle": lambda b: partial(NeuralOracle, dim=8, networks=1, training=Training(epochs=1, progress=False)),
    "Training": lambda b: partial(Training, epochs=1, progress=False),
    "Partition": lambda b: partial(craftrl.Partition),
    "TrajectoryDataset.from_arrays": lambda b: partial(TrajectoryDataset.from_arrays, arrays=[b.x[:60], b.x[60:]]),
    "TrajectoryDataset.from_episodes": lambda b: partial(
        TrajectoryDataset.from_episodes, agents=[list(b.x), list(b.x)]
    ),
    "TrajectoryDataset.open": lambda b: partial(TrajectoryDataset.open, path=b.stored),
    "TrajectoryDataset.save": lambda b: partial(b.tau.save, path=b.new()),
    "TrajectoryDataset.at": lambda b: partial(b.tau.at, h=2),
    "TrajectoryDataset.episode": lambda b: partial(b.tau.episode, i=3),
    "TrajectoryDataset.first_steps": lambda b: partial(b.tau.first_steps, H=2),
    "TrajectoryDataset.rows": lambda b: partial(b.tau.rows, index=np.arange(4)),
    "TrajectoryDataset.select": lambda b: partial(b.tau.select, index=np.arange(40, 80)),
    "DatasetWriter": lambda b: partial(DatasetWriter, path=b.new()),
    "DatasetWriter.append": lambda b: partial(_writer(b).append, agent="a", x=b.x[0]),
    "read_actions": lambda b: partial(read_actions, path=b.stored),
    "read_true_states": lambda b: partial(read_true_states, path=b.stored),
    "DRAFT": lambda b: partial(paper.DRAFT, oracle=CoordinateOracle()),
    "RecursiveDRAFT": lambda b: partial(paper.RecursiveDRAFT, oracle=CoordinateOracle()),
    "SingleObservation": lambda b: partial(paper.SingleObservation, oracle=CoordinateOracle()),
    "PairedObservation": lambda b: partial(paper.PairedObservation, oracle=CoordinateOracle()),
    "chance_accuracy": lambda b: partial(paper.chance_accuracy, world=b.world, policies=b.policies),
    "empirical_assumptions": lambda b: partial(paper.empirical_assumptions, agent=b.tau.agent, states=b.states),
    "population_assumptions": lambda b: partial(paper.population_assumptions, world=b.world, policies=b.policies),
    "guaranteed_epsilon": lambda b: partial(paper.guaranteed_epsilon, n=10**6, **SIZE),
    "sample_size": lambda b: partial(paper.sample_size, epsilon_0=0.1, **SIZE),
    "compare_agents": lambda b: partial(diagnostics.compare_agents, tau=b.tau),
    "BitsExBMDP": lambda b: partial(envs.BitsExBMDP, horizon=3, n_features=4),
    "PixelsExBMDP": lambda b: partial(envs.PixelsExBMDP, horizon=3, size=2, n_walkers=0),
    "GymWorld": lambda b: partial(envs.GymWorld, make=make_bits, state=lambda env: 0, n_states=2, actions=[0, 1], H=4),
    "MarkovPolicy": lambda b: partial(envs.MarkovPolicy, tables=[np.full((2, 2), 0.5)[: h + 1] for h in range(3)]),
    "collect": lambda b: partial(envs.collect, world=b.world, policies=b.policies, n=5),
    "record": lambda b: partial(envs.record, world=b.world, policies=b.policies, n=5, path=b.new(), seed=0),
    "contrasting_policies": lambda b: partial(envs.contrasting_policies, world=b.world),
    "import_data": lambda b: partial(importing.import_data, agents=b.recordings, out=b.new()),
    "read_episodes": lambda b: partial(importing.read_episodes, agents=b.recordings),
    "inspect": lambda b: partial(importing.inspect, path=b.stored),
    "StateModule": lambda b: partial(deploy.StateModule, model=b.network[0], h=2),
    "StateObservation": lambda b: partial(deploy.StateObservation, env=make_bits(), model=b.model),
    "export_onnx": lambda b: partial(deploy.export_onnx, model=b.network[0], path=b.new(".onnx"), h=2, check=False),
    "render": lambda b: partial(
        deploy.render, model=b.network[0], tau=b.network[1], path=b.new(".gif"), trajectories=[0]
    ),
    "write_plan": lambda b: partial(deploy.write_plan, path=b.new(".gif"), episodes=b.played[1], graph=b.played[0]),
    "write_states": lambda b: partial(deploy.write_states, path=b.new(".csv"), states=b.states, agent=b.tau.agent),
    "check_report": lambda b: partial(report.check_report, path=b.new(".html"), overwrite=False),
    "draw_schematic": lambda b: partial(report.draw_schematic, trace=b.model.trace_, path=b.new(".png")),
    "write_report": lambda b: partial(report.write_report, model=b.model, path=b.new(".html"), x=b.tau, n_resamples=0),
    "StateGraph.from_model": lambda b: partial(planning.StateGraph.from_model, model=b.model, tau=b.tau),
    "StateGraph.from_states": lambda b: partial(planning.StateGraph.from_states, states=b.states, agent=b.tau.agent),
    "StateGraph.node": lambda b: partial(b.graph.node, state=0, h=2),
    "StateGraph.nodes": lambda b: partial(b.graph.nodes, states=b.model.transform(b.tau)),
    "StateGraph.policy": lambda b: partial(b.graph.policy, agent=0),
    "StateGraph.successors": lambda b: partial(b.graph.successors, node=0),
    "Grounding": lambda b: partial(planning.Grounding, graph=b.graph, n_actions=2),
    "Grounding.add": lambda b: partial(b.grounding.add, node=0, action=0, successor=1),
    "Grounding.add_labels": lambda b: partial(
        b.grounding.add_labels, model=b.model, x=b.x, actions=b.collected.truth.actions
    ),
    "Planner": lambda b: partial(planning.Planner, model=b.model, grounding=b.grounding),
    "Planner.run": lambda b: partial(planning.Planner(b.model, b.grounding).run, env=make_bits(), goal={1}),
    "explore": lambda b: partial(planning.explore, env=make_bits(), model=b.model, grounding=b.grounding, steps=10),
    "find_latent_actions": lambda b: partial(planning.find_latent_actions, counts=ring()),
    "plan_path": lambda b: partial(planning.plan_path, grounding=b.grounding, start=0, goals={1}),
    "read_labels": lambda b: partial(planning.read_labels, path=b.stored, tau=b.tau),
    "save_grounding": lambda b: partial(
        planning.save_grounding, path=b.new(".npz"), grounding=b.grounding, model="name"
    ),
    "load_grounding": lambda b: partial(planning.load_grounding, path=_grounded(b), graph=b.graph, model="name"),
    "accuracy": lambda b: partial(evaluation.accuracy, labels=b.states, states=b.states),
    "accuracy_by_step": lambda b: partial(evaluation.accuracy_by_step, labels=b.states, states=b.states),
    "confusion": lambda b: partial(evaluation.confusion, labels=b.states, states=b.states),
    "state_accuracies": lambda b: partial(evaluation.state_accuracies, labels=b.states, states=b.states),
    "state_accuracies_by_step": lambda b: partial(
        evaluation.state_accuracies_by_step, labels=b.states, states=b.states
    ),
    "count_visits": lambda b: partial(_visits, labels=b.states[:, 1]),
    "encoder_accuracy": lambda b: partial(evaluation.encoder_accuracy, learner=b.model, x_at=b.tau.at, states=b.states),
    "population_accuracy": lambda b: partial(evaluation.population_accuracy, encoders=_features, world=b.world),
    "population_state_accuracies": lambda b: partial(
        evaluation.population_state_accuracies, encoders=_features, world=b.world
    ),
    "population_summary": lambda b: partial(evaluation.population_summary, encoders=_features, world=b.world),
    "state_summary": lambda b: partial(evaluation.state_summary, by_step=[np.ones(1), np.array([0.5, 1.0])]),
    "check_gym_world": lambda b: partial(testing.check_gym_world, world=b.gym_world),
    "check_oracle": lambda b: partial(testing.check_oracle, oracle=CoordinateOracle(), tau=b.tau),
    "check_world": lambda b: partial(testing.check_world, world=b.world),
    "check_learner": lambda b: partial(testing.check_learner, learner=unfitted("bits"), x=b.x, agent=b.tau.agent),
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
    "GymWorld": lambda b, world: envs.collect(world, world.policies(), 2, seed=0),
    "MarkovPolicy": lambda b, policy: envs.collect(b.world, [policy, policy], 5, seed=0),
    "read_episodes": lambda b, found: list(found),
    "StateObservation": lambda b, env: env.reset(seed=0),
    "Planner": lambda b, planner: planner.run(make_bits(), {1}, seed=0),
}


def _endless() -> list[Any]:
    out: list[Any] = []
    out.append(out)
    return out


ODD: dict[str, Callable[[], Any]] = {
    **{repr(value): lambda value=value: value for value in (None, True, -1, 0, 1.5, 2**63, 1e308, 5e-324, 1j)},
    **{repr(value): lambda value=value: value for value in (float("nan"), float("inf"), "", "x", "\0", b"x", [], {})},
    **{repr(value): lambda value=value: value for value in ([None, None], ["a", "b"], [[1], [2, 3]], {"x": 1}, {1})},
    "10**400": lambda: 10**400,
    "a decimal": lambda: Decimal("0.3"),
    "a fraction": lambda: Fraction(1, 3),
    "a list that holds itself": _endless,
    "a generator": lambda: (i for i in (1, 2)),
    "an object": object,
    "a class": lambda: int,
    "a function": lambda: lambda *given: None,
    "a function that raises": lambda: _raises,
    "an array of none": lambda: np.zeros(0),
    "an array (0, 3)": lambda: np.zeros((0, 3)),
    "an array (2, 2, 2)": lambda: np.zeros((2, 2, 2), dtype=int),
    "an array (2, 3, 0)": lambda: np.zeros((2, 3, 0), dtype=int),
    "an array without axes": lambda: np.array(1.0),
    "an array of one": lambda: np.array([1]),
    "an array of NaN": lambda: np.full((4, 2), np.nan),
    "an array of huge integers": lambda: np.full((4, 2), 2**62),
    "an array of negatives": lambda: np.full((4, 2), -5),
    "an array of objects": lambda: np.array([None, "x", 1], dtype=object),
    "an array of texts": lambda: np.array(["a", "b"]),
    "an array of dates": lambda: np.array(["2026-01-01"], dtype="datetime64[D]"),
    "an array of complex": lambda: np.ones((4, 2), dtype=complex),
    "a masked array": lambda: np.ma.masked_array([[1, 2], [3, 4]], mask=[[0, 1], [0, 0]]),
}
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


def public() -> set[str]:
    """The names of all public callables, but for exceptions."""
    names = {(name, getattr(module, name)) for module in map(_module, MODULES) for name in module.__all__}
    return {n for n, of in names if callable(of) and not (isinstance(of, type) and issubclass(of, BaseException))}


def _module(name: str) -> Any:
    return import_module(f"craftrl{name}")


def cases(bench: Bench) -> list[Case]:
    """Every call as it works, and with every odd value of every parameter; paths get odd paths as well."""
    found: list[Case] = []
    for name, make in CALLS.items():
        parameters = inspect.signature(make(bench).func).parameters.values()
        odd = [p for p in parameters if p.kind is not p.VAR_KEYWORD and p.name != "self"]
        found.append({"call": name, "parameter": None, "odd": None})
        for p in odd:
            values = [*ODD, *(PATHS if "Path" in str(p.annotation) else ())]
            found += [{"call": name, "parameter": p.name, "odd": value} for value in values]
    return [case for case in found if (case["call"], case["parameter"], case["odd"]) not in LONG]


def tried(case: Case, bench: Bench) -> Case:
    """fine: a result. refused: one of our errors. own: the error of a function that the caller gave.

    Faults are "foreign", any other error, and "nonsense", NaN where the working call has none.
    """
    name, parameter, call = case["call"], case["parameter"], CALLS[case["call"]](bench)
    value = PATHS[case["odd"]] if case["odd"] in PATHS else ODD[case["odd"]]() if parameter else None
    try:
        result = _called(name, call, bench, {parameter: value} if parameter else {})
    except OwnError:
        return {"outcome": "own", "said": ""}
    except (CraftError, AssertionError) as error:
        if isinstance(error, AssertionError) and not name.startswith("check_"):  # of craftrl.testing
            return {"outcome": "foreign", "said": f"AssertionError: {error}"[:300]}
        return {"outcome": "refused" if parameter else "foreign", "said": str(error)[:300]}
    except BaseException as error:
        return {"outcome": "foreign", "said": f"{type(error).__name__}: {error}"[:300]}
    if parameter and _has_nan(result) and not _has_nan(_called(name, CALLS[name](bench), bench, {})):
        return {"outcome": "nonsense", "said": repr(result)[:300]}
    return {"outcome": "fine", "said": repr(result)[:100]}


def _called(name: str, call: partial[Any], bench: Bench, odd: dict[str, Any]) -> Any:
    signature = inspect.signature(call.func)
    bound = signature.bind(**{**dict(zip(signature.parameters, call.args)), **call.keywords, **odd})
    made = call.func(*bound.args, **bound.kwargs)
    return USES[name](bench, made) if name in USES else made


def _has_nan(result: Any) -> bool:
    return (
        isinstance(result, (float, np.ndarray))
        and np.asarray(result).dtype.kind == "f"
        and bool(np.isnan(result).any())
    )


@cache
def _bench(folder: Path) -> Bench:
    make_odd_paths(folder)
    os.chdir(folder)
    return Bench(folder)


def run_case(case: Case, folder: Path) -> Case:
    return tried(case, _bench(folder))
