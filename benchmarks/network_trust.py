"""How far the verdict on networks can be trusted: right models and wrong ones, beside what `diagnose` says of them.

    python benchmarks/network_trust.py --models fits     # an hour or two on a CPU; fits and rows are kept as they come

Small worlds of feature vectors and images, with too few videos and with enough, agents that act alike at one step or
everywhere, and trajectories that are clips from anywhere. Then faults are planted in the models that are right: states
fused, split by noise, misread, or replaced by those of a walker that nobody controls. A model is wrong if a state that
at least 1% of the observations of a step are of is misread in more than 5% of them.

Thresholds were set on the worlds "calibration" (seeds 0 to 2); those called "check" decided nothing (seeds 10 and up).
"""

from __future__ import annotations

import argparse
import copy
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from measuring import RESULTS, write_rows
from numpy.typing import NDArray

import craftrl
from craftrl import CRAFT, AssumptionWarning, NeuralOracle, Training
from craftrl.core.encoders import encode_dataset
from craftrl.envs.collection import Collection, collect
from craftrl.envs.pixels import PixelsExBMDP
from craftrl.envs.policies import MarkovPolicy
from craftrl.estimators.base import ByStep
from craftrl.states.accuracy import accuracy_by_step, state_accuracies
from studies.rivals import cut

Ints = NDArray[np.integer]
RIGHT = 0.95  # of the observations of every state
Reader = Callable[[NDArray[Any], int], Ints]


class Positions(PixelsExBMDP):
    """Feature vectors: rows and columns of the agent's cell and of the walkers', with noise of an eighth of a cell."""

    obs_dtype = np.dtype(np.float64)

    def __init__(self, horizon: int, size: int, n_walkers: int, seed: int = 0) -> None:
        super().__init__(horizon, size, n_walkers, seed=seed)
        self.obs_shape = (2 * (n_walkers + 1),)

    def emit(self, s_h: Any, e_h: Any, h: int, rng: np.random.Generator) -> Any:
        cells = np.column_stack([s_h, e_h[:, : self.n_walkers]])
        return self.plan.cells[cells].reshape(len(s_h), -1) + rng.normal(0, 1 / 8, (len(s_h), *self.obs_shape))

    def phi_e(self, x_h: NDArray[Any], h: int) -> NDArray[np.int64]:
        place = np.clip(np.rint(x_h[:, 2:]), 0, self.size - 1).astype(np.int64).reshape(len(x_h), -1, 2)
        return place[..., 0] * self.size + place[..., 1]


def alike_at_third_step(policies: tuple[MarkovPolicy, ...]) -> tuple[MarkovPolicy, ...]:
    one, other = policies
    return one, MarkovPolicy([*other.tables[:2], one.tables[2], *other.tables[3:]])


# The world, how its agents differ from the usual two, and how its trajectories are cut.
KINDS: dict[str, dict[str, Any]] = {
    "features 2x2": {"world": (Positions, 4, 2, 2)},
    "features 3x3": {"world": (Positions, 6, 3, 3)},
    "images 2x2": {"world": (PixelsExBMDP, 4, 2, 1)},
    "images 3x3": {"world": (PixelsExBMDP, 6, 3, 2)},
    "images 3x3, compass": {"world": (PixelsExBMDP, 5, 3, 1), "agents": {"style": "compass"}},
    "images 3x3, clips": {"world": (PixelsExBMDP, 12, 3, 4), "cut": "clips"},
    "images 4x4": {"world": (PixelsExBMDP, 8, 4, 4)},
    "three agents": {"world": (Positions, 4, 2, 2), "agents": {"n_agents": 3, "alpha": 1.5}},
    "alike at one step": {"world": (Positions, 5, 2, 2), "change": alike_at_third_step},
    "alike everywhere": {"world": (Positions, 4, 2, 2), "change": lambda policies: (policies[0], policies[0])},
}
CALIBRATION = [
    *(("features 2x2", n) for n in (60, 200, 600)),
    *(("images 2x2", n) for n in (100, 300, 600)),
    *(("features 3x3", n) for n in (300, 1000)),
    *(("images 3x3", n) for n in (200, 500)),
]
CHECK = [
    *(("features 2x2", n) for n in (150, 300, 800)),
    *(("features 3x3", n) for n in (400, 1200)),
    *(("three agents", n) for n in (300, 800)),
    ("alike everywhere", 600),
    ("alike at one step", 800),
    *(("images 2x2", n) for n in (150, 400, 800)),
    ("images 3x3", 300),
    ("images 3x3, compass", 800),
    ("images 3x3, clips", 800),
    ("images 4x4", 800),
]


