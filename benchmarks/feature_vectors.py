"""Accuracy on feature vectors: positions of an agent and of three walkers, measured with noise.

    python benchmarks/feature_vectors.py --oracle boosting --agents 2 3 --seeds 0 1 2

Eight numbers, of which two matter: the agent walks on 3 x 3 cells beside three walkers that no agent controls, and all
positions have noise of an eighth of a cell. Six steps, `--n` trajectories of each agent, preferences that differ by 1
(alpha). Nothing is told. Rows have the accuracy on 1000 fresh trajectories of each agent, the mean over steps 2 to 6;
the mean and the least of the accuracies of single states at single steps (`state_mean`, `state_worst`; states seen at
least 20 times); what naming one state at every step scores (`chance`); the number of states, of which there are 9 in
all, and 1, 4, 9, 9, 9, 9 with an encoder for each step (`--by-step`). Seconds are the processor's, for the fit alone;
with OMP_NUM_THREADS=1 they are those of one core.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl import CRAFT
from craftrl.envs.collection import collect
from craftrl.envs.pixels import PixelsExBMDP
from craftrl.evaluation import encoder_accuracy, state_accuracies_by_step, state_summary

OUT = Path(__file__).parent / "results" / "feature_vectors.json"
NOISE = 1 / 8
FRESH = 1000


class Positions(PixelsExBMDP):
    """The pixel world's walk, shown as the positions of all figures."""

    obs_dtype = np.dtype(np.float64)

    def __init__(self, seed: int) -> None:
        super().__init__(6, 3, 3, seed=seed)
        self.obs_shape = (8,)

    def emit(self, s: NDArray[Any], e: NDArray[Any], h: int, rng: np.random.Generator) -> NDArray[Any]:
        cells = np.concatenate([s[:, None], e[:, : self.n_walkers]], axis=1)
        return self.plan.cells[cells].reshape(len(s), 8) + rng.normal(0, NOISE, (len(s), 8))


def row(oracle: str, agents: int, seed: int, stationary: bool, n: int) -> dict[str, Any]:
    """One fit."""
    world = Positions(seed)
    policies = world.policies(agents, 1.0, seed)
    seen, fresh = (collect(world, policies, m, np.random.default_rng([seed, k])) for k, m in ((1, n), (2, FRESH)))
    start = time.process_time()
    model = CRAFT(_oracle(oracle), stationary=stationary).fit(seen.tau)
    seconds = time.process_time() - start
    accuracy = encoder_accuracy(model, fresh.tau.at, fresh.truth.states)
    true, found = fresh.truth.states, model.transform(fresh.tau)
    single = state_summary(state_accuracies_by_step(found, true, at_least=20))
    return {
        "oracle": oracle,
        "agents": agents,
        "seed": seed,
        "stationary": stationary,
        "n": n,
        "accuracy": round(100 * float(accuracy[1:].mean()), 1),
        **{name: round(100 * value, 1) for name, value in single.items()},
        "chance": round(100 * float(np.mean([np.bincount(s).max() / len(s) for s in true.T[1:]])), 1),
        "n_states": [model.n_states_total_] if stationary else list(model.n_states_),
        "seconds": round(seconds),
    }


def _oracle(name: str) -> Any:
    if name == "network":
        from craftrl import NeuralOracle

        return NeuralOracle()
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

    return HistGradientBoostingClassifier() if name == "boosting" else RandomForestClassifier()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--oracle", choices=("boosting", "forest", "network"), default="boosting")
    parser.add_argument("--agents", type=int, nargs="+", default=[2, 3])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--by-step", action="store_true", help="an encoder for each step")
    parser.add_argument("--n", type=int, default=3000)
    asked = parser.parse_args()
    for seed in asked.seeds:
        for agents in asked.agents:
            new = row(asked.oracle, agents, seed, not asked.by_step, asked.n)
            print(new, flush=True)
            _keep(new)


def _keep(new: dict[str, Any]) -> None:
    """Into the file of rows, in place of an older one of the same question."""
    question = ("oracle", "agents", "seed", "stationary", "n")
    rows = json.loads(OUT.read_text()) if OUT.exists() else []
    rows = [old for old in rows if any(old[name] != new[name] for name in question)] + [new]
    OUT.write_text(json.dumps(sorted(rows, key=lambda r: [str(r[name]) for name in question]), indent=1) + "\n")


if __name__ == "__main__":
    main()
