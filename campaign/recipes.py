"""A working call of every public callable: the values that its parameters have while one of them is odd.

Values are looked up by the name of the parameter, so that most callables need no entry of their own.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from campaign.bench import Bench
from campaign.formats import unfitted_network
from craftrl import CRAFT, CoordinateOracle, NeuralOracle, Training
from craftrl.core.grid import Grid
from craftrl.data.dataset import ArraySteps
from craftrl.data.ranks import ALONE
from craftrl.diagnostics import Subject
from craftrl.distributed import LocalExecutor
from craftrl.distributed.cost import estimate
from craftrl.distributed.job import Cluster, Job
from craftrl.distributed.rates import Rates
from craftrl.envs import MarkovPolicy, collect
from craftrl.importing import Agent, Episode, Recording, import_data
from craftrl.planning import Curve, Imitator
from craftrl.theory import corrupted_example

__all__ = ["HELD", "RECORDS", "SPECIAL", "USES", "VALUES"]


def _few_epochs(**given: Any) -> Training:
    return Training(**{"epochs": 1, "progress": False, **given})


def _halves(h: int) -> Any:
    return np.full((1 if h == 1 else 2, 2), 0.5)


# What a parameter of this name is given.
VALUES: dict[str, Callable[[Bench], Any]] = {
    "x": lambda b: b.x,
    "X": lambda b: b.x,
    "agent": lambda b: b.tau.agent,
    "agents": lambda b: b.recordings,
    "arrays": lambda b: [b.x[:60], b.x[60:]],
    "h": lambda b: 2,
    "k": lambda b: 1,
    "tau": lambda b: b.tau,
    "steps": lambda b: ArraySteps(np.moveaxis(b.x, 1, 0)),
    "index": lambda b: np.arange(40, 80),
    "path": lambda b: b.new(),
    "out": lambda b: b.new(".h5"),
    "store": lambda b: b.imported,
    "data": lambda b: b.stored,
    "model": lambda b: b.model,
    "learner": lambda b: b.model,
    "oracle": lambda b: CoordinateOracle(),
    "log_odds": lambda b: CoordinateOracle(),
    "separation": lambda b: CoordinateOracle(),
    "encoding": lambda b: CoordinateOracle(),
    "classifier": lambda b: _tree(),
    "encoders": lambda b: [_first, _second],
    "x_at": lambda b: b.tau.at,
    "world": lambda b: b.world,
    "policies": lambda b: b.world.paper_policies(),
    "tables": lambda b: [_halves(h) for h in (1, 2, 3)],
    "n": lambda b: 1000,
    "grid": lambda b: Grid.from_bounds(1, 0.2),
    "alpha": lambda b: 1.0,
    "eta": lambda b: 0.2,
    "nu": lambda b: 0.1,
    "nu_prime": lambda b: 0.5,
    "epsilon": lambda b: 0.05,
    "epsilon_0": lambda b: 0.05,
    "beta": lambda b: 0.05,
    "delta": lambda b: 0.05,
    "gap": lambda b: 0.2,
    "H": lambda b: 4,
    "N": lambda b: 2,
    "N_s": lambda b: 2,
    "m": lambda b: 1000,
    "class_size": lambda b: 12,
    "changed": lambda b: 1,
    "size": lambda b: 10,
    "gamma_A": lambda b: 0.7,
    "gamma_B": lambda b: 0.3,
    "epsilon_bad": lambda b: 0.1,
    "accuracy": lambda b: 0.9,
    "accuracy_prime": lambda b: 0.9,
    "phi": lambda b: np.array([0, 0, 0, 1, 1, 1]),
    "p_A": lambda b: np.full(6, 1 / 6),
    "p_B": lambda b: np.full(6, 1 / 6),
    "a": lambda b: np.array([3.0, 1.0]),
    "b": lambda b: np.array([1.0, 3.0]),
    "labels": lambda b: b.labels,
    "states": lambda b: b.states,
    "s_h": lambda b: b.states[:, 1],
    "s_next": lambda b: b.states[:, 2],
    "by_step": lambda b: [np.array([1.0]), np.array([0.5, 1.0])],
    "truth": lambda b: b.collected.truth,
    "learned": lambda b: b.graph,
    "true": lambda b: b.graph,
    "matching": lambda b: [np.arange(b.graph.n_states(h)) for h in range(1, 5)],
    "name": lambda b: "bits",
    "n_states": lambda b: [1, 2, 2, 2],
    "moves": lambda b: np.array([[0, 1], [1, 0]]),
    "function": lambda b: lambda history: np.full((len(history), 2), 0.5),
    "choose": lambda b: lambda history: b.world.paper_policies()[0],
    "batch": lambda b: 5,
    "schedule": lambda b: [0, 1, 0, 1],
    "n_resamples": lambda b: 1,
    "overwrite": lambda b: False,
    "trajectories": lambda b: [0, 1],
    "env": lambda b: _environment(),
    "codes": lambda b: b.labels,
    "probe": lambda b: CoordinateOracle(),
    "trace": lambda b: b.model.trace_,
    "stay": lambda b: 0.7,
    "occupied": lambda b: np.array([[0], [2]]),
    "counts": lambda b: np.array([5, 6]),
    "threshold": lambda b: 1.0,
    "grounding": lambda b: b.grounding(),
    "n_actions": lambda b: 2,
    "nodes": lambda b: b.moves.nodes,
    "node": lambda b: 0,
    "successor": lambda b: int(b.moves.edges[0, 1]),
    "action": lambda b: 0,
    "actions": lambda b: np.zeros((len(b.x), b.x.shape[1] - 1), dtype=int),
    "edge": lambda b: b.moves.edges[0],
    "edges": lambda b: b.moves.edges,
    "start": lambda b: 0,
    "goals": lambda b: {int(b.moves.edges[0, 1])},
    "goal": lambda b: {int(b.moves.edges[0, 1])},
    "aim": lambda b: {int(b.moves.edges[0, 1])},
    "state": lambda b: 0,
    "sizes": lambda b: (1, 2, 2),
    "shared": lambda b: False,
    "score": lambda b: [0.1, 0.5, 1.0],
    "reached": lambda b: lambda env: False,
    "act": lambda b: lambda x, h: 0,
    "latent": lambda b: _latent(),
    "s": lambda b: np.array([0, 1, 2]),
    "t": lambda b: np.array([1, 2, 0]),
    "true_actions": lambda b: np.array([0, 0, 0]),
    "group": lambda b: np.zeros(len(b.labels), dtype=int),
    "most": lambda b: 5,
    "value": lambda b: b.stored,
    "values": lambda b: b.x,
    "what": lambda b: "data",
    "url": lambda b: "memory://campaign/name",
    "ranks": lambda b: ALONE,
    "executor": lambda b: LocalExecutor(),
    "args": lambda b: b.x,
    "handles": lambda b: [b.tau.agent, b.tau.agent],
    "folder": lambda b: b.encoded,
    "job": lambda b: Job(trajectories=10**6),
    "cluster": lambda b: Cluster(nodes=2),
    "machine": lambda b: Cluster(),
    "rates": lambda b: Rates.shipped(),
    "shards": lambda b: 100,
    "cores": lambda b: 16,
    "n_bytes": lambda b: 1e6,
    "leaves": lambda b: 100,
    "fan_in": lambda b: 8,
    "frames": lambda b: 10**6,
    "frame_bytes": lambda b: 12288,
    "frames_per_second": lambda b: 2e4,
    "price": lambda b: 1.0,
}


def _first(x: Any) -> Any:
    return x[:, 0]


def _second(x: Any) -> Any:
    return x[:, 1]


def _tree() -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_depth=3, random_state=0)


def _tensor(x: Any) -> Any:
    import torch

    return torch.from_numpy(x)


def _latent() -> Any:
    from craftrl.states.latent_actions import find_latent_actions

    return find_latent_actions(_ring())


def _ring() -> Any:
    """Counts of two agents' moves on a ring of seven states."""
    forward, backward = np.roll(np.eye(7, dtype=int), 1, axis=1), np.roll(np.eye(7, dtype=int), -1, axis=1)
    return [30 * forward + 10 * backward, 10 * forward + 30 * backward]