FAULTS = (
    "two states fused at one step",
    "a rare state fused at one step",
    "two states fused at every step",
    "one state split by a walker at every step",
    "one state split by a walker at the last step",
    "two states swapped by a walker",
    "a walker at every step",
    "a walker at one step",
    "a walker at the last step",
    "5% drawn at random",
    "10% drawn at random",
    "20% drawn at random",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, required=True, help="folder in which fits are kept")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 10, 11], help="below 10: calibration")
    parser.add_argument("--kept", action="store_true", help="only those whose fits are there already")
    parser.add_argument("--table", action="store_true", help="fit nothing: count the rows that are there")
    parser.add_argument("--name", default="network_trust", help="of the file of results")
    args = parser.parse_args()
    if args.table:
        print(*counted(json.loads((RESULTS / f"{args.name}.json").read_text())["rows"]), sep="\n")
        return
    rows: list[dict[str, Any]] = []
    for seed in args.seeds:
        for kind, n in CALIBRATION if seed < 10 else CHECK:
            folder = args.models / f"{kind.replace(', ', '-').replace(' ', '-')}_{n}_{seed}"
            if args.kept and not folder.exists():
                continue
            for row in measured(kind, n, seed, folder):
                print(row, flush=True)
                rows.append({"worlds": "calibration" if seed < 10 else "check", **row})
            write_rows(args.name, rows)


def counted(rows: list[dict[str, Any]]) -> Iterator[str]:
    """How often each verdict was given, as a table in Markdown."""
    yield "| worlds | models | trust | check | do not trust |"
    yield "|---|---|---|---|---|"
    for worlds in ("calibration", "check"):
        fits = [row for row in rows if row["worlds"] == worlds and not row["fault"]]
        wrong = [row for row in fits if row["worst state"] < RIGHT]
        groups = {
            "right": [row for row in fits if row["worst state"] >= RIGHT],
            "nearly right": [row for row in wrong if row["accuracy"] >= RIGHT and not row["at chance"]],
            "wrong": [row for row in wrong if row["accuracy"] < RIGHT and not row["at chance"]],
            "wrong, log-odds at chance": [row for row in wrong if row["at chance"]],
        }
        planted_ones = [row for row in rows if row["worlds"] == worlds and row["fault"]]
        groups |= {fault: [r for r in planted_ones if r["fault"] == fault] for fault in dict.fromkeys(FAULTS)}
        for name, those in groups.items():
            says = [row["verdict"] for row in those]
            counts = " | ".join(str(says.count(verdict)) for verdict in ("trust", "check", "do not trust"))
            yield f"| {worlds} | {name}: {len(those)} | {counts} |"


def measured(kind: str, n: int, seed: int, folder: Path) -> Iterator[dict[str, Any]]:
    """What is said of one model, and of the same with faults if it is right."""
    world, data = collected(kind, n, seed)
    if not folder.exists():
        fitted(data, seed).save(folder)
    model = craftrl.load(folder)
    row = judged(model, data)
    yield {"kind": kind, "n": n, "seed": seed, "fault": "", **row}
    if row["worst state"] < RIGHT:
        return
    for fault, readers in planted(model, world, data).items():
        yield {"kind": kind, "n": n, "seed": seed, "fault": fault, **judged(with_readers(model, readers), data)}


def collected(kind: str, n: int, seed: int) -> tuple[PixelsExBMDP, Collection]:
    make, *sizes = KINDS[kind]["world"]
    world = make(*sizes, seed=seed)
    policies = KINDS[kind].get("change", tuple)(world.policies(seed=seed, **KINDS[kind].get("agents", {})))
    return world, cut(collect(world, policies, n, seed=seed), KINDS[kind].get("cut", "whole"), seed)


def fitted(data: Collection, seed: int) -> CRAFT:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        return CRAFT(NeuralOracle(training=Training(seed=seed))).fit(data.tau)


