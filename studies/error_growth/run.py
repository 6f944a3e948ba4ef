"""Mislabelled trajectories against h: CRAFT, recursive DRAFT.

Paper: Section 3.1.1
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl import CRAFT, CoordinateOracle
from craftrl.arguments import positive
from craftrl.envs import BitsExBMDP, Collection, ExBMDP, MarkovPolicy, Policy, collect
from craftrl.envs.collection import observe, sample_latent_paths
from craftrl.evaluation import accuracy_by_step
from craftrl.paper import RecursiveDRAFT
from craftrl.paper.sweep import Row, seed_of
from studies.exact import true_bounds
from studies.study import Study
from studies.tables import draw_curves, mean, table
from studies.worlds.policies import staying
from studies.worlds.violations import changed

LEARNERS = {"craft": "CRAFT", "draft": "Recursive DRAFT"}
SCENARIOS = {
    "toy": "the paper's toy world",
    "creeping": "a feature that slowly goes wrong",
    "corrupted": "the same, 0.5% spoilt at h = 2",
}


@dataclass(frozen=True)
class Run:
    """One learner on one dataset."""

    scenario: str
    learner: str
    seed: int
    size: int = 5000
    horizon: int = 20
    n_features: int = 16


def runs(args: argparse.Namespace) -> list[Run]:
    """Both learners in every scenario, on the same data for each seed."""
    return [
        Run(scenario, learner, seed, args.size, args.horizon, args.features)
        for seed in range(args.seeds)
        for scenario in SCENARIOS
        for learner in LEARNERS
    ]


def options(parser: argparse.ArgumentParser) -> None:
    size = "trajectories per agent (default: %(default)s)"
    parser.add_argument("--size", type=positive, default=Run.size, metavar="N", help=size)
    parser.add_argument("--horizon", type=positive, default=Run.horizon, metavar="H", help="default: %(default)s")
    parser.add_argument("--features", type=positive, default=Run.n_features, metavar="M", help="default: %(default)s")


FIRST_SHARE, GROWTH = 0.002, 1.4  # of the trajectories, the slow feature is wrong on FIRST_SHARE * GROWTH^(h-2)
BAD_SHARE = {"toy": 0.0, "creeping": 0.0, "corrupted": 0.005}  # of the trajectories, spoilt by an adversary at h = 2
FLOOR = 1e-4  # what the logarithmic axis still shows


def run_one(run: Run) -> dict[str, Any]:
    """Shares of trajectories at h = 1..H: labelled wrongly or not at all, and not at all.

    The world depends on scenario and seed, the data on all but the learner.
    """
    world, policies, data = sample(run)
    model: CRAFT | RecursiveDRAFT
    if run.learner == "craft":
        model = CRAFT.paper(CoordinateOracle(), **true_bounds(world, policies)).fit(data.tau)
    else:
        model = RecursiveDRAFT(CoordinateOracle()).fit(data.tau)
    wrong = 1 - accuracy_by_step(model.labels_, data.truth.states)
    return {"wrong": wrong.tolist(), "unassigned": (model.labels_ < 0).mean(axis=0).tolist()}


def sample(run: Run) -> tuple[BitsExBMDP, tuple[MarkovPolicy, MarkovPolicy], Collection]:
    """World, agents and data."""
    seed = seed_of("error growth", run.scenario, run.size, run.horizon, run.n_features, run.seed)
    if run.scenario == "toy":
        toy = BitsExBMDP(run.horizon, run.n_features, run.seed)
        return toy, toy.paper_policies(), collect(toy, toy.paper_policies(), run.size, seed)
    world = CreepingExBMDP(run.horizon, run.n_features, run.seed, FIRST_SHARE, GROWTH)
    policies = world.opposed_policies()
    return world, policies, collect_corrupted(world, policies, run.size, BAD_SHARE[run.scenario], seed)


class CreepingExBMDP(BitsExBMDP):
    """The toy world with another adversarial factor: s XOR e^1 is almost the state at first, and goes wrong bit by bit.

    e^1 is 0 at h = 1, switches on once and stays on: Pr(e^1_h = 1) = first_share * growth^(h-2), at most 1/2.

    Suppose that the trajectories with e^1_h = 1 are labelled wrongly at h. Among those labelled s, they come
    from the other state, and the agents' preferences for its successors are the other way round: a classifier of
    the agents at h+1 does better if it is wrong on them, too. So s XOR e^1 beats the true encoder, although it
    is wrong on the newly switched-on trajectories as well, as long as growth < 2 or so. Mistakes do not stay, they
    multiply by `growth`. f_h, trained on all pairs whatever their labels, has no such reason.

    Paper: Section 3.1.1
    """

    def __init__(self, horizon: int, n_features: int, seed: int, first_share: float, growth: float) -> None:
        super().__init__(horizon, n_features, seed)
        h = np.arange(2, self.H + 1)
        self.wrong = np.concatenate([[0.0], np.minimum(first_share * growth ** (h - 2.0), 0.5)])  # Pr(e^1_h = 1)

    def sample_noise(self, n: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        e_1 = super().sample_noise(n, rng)
        e_1[:, 0] = 0
        return e_1

    def step_noise(self, e_h: NDArray[Any], h: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        e_next = super().step_noise(e_h, h, rng)
        now, then = self.wrong[h - 1], self.wrong[h]
        e_next[:, 0] = e_h[:, 0] | (rng.random(len(e_h)) < (then - now) / (1 - now))
        return e_next

    def noise_marginal(self, h: int) -> NDArray[np.floating]:
        marginal = super().noise_marginal(h).copy()
        marginal[0] = self.wrong[h - 1]
        return marginal

    def opposed_policies(self) -> tuple[MarkovPolicy, MarkovPolicy]:
        """Agent A moves to state 0 first and then likes to switch; agent B moves to 1 and likes to stay."""
        return staying(self.H, 0.75, 0.25), staying(self.H, 0.25, 0.75)


def collect_corrupted(world: ExBMDP, policies: Sequence[Policy], n: int, bad_share: float, seed: Any) -> Collection:
    """n trajectories per agent; in a share `bad_share` of each agent's, e^1 is switched on at h = 2 by an adversary.

    The adversary picks them by what they do: in tau_A those in state 1, in tau_B those in state 0. Their states stay as
    they are; only their noise is unlikely. To an encoder that is wrong on them the agents look more different
    than they are.

    Paper: Section 3.1.1, the samples D_bad and D'_bad
    """
    latent_rng, noise_rng = np.random.default_rng(seed).spawn(2)
    paths = [sample_latent_paths(world, policy, n, latent_rng) for policy in policies]
    chosen = [k * n + np.flatnonzero(s[:, 1] == 1 - k)[: round(bad_share * n)] for k, (s, _) in enumerate(paths)]
    bad = np.concatenate(chosen)

    def step_noise(e_h: NDArray[Any], h: int, rng: np.random.Generator) -> NDArray[Any]:
        e_next = world.step_noise(e_h, h, rng)
        e_next[bad, 0] = 1
        return e_next

    return observe(changed(world, step_noise=step_noise), paths, noise_rng)


def report(rows: list[Row]) -> str:
    """Wrong labels at some steps."""
    H = rows[0]["horizon"]
    steps = sorted(h for h in {2, 3, *range(5, H, 5), H} if h <= H)
    at = [{**row, "h": h, "wrong": row["wrong"][h - 1]} for row in rows for h in steps]
    cells = table(at, "scenario learner", "h", lambda of: f"{100 * mean(of, 'wrong'):.2f}")
    return f"Wrong labels, % of the trajectories, mean over seeds.\n\n{cells}"


def draw(rows: list[Row], out: Path) -> None:
    """On a logarithmic axis."""
    points = [
        {"h": h, "seed": row["seed"], "accuracy": max(wrong, FLOOR), **{of: row[of] for of in ("scenario", "learner")}}
        for row in rows
        for h, wrong in enumerate(row["wrong"], start=1)
    ]
    draw_curves(
        points,
        out / "error_growth.png",
        lambda r: SCENARIOS[r["scenario"]],
        lambda r: LEARNERS[r["learner"]],
        "h",
        "step h",
        dict.fromkeys(SCENARIOS.values(), 0.5),
        "labelled wrongly (%)",
        log=True,
    )


STUDY = Study(
    "error-growth", runs, run_one, report, 20, draw=draw, options=options, examples=("--seeds 5 --workers 2",)
)
