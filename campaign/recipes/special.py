"""What a parameter of one callable is given, where its name alone does not say it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from campaign.bench import Bench
from campaign.recipes.small import (
    coordinate_encoders,
    environment,
    ring,
    tensor,
)
from craftrl.envs import MarkovPolicy
from craftrl.paper import baselines

__all__ = ["SPECIAL"]

SPECIAL: dict[tuple[str, str], Callable[[Bench], Any]] = {
    ("craftrl.CRAFT.fit", "agent"): lambda b: b.tau.agent,
    ("craftrl.CRAFT.diagnose", "agent"): lambda b: b.tau.agent,
    ("craftrl.CRAFT.diagnose", "n_resamples"): lambda b: 1,
    ("craftrl.CRAFT.encode", "h"): lambda b: 2,
    **{(f"craftrl.paper.{name}.fit", "agent"): lambda b: b.tau.agent for name in baselines.__all__},
    ("craftrl.paper.DRAFT.fit", "x"): lambda b: b.x[:, :2],
    ("craftrl.paper.SingleObservation.encode", "h"): lambda b: 2,
    ("craftrl.report.draw_schematic", "path"): lambda b: b.new(".png"),
    ("craftrl.report.check_report", "path"): lambda b: b.new(".html"),
    ("craftrl.report.write_report", "path"): lambda b: b.new(".html"),
    ("craftrl.report.write_report", "x"): lambda b: b.tau,
    ("craftrl.report.write_report", "n_resamples"): lambda b: 0,
    ("craftrl.deploy.StateModule.forward", "x"): lambda b: tensor(b.network[1].at(2)),
    ("craftrl.load", "path"): lambda b: b.saved,
    ("craftrl.CRAFT.encode", "x"): lambda b: b.tau.at(2),
    ("craftrl.paper.SingleObservation.encode", "x"): lambda b: b.tau.at(2),
    ("craftrl.TrajectoryDataset.open", "path"): lambda b: b.stored,
    ("craftrl.TrajectoryDataset.from_episodes", "agents"): lambda b: [list(b.x[:60]), list(b.x[60:])],
    ("craftrl.TrajectoryDataset.select", "agent"): lambda b: b.tau.agent[40:80],
    ("craftrl.TrajectoryDataset.episode", "i"): lambda b: 3,
    ("craftrl.importing.inspect", "path"): lambda b: b.imported,
    ("craftrl.deploy.StateModule", "model"): lambda b: b.network[0],
    ("craftrl.deploy.StateModule", "h"): lambda b: 2,
    ("craftrl.deploy.export_onnx", "model"): lambda b: b.network[0],
    ("craftrl.deploy.export_onnx", "h"): lambda b: 2,
    ("craftrl.deploy.export_onnx", "path"): lambda b: b.new(".onnx"),
    ("craftrl.deploy.render", "model"): lambda b: b.network[0],
    ("craftrl.deploy.render", "tau"): lambda b: b.network[1],
    ("craftrl.deploy.render", "path"): lambda b: b.new(".gif"),
    ("craftrl.planning.Grounding", "graph"): lambda b: b.moves,
    ("craftrl.planning.StateGraph", "counts"): lambda b: b.moves.counts,
    ("craftrl.planning.StateGraph.from_states", "states"): lambda b: b.labels,
    ("craftrl.planning.StateGraph.nodes", "states"): lambda b: b.labels,
    ("craftrl.planning.explore", "steps"): lambda b: 10,
    ("craftrl.planning.find_latent_actions", "counts"): lambda b: ring(),
    ("craftrl.deploy.write_plan", "path"): lambda b: b.new(".gif"),
    ("craftrl.deploy.write_plan", "moves"): lambda b: b.played[0],
    ("craftrl.deploy.write_plan", "episodes"): lambda b: b.played[1],
    ("craftrl.deploy.write_states", "path"): lambda b: b.new(".csv"),
    ("craftrl.data.read_true_states", "path"): lambda b: b.truth,
    ("craftrl.data.DatasetWriter.append", "agent"): lambda b: "alice",
    ("craftrl.data.read_actions", "path"): lambda b: b.truth,
    ("craftrl.envs.record", "path"): lambda b: b.new(),
    ("craftrl.envs.record", "n"): lambda b: 10,
    ("craftrl.envs.collect", "n"): lambda b: 10,
    ("craftrl.envs.MarkovPolicy.look_back", "past"): lambda b: np.zeros((3, 4), dtype=int),
    ("craftrl.envs.GymWorld", "make"): lambda b: environment,
    ("craftrl.envs.GymWorld", "state"): lambda b: lambda env: 0,
    ("craftrl.envs.GymWorld", "n_states"): lambda b: 2,
    ("craftrl.envs.GymWorld", "actions"): lambda b: [0, 1],
    ("craftrl.envs.GymWorld", "agents"): lambda b: (MarkovPolicy([np.full((2, 2), 0.5)] * 3),) * 2,
    ("craftrl.envs.gym.ExBMDPEnv", "render_mode"): lambda b: "rgb_array",
    ("craftrl.evaluation.population_accuracy", "encoders"): lambda b: coordinate_encoders,
    ("craftrl.evaluation.population_state_accuracies", "encoders"): lambda b: coordinate_encoders,
    ("craftrl.evaluation.population_summary", "encoders"): lambda b: coordinate_encoders,
    ("craftrl.evaluation.count_visits", "labels"): lambda b: b.states[:, 1],
    ("craftrl.data.ranks.every", "value"): lambda b: 1,
    ("craftrl.data.ranks.from_first", "function"): lambda b: lambda: 1,
}