def judged(model: CRAFT, data: Collection) -> dict[str, Any]:
    start = time.process_time()
    found = model.diagnose(data.tau, n_resamples=0)
    seconds = time.process_time() - start
    codes = encode_dataset(tuple(model.encoders_), data.tau)
    told = found.sufficiency
    assert told is not None
    return {
        "verdict": found.verdict,
        "score": rounded(found.score),
        "accuracy": rounded(accuracy_by_step(codes, data.truth.states).mean()),
        "worst state": rounded(worst_state(codes, data.truth.states)),
        "at chance": found.at_chance,
        "share": rounded(told.share),
        "error": rounded(told.error),
        "closed": rounded(told.closed.min()),
        "look like two": len(told.two),
        "look like one": len(told.one),
        "read": rounded(told.read),
        "warnings": len(found.warnings),
        "CPU seconds": rounded(seconds),
    }


def worst_state(codes: Ints, states: Ints) -> float:
    least = max(1, len(states) // 100)
    return min(float(state_accuracies(c, s, least).min(initial=1.0)) for c, s in zip(codes.T, states.T))


def rounded(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), 4)


# -- faults --------------------------------------------------------------------------------------------------------


class AtStep:
    """A reader as the encoder of one step."""

    def __init__(self, reader: Reader, h: int) -> None:
        self.reader, self.h = reader, h

    def __call__(self, x: NDArray[Any]) -> Ints:
        return np.asarray(self.reader(x, self.h), dtype=np.int64)


def with_readers(model: CRAFT, readers: dict[int, Reader]) -> CRAFT:
    """The model with others' encoders at these steps."""
    other = copy.copy(model)
    steps = range(1, len(model.encoders_) + 1)
    other.encoders_ = ByStep([AtStep(readers[h], h) if h in readers else model.encoders_[h] for h in steps])
    return other


def planted(model: CRAFT, world: PixelsExBMDP, data: Collection) -> dict[str, dict[int, Reader]]:
    H = data.tau.H
    later, middle = range(2, H + 1), 1 + H // 2
    by_visits = {h: np.argsort(-np.bincount(model.encoders_[h](data.tau.at(h)))) for h in later}
    above = 1 + max(map(max, by_visits.values()))

    def own(x: NDArray[Any], h: int) -> Ints:
        return model.encoders_[h](x)

    def fused(x: NDArray[Any], h: int) -> Ints:
        return np.where(own(x, h) == by_visits[h][1], by_visits[h][0], own(x, h))

    def fused_with_a_rare_one(x: NDArray[Any], h: int) -> Ints:
        rare = next(s for s in by_visits[h][::-1] if (own(x, h) == s).any())
        return np.where(own(x, h) == rare, by_visits[h][0], own(x, h))

    def walker(x: NDArray[Any], h: int) -> Ints:
        return world.phi_e(x, h)[:, 0]

    def split(x: NDArray[Any], h: int) -> Ints:
        return np.where((own(x, h) == by_visits[h][0]) & (walker(x, h) % 2 == 1), above, own(x, h))

    def swapped(x: NDArray[Any], h: int) -> Ints:
        a, b = by_visits[h][:2]
        s, odd = own(x, h), walker(x, h) % 2 == 1
        return np.where(odd & (s == a), b, np.where(odd & (s == b), a, s))

    def misread(share: float) -> Reader:
        def reader(x: NDArray[Any], h: int) -> Ints:
            rng = np.random.default_rng(h)
            s = own(x, h)
            return np.where(rng.random(len(s)) < share, rng.permutation(s), s)

        return reader

    faults: list[dict[int, Reader]] = [
        {middle: fused},
        {middle: fused_with_a_rare_one},
        dict.fromkeys(later, fused),
        dict.fromkeys(later, split),
        {H: split},
        dict.fromkeys(later, swapped),
        dict.fromkeys(later, walker),
        {middle: walker},
        {H: walker},
        dict.fromkeys(later, misread(0.05)),
        dict.fromkeys(later, misread(0.1)),
        dict.fromkeys(later, misread(0.2)),
    ]
    return dict(zip(FAULTS, faults, strict=True))


if __name__ == "__main__":
    main()