def _environment() -> Any:
    import gymnasium

    from craftrl.envs import register_worlds

    register_worlds()
    return gymnasium.make("craftrl/Bits-v0", horizon=4, n_features=6)


# Where the name alone does not say it.
SPECIAL: dict[tuple[str, str], Callable[[Bench], Any]] = {
    ("craftrl.CRAFT.fit", "agent"): lambda b: b.tau.agent,
    ("craftrl.CRAFT.diagnose", "agent"): lambda b: b.tau.agent,
    ("craftrl.CRAFT.diagnose", "n_resamples"): lambda b: 1,
    ("craftrl.CRAFT.encode", "h"): lambda b: 2,
    ("craftrl.baselines.SingleObservation.fit", "agent"): lambda b: b.tau.agent,
    ("craftrl.baselines.SingleObservation.encode", "h"): lambda b: 2,
    ("craftrl.baselines.SingleObservation.from_pretrained", "path"): lambda b: b.saved_single,
    ("craftrl.plots.spectra.draw_schematic", "path"): lambda b: b.new(".png"),
    ("craftrl.report.check_report", "path"): lambda b: b.new(".html"),
    ("craftrl.report.write_report", "path"): lambda b: b.new(".html"),
    ("craftrl.report.write_report", "x"): lambda b: b.tau,
    ("craftrl.report.write_report", "n_resamples"): lambda b: 0,
    ("craftrl.deploy.StateModule.forward", "x"): lambda b: _tensor(b.network[1].at(2)),
    ("craftrl.states.graph.match_to_truth", "truth"): lambda b: b.states,
    ("craftrl.load", "path"): lambda b: b.saved,
    ("craftrl.CRAFT.from_pretrained", "path"): lambda b: b.saved,
    ("craftrl.CRAFT.encode", "x"): lambda b: b.tau.at(2),
    ("craftrl.baselines.SingleObservation.encode", "x"): lambda b: b.tau.at(2),
    ("craftrl.TrajectoryDataset.open", "path"): lambda b: b.stored,
    ("craftrl.TrajectoryDataset.from_episodes", "agents"): lambda b: [list(b.x[:60]), list(b.x[60:])],
    ("craftrl.TrajectoryDataset.select", "agent"): lambda b: b.tau.agent[40:80],
    ("craftrl.importing.Agent", "episodes"): lambda b: [_episode(b.x[0])],
    ("craftrl.importing.Agent", "format"): lambda b: "walks",
    ("craftrl.importing.Episode", "count"): lambda b: lambda: len(b.x[0]),
    ("craftrl.importing.Episode", "read"): lambda b: lambda part: Recording(b.x[0][part]),
    ("craftrl.importing.Episode", "stamp"): lambda b: "1",
    ("craftrl.importing.Recording", "observations"): lambda b: b.x[0],
    ("craftrl.importing.inspect", "path"): lambda b: b.imported,
    ("craftrl.deploy.StateModule", "model"): lambda b: b.network[0],
    ("craftrl.deploy.StateModule", "h"): lambda b: 2,
    ("craftrl.deploy.export_onnx", "model"): lambda b: b.network[0],
    ("craftrl.deploy.export_onnx", "h"): lambda b: 2,
    ("craftrl.deploy.export_onnx", "path"): lambda b: b.new(".onnx"),
    ("craftrl.deploy.render", "model"): lambda b: b.network[0],
    ("craftrl.deploy.render", "tau"): lambda b: b.network[1],
    ("craftrl.deploy.render", "path"): lambda b: b.new(".gif"),
    ("craftrl.diagnostics.diagnose", "model"): lambda b: _subject(b),
    ("craftrl.diagnostics.resample", "model"): lambda b: _subject(b),
    ("craftrl.diagnostics.resample", "seed"): lambda b: 0,
    ("craftrl.diagnostics.sufficiency", "f"): lambda b: b.network[0].f_,
    ("craftrl.diagnostics.sufficiency", "codes"): lambda b: b.network[0].transform(b.network[1]),
    ("craftrl.diagnostics.sufficiency", "tau"): lambda b: b.network[1],
    ("craftrl.diagnostics.sufficiency", "at_chance"): lambda b: [],
    ("craftrl.diagnostics.sufficiency", "seed"): lambda b: 0,
    ("craftrl.planning.Curve", "steps"): lambda b: [10, 20, 30],
    ("craftrl.planning.Curve.at", "steps"): lambda b: [5, 15],
    ("craftrl.planning.Curve.of", "rows"): lambda b: [(10, 0.1), (20, 0.5)],
    ("craftrl.planning.Curve.smoothed", "window"): lambda b: 2,
    ("craftrl.planning.Grounding", "moves"): lambda b: b.moves,
    ("craftrl.planning.Grounding.reliability", "a"): lambda b: 0,
    ("craftrl.planning.Grounding.reliability", "s"): lambda b: 0,
    ("craftrl.planning.Imitator", "policy"): lambda b: _habits(b),
    ("craftrl.planning.Moves", "counts"): lambda b: b.moves.counts,
    ("craftrl.planning.Moves.text", "edge"): lambda b: b.moves.edges[0],
    ("craftrl.planning.Moves.from_states", "states"): lambda b: b.labels,
    ("craftrl.planning.Nodes.from_states", "states"): lambda b: b.labels,
    ("craftrl.planning.Nodes.number", "h"): lambda b: 2,
    ("craftrl.planning.Nodes.numbers", "states"): lambda b: b.labels,
    ("craftrl.planning.Nodes.from_model", "H"): lambda b: 3,
    ("craftrl.planning.TabularQ", "epsilon"): lambda b: 0.2,
    ("craftrl.planning.explore", "steps"): lambda b: 10,
    ("craftrl.planning.agent_scores", "moves"): lambda b: b.moves,
    ("craftrl.planning.better_agent", "moves"): lambda b: b.moves,
    ("craftrl.planning.read_policy", "moves"): lambda b: b.moves,
    ("craftrl.planning.read_policy", "agent"): lambda b: 0,
    ("craftrl.planning.success_rate", "env"): lambda b: _task(b),
    ("craftrl.planning.success_rate", "episodes"): lambda b: 3,
    ("craftrl.planning.TabularQ.fit", "env"): lambda b: _states_shown(b),
    ("craftrl.planning.TabularQ.partial_fit", "env"): lambda b: _states_shown(b),
    ("craftrl.planning.TabularQ.fit", "steps"): lambda b: 20,
    ("craftrl.planning.TabularQ.partial_fit", "steps"): lambda b: 20,
    ("craftrl.states.latent_actions.find_latent_actions", "counts"): lambda b: _ring(),
    ("craftrl.states.agreement.accuracy_by_group", "codes"): lambda b: b.labels[:, 1],
    ("craftrl.states.agreement.accuracy_by_group", "truth"): lambda b: b.states[:, 1],
    ("craftrl.deploy.write_plan", "path"): lambda b: b.new(".gif"),
    ("craftrl.deploy.write_plan", "moves"): lambda b: b.played[0],
    ("craftrl.deploy.write_plan", "episodes"): lambda b: b.played[1],
    ("craftrl.deploy.write_states", "path"): lambda b: b.new(".csv"),
    ("craftrl.data.truth.read_true_states", "path"): lambda b: b.truth,
    ("craftrl.envs.record", "path"): lambda b: b.new(".h5"),
    ("craftrl.envs.record", "n"): lambda b: 10,
    ("craftrl.envs.collect", "n"): lambda b: 10,
    ("craftrl.envs.GymWorld", "make"): lambda b: _environment,
    ("craftrl.envs.GymWorld", "state"): lambda b: lambda env: 0,
    ("craftrl.envs.GymWorld", "n_states"): lambda b: 2,
    ("craftrl.envs.GymWorld", "actions"): lambda b: [0, 1],
    ("craftrl.envs.GymWorld", "agents"): lambda b: (MarkovPolicy([np.full((2, 2), 0.5)] * 3),) * 2,
    ("craftrl.states.accuracy.population_accuracy", "encoders"): lambda b: _coordinate_encoders,
    ("craftrl.states.accuracy.population_state_accuracies", "encoders"): lambda b: _coordinate_encoders,
    ("craftrl.states.accuracy.population_summary", "encoders"): lambda b: _coordinate_encoders,
    ("craftrl.states.visits.count_visits", "labels"): lambda b: b.states[:, 1],
    ("craftrl.distributed.encode_on_shards", "out"): lambda b: b.new(),
    ("craftrl.distributed.encode_on_shards", "path"): lambda b: b.shards,
    ("craftrl.distributed.fit_on_shards", "model"): lambda b: CRAFT(CoordinateOracle(), alpha=1, eta=0.2, nu=0.1),
    ("craftrl.distributed.fit_on_shards", "path"): lambda b: b.shards,
    ("craftrl.distributed.LocalExecutor.submit", "function"): lambda b: lambda *given: len(given),
    ("craftrl.distributed.job.Job", "agents"): lambda b: 2,
    ("craftrl.distributed.job.Job", "trajectories"): lambda b: 10**6,
    ("craftrl.distributed.forecast.Forecast", "nodes"): lambda b: [1, 10],
    ("craftrl.distributed.forecast.NetworkJob.seconds", "ranks"): lambda b: 2,
    ("craftrl.distributed.forecast.NetworkJob.text", "ranks"): lambda b: [2, 4],
    ("craftrl.distributed.forecast.job_of", "path"): lambda b: b.stored,
    ("craftrl.distributed.train_on_ray.fit_networks_on_ray", "model"): lambda b: unfitted_network(),
    ("craftrl.distributed.train_on_ray.fit_networks_on_ray", "path"): lambda b: b.stored_frames,
    ("craftrl.distributed.train_on_ray.fit_networks_on_ray", "workers"): lambda b: 1,
    ("craftrl.data.ranks.Ranks.every", "value"): lambda b: 1,
    ("craftrl.data.ranks.Ranks.from_first", "function"): lambda b: lambda: 1,
    ("craftrl.theory.encoding_sample_size", "m"): lambda b: 0,
    ("craftrl.theory.encoding_epsilon", "m"): lambda b: 0,
    ("craftrl.theory.separation_margin", "m"): lambda b: 0,
    ("craftrl.theory.separation_sample_size", "m"): lambda b: 0,
    ("craftrl.theory.recursive_step_holds", "epsilon"): lambda b: 0.001,
    ("craftrl.theory.recursive_step_holds", "h"): lambda b: 2,
}


