"""How far the verdict on networks can be trusted: right models and wrong ones, beside what `diagnose` says of them.

    PYTHONPATH=. python benchmarks/network_trust.py --models fits  # an hour on a CPU; fits and rows are kept

Small worlds of feature vectors and images, with too few videos and with enough, agents that act alike at one step or
everywhere, and trajectories that are clips from anywhere. Then faults are planted in the models that are right: states
fused, split by noise, misread, or replaced by those of a walker that nobody controls. A model is wrong if a state of at
least 1% of the observations is misread in more than 5% of them.

Seeds below 10 are for setting thresholds ("calibration"); those from 10 on decide nothing ("check").
"""

from __future__ import annotations

import argparse
import copy
import json
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from measuring import RESULTS, write_rows
from numpy.typing import NDArray

import craftrl
from craftrl import CRAFT, AssumptionWarning, NeuralOracle, Training
from craftrl.core.encoders import encode_dataset
from craftrl.envs.agents import MarkovPolicy
from craftrl.envs.collection import Collection, collect
from craftrl.envs.pixels import PixelsExBMDP
from craftrl.estimators.base import ByStep
from craftrl.evaluation import accuracy, state_accuracies
from studies.rivals import cut

Ints = NDArray[np.integer]
RIGHT = 0.95  # of the observations of every state
Reader = Callable[[NDArray[Any]], Ints]


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
    "two states fused",
    "a rare state fused",
    "one state split by a walker",
    "two states swapped by a walker",
    "a walker in place of states",
    "5% drawn at random",
    "10% drawn at random",
    "20% drawn at random",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, default=Path("results/trust"), help="folder in which fits are kept")
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
    for worlds in dict.fromkeys(row["worlds"] for row in rows):
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
    for fault, reader in planted(model, world).items():
        yield {"kind": kind, "n": n, "seed": seed, "fault": fault, **judged(with_reader(model, reader, data), data)}


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
    codes, states = (part.ravel() for part in (encode_dataset(tuple(model.encoders_), data.tau), data.truth.states))
    told = found.sufficiency
    assert told is not None
    return {
        "verdict": found.verdict,
        "score": rounded(found.score),
        "accuracy": rounded(accuracy(codes, states)),
        "worst state": rounded(float(state_accuracies(codes, states, len(states) // 100).min(initial=1.0))),
        "found": int(codes.max()) + 1,
        "true": len(np.unique(states)),
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


def rounded(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), 4)


# -- faults --------------------------------------------------------------------------------------------------------


class Faulty:
    """An encoder that reads what another one should, and embeds as that one does."""

    def __init__(self, reader: Reader, encoder: Any) -> None:
        self.reader, self.embed = reader, encoder.embed

    def __call__(self, x: NDArray[Any]) -> Ints:
        return np.asarray(self.reader(x), dtype=np.int64)


def with_reader(model: CRAFT, reader: Reader, data: Collection) -> CRAFT:
    """The model as if `fit` had found these states."""
    other, H = copy.copy(model), data.tau.H
    other.encoder_ = Faulty(reader, model.encoder_)
    other.encoders_ = ByStep([other.encoder_] * H)
    other.labels_ = encode_dataset(tuple(other.encoders_), data.tau)
    other.n_states_ = ByStep([len(np.unique(column)) for column in other.labels_.T])
    return other


def planted(model: CRAFT, world: PixelsExBMDP) -> dict[str, Reader]:
    own = model.encoder_
    visits = np.bincount(model.labels_.ravel())
    first, second, *_, rare = np.argsort(-visits)[: (visits > 0).sum()]

    def walker(x: NDArray[Any]) -> Ints:
        return world.phi_e(np.clip(x, 0, 255), 1)[:, 0]

    def odd(x: NDArray[Any]) -> NDArray[np.bool_]:
        return walker(x) % 2 == 1

    def fused(x: NDArray[Any]) -> Ints:
        return np.where(own(x) == second, first, own(x))

    def fused_with_a_rare_one(x: NDArray[Any]) -> Ints:
        return np.where(own(x) == rare, first, own(x))

    def split(x: NDArray[Any]) -> Ints:
        return np.where((own(x) == first) & odd(x), len(visits), own(x))

    def swapped(x: NDArray[Any]) -> Ints:
        s = own(x)
        return np.where(odd(x) & (s == first), second, np.where(odd(x) & (s == second), first, s))

    def misread(share: float) -> Reader:
        def reader(x: NDArray[Any]) -> Ints:
            drawn = np.array([zlib.crc32(one.tobytes()) for one in x])  # the same for the same observation
            return np.where(drawn % 1000 < 1000 * share, drawn // 1000 % len(visits), own(x))

        return reader

    readers = fused, fused_with_a_rare_one, split, swapped, walker, misread(0.05), misread(0.1), misread(0.2)
    return dict(zip(FAULTS, readers, strict=True))


if __name__ == "__main__":
    main()