def _subject(b: Bench) -> Any:
    m = b.model
    return Subject(tuple(m.encoders_), np.array(list(m.n_states_)), m.labels_, m.trace_, m.bounds_, m._refit)


def _habits(b: Bench) -> Any:
    from craftrl.planning import read_policy

    return read_policy(b.moves, 0)


def _task(b: Bench) -> Any:
    from craftrl.planning import ReachState

    return ReachState(_environment(), lambda env: False)


def _states_shown(b: Bench) -> Any:
    from craftrl.deploy import StateObservation

    return StateObservation(_environment(), b.model)


def _coordinate_encoders(h: int) -> Any:
    from craftrl.core.encoders import ConstantEncoder, CoordinateEncoder

    return [ConstantEncoder() if h == 1 else CoordinateEncoder(0, np.array([0, 1]))]


# What is done with an instance once it is there: many classes only store what they are given, and check it when used.
USES: dict[str, Callable[[Bench, Any], Any]] = {
    "craftrl.CRAFT": lambda b, model: model.fit(b.x, b.tau.agent),
    "craftrl.CRAFT.paper": lambda b, model: model.fit(b.x, b.tau.agent),
    "craftrl.ClassifierOracle": lambda b, oracle: _fit(b, oracle),
    "craftrl.CoordinateOracle": lambda b, oracle: _fit(b, oracle),
    "craftrl.FiniteOracle": lambda b, oracle: _fit(b, oracle),
    "craftrl.Mixed": lambda b, oracle: _fit(b, oracle),
    "craftrl.NeuralOracle": lambda b, oracle: _fit(b, _quick(oracle)),
    "craftrl.Training": lambda b, training: _fit(b, NeuralOracle(dim=8, networks=1, training=training)),
    "craftrl.Valleys": lambda b, clusterer: _fit(b, CoordinateOracle(), clusterer=clusterer),
    "craftrl.baselines.DRAFT": lambda b, model: model.fit(b.x[:, :2], b.tau.agent),
    "craftrl.baselines.RecursiveDRAFT": lambda b, model: model.fit(b.x, b.tau.agent),
    "craftrl.baselines.SingleObservation": lambda b, model: model.fit(b.x, b.tau.agent),
    "craftrl.baselines.PairedObservation": lambda b, model: model.fit(b.x, b.tau.agent),
    "craftrl.baselines.SingleFrame": lambda b, model: model.fit(b.x, b.tau.agent),
    "craftrl.distributed.RayExecutor": lambda b, executor: _summed(executor),
    "craftrl.distributed.job.Cluster": lambda b, cluster: estimate(Job(10**6), cluster, Rates.shipped()),
    "craftrl.distributed.job.Job": lambda b, job: estimate(job, Cluster(), Rates.shipped()),
    "craftrl.distributed.forecast.Forecast": lambda b, forecast: str(forecast),
    "craftrl.distributed.forecast.NetworkJob": lambda b, job: job.text([2], 1.0),
    "craftrl.importing.Agent": lambda b, agent: import_data([agent, _agent(b.x[1])], b.new(".h5")),
    "craftrl.importing.Episode": lambda b, episode: _import_episode(b, episode),
    "craftrl.importing.Recording": lambda b, recording: _import_episode(b, _episode(b.x[0], recording)),
    "craftrl.envs.BitsExBMDP": lambda b, world: collect(world, world.paper_policies(), 5, seed=0),
    "craftrl.envs.LockExBMDP": lambda b, world: collect(world, world.policies(), 5, seed=0),
    "craftrl.envs.MultiMazeExBMDP": lambda b, world: collect(world, world.policies(), 5, seed=0),
    "craftrl.envs.PixelsExBMDP": lambda b, world: collect(world, world.policies(), 5, seed=0),
    "craftrl.envs.MarkovPolicy": lambda b, policy: collect(b.world, [policy, policy], 5, seed=0),
    "craftrl.envs.HistoryPolicy": lambda b, policy: collect(b.world, [policy, policy], 5, seed=0),
    "craftrl.envs.AdaptivePolicy": lambda b, policy: collect(b.world, [policy, policy], 5, seed=0),
    "craftrl.envs.SwitchingPolicy": lambda b, policy: collect(b.world, [policy, policy], 5, seed=0),
    "craftrl.envs.GymWorld": lambda b, world: collect(world, world.policies(), 2, seed=0),
    "craftrl.deploy.StateObservation": lambda b, env: env.reset(seed=0),
    "craftrl.planning.Imitator": lambda b, imitator: imitator.run(_environment(), seed=0),
    "craftrl.planning.Planner": lambda b, planner: planner.run(_environment(), {0}, seed=0),
    "craftrl.planning.ReachState": lambda b, env: (env.reset(seed=0), env.step(0)),
    "craftrl.planning.TabularQ": lambda b, table: table.fit(_states_shown(b), 20),
}


def _episode(x: Any, recording: Any = None) -> Any:
    """An episode as one writes it for a format of one's own; it is cut, so that its length is asked for."""
    return Episode("walk", "1", lambda part: Recording(x[part]) if recording is None else recording, lambda: len(x))


def _agent(x: Any) -> Any:
    return Agent("bob", "walks", [_episode(x)])


def _import_episode(b: Bench, episode: Any) -> Any:
    return import_data([Agent("ann", "walks", [episode]), _agent(b.x[1])], b.new(".h5"), clip=4)


def _summed(executor: Any) -> Any:
    with executor:
        return executor.total([executor.submit(np.sum, np.arange(4))] * 2)


def _quick(oracle: Any) -> Any:
    return oracle if oracle.training is not None else oracle.set_params(training=_few_epochs())


def _fit(b: Bench, oracle: Any, **given: Any) -> Any:
    return CRAFT(oracle, alpha=1, eta=0.2, nu=0.1, **given).fit(b.x, b.tau.agent)


# Objects whose methods are called as well; each call has one of its own.
HELD: dict[str, Callable[[Bench], Any]] = {
    "craftrl.CRAFT": lambda b: copy.deepcopy(b.model),
    "craftrl.TrajectoryDataset": lambda b: b.tau,
    "craftrl.baselines.SingleObservation": lambda b: copy.deepcopy(b.single),
    "craftrl.states.graph.LatentGraph": lambda b: b.graph,
    "craftrl.core.grid.Grid": lambda b: Grid.from_bounds(1, 0.2),
    "craftrl.envs.MarkovPolicy": lambda b: b.world.paper_policies()[0],
    "craftrl.data.ranks.Ranks": lambda b: ALONE,
    "craftrl.deploy.StateModule": lambda b: _state_module(b),
    "craftrl.distributed.LocalExecutor": lambda b: LocalExecutor(),
    "craftrl.distributed.StatesOfShard": lambda b: _states_of_shard(b),
    "craftrl.distributed.forecast.NetworkJob": lambda b: _network_job(),
    "craftrl.planning.Curve": lambda b: Curve.of([(10, 0.1), (20, 0.5), (30, 1.0)]),
    "craftrl.planning.Imitator": lambda b: Imitator(b.model, b.grounding(), _habits(b)),
    "craftrl.planning.Nodes": lambda b: b.moves.nodes,
    "craftrl.planning.Moves": lambda b: b.moves,
    "craftrl.planning.Grounding": lambda b: b.grounding(),
    "craftrl.planning.Planner": lambda b: _planner(b),
    "craftrl.planning.TabularQ": lambda b: _table(b),
    "craftrl.states.latent_actions.LatentActions": lambda b: _latent(),
    "craftrl.theory.CorruptedExample": lambda b: corrupted_example(0.7, 0.3, 0.1),
}


def _states_of_shard(b: Bench) -> Any:
    from craftrl.distributed import read_states

    return read_states(b.encoded)[0]


def _network_job() -> Any:
    from craftrl.distributed.forecast import NetworkJob

    return NetworkJob(10**6, 12288, 2e4)


def _planner(b: Bench) -> Any:
    from craftrl.planning import Planner

    return Planner(b.model, b.grounding())


def _table(b: Bench) -> Any:
    from craftrl.planning import TabularQ

    return TabularQ().fit(_states_shown(b), 20)


def _state_module(b: Bench) -> Any:
    from craftrl.deploy import StateModule

    return StateModule(b.network[0], 2)


# Public names that callers neither call nor build.
_MADE = "a record that the library makes and hands out"
_EXTENDED = "for those who write an oracle; craftrl.testing checks what they write"
RECORDS: dict[str, str] = {
    **dict.fromkeys(
        [
            "craftrl.oracles.Choice",
            "craftrl.theory.Assumptions",
            "craftrl.theory.Attained",
            "craftrl.theory.CorruptedExample",
            "craftrl.theory.SampleSize",
            "craftrl.diagnostics.AgentPairs",
            "craftrl.diagnostics.AgentShares",
            "craftrl.diagnostics.Closure",
            "craftrl.diagnostics.Diagnosis",
            "craftrl.diagnostics.Resamples",
            "craftrl.diagnostics.Residual",
            "craftrl.diagnostics.Subject",
            "craftrl.diagnostics.Sufficiency",
            "craftrl.distributed.StatesOfShard",
            "craftrl.distributed.cost.Estimate",
            "craftrl.envs.Collection",
            "craftrl.data.truth.GroundTruth",
            "craftrl.importing.Inspection",
            "craftrl.planning.Episode",
            "craftrl.planning.Exploration",
            "craftrl.planning.Plan",
            "craftrl.states.agreement.Agreement",
            "craftrl.states.latent_actions.Condition",
            "craftrl.states.latent_actions.LatentActions",
            "craftrl.states.graph.GraphRecovery",
            "craftrl.states.graph.LatentGraph",
        ],
        _MADE,
    ),
    **dict.fromkeys(
        ["craftrl.distributed.forecast.in_bytes", "craftrl.distributed.forecast.in_time"],
        "words of the table, for numbers that are made beside them",
    ),
    **dict.fromkeys(["craftrl.core.grid.Grid", "craftrl.core.grid.Grid.restored"], "Grid.from_bounds makes it"),
    **dict.fromkeys(["craftrl.data.ranks.Ranks.of_first"], "one rank alone gives back what it is given"),
    **dict.fromkeys(["craftrl.envs.MarkovPolicy.probabilities"], "what collect asks of every policy"),
    **dict.fromkeys(["craftrl.oracles.EncoderFit", "craftrl.oracles.LogOdds"], _EXTENDED),
}
