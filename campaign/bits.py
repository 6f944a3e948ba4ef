"""The same bits for any number of workers and threads: every kind of fit, studies and encodes.

Each is done with one thread in one worker, and again with others; what is saved must be the same, byte for byte, except
for how long things took. Threads are asked for as users do, by the environment (`LIMITS`), before anything is imported.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from campaign.processes import Case
from campaign.writers import ROOT, contents

__all__ = ["COLUMNS", "FAULTS", "KINDS", "compare"]

FAULTS = ("different", "failed")
COLUMNS = ("same", *FAULTS)
LIMITS = (
    "CRAFTRL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
)
THREADS = (1, 2, 4)
WORKERS = (1, 2, 3)


def compare(kinds: Sequence[str] | None = None) -> Iterator[Case]:
    """Every kind with every number of threads, and with every number of workers where it has some."""
    for kind in kinds or KINDS:
        with tempfile.TemporaryDirectory() as place:
            first: dict[str, str] = {}
            for threads, workers in _numbers(kind):
                out = Path(place) / f"{threads}-{workers}"
                said = _made(kind, threads, workers, out)
                now = contents(out) if not said else {}
                first = first or now
                outcome = "failed" if said else "same" if now == first else "different"
                other = [name for name in {**now, **first} if now.get(name) != first.get(name)]
                case = {"kind": kind, "threads": threads, "workers": workers, "outcome": outcome}
                yield {**case, "said": said or ", ".join(other)}


def _numbers(kind: str) -> list[tuple[int, int]]:
    several = kind in IN_WORKERS
    return [(t, 1) for t in THREADS] + [(1, w) for w in WORKERS[1:] if several]


def _made(kind: str, threads: int, workers: int, out: Path) -> str:
    """Make it in a process of its own; what it said if that failed."""
    env = {**os.environ, **dict.fromkeys(LIMITS, str(threads))}
    env["PYTHONPATH"] = f"{ROOT / 'src'}{os.pathsep}{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    line = [sys.executable, "-m", "campaign.bits", kind, str(workers), str(out)]
    done = subprocess.run(line, env=env, cwd=ROOT, capture_output=True, text=True)
    return "" if done.returncode == 0 else f"exit {done.returncode}: {done.stderr[-600:]}"


# -- what is made --------------------------------------------------------------------------------------------------


def _data(agents: int = 2) -> Any:
    from craftrl.envs import BitsExBMDP, collect

    world = BitsExBMDP(horizon=6, n_features=24, seed=0)
    one, two = world.paper_policies()
    return collect(world, [one, two, one, two][:agents], 400, seed=0).tau


def _exact(agents: int = 2, **given: Any) -> Callable[[Path, int], None]:
    def make(out: Path, workers: int) -> None:
        from craftrl import CRAFT, CoordinateOracle

        CRAFT(CoordinateOracle(), **given).fit(_data(agents)).save(out)

    return make


def _single(out: Path, workers: int) -> None:
    from craftrl import CoordinateOracle
    from craftrl.paper import SingleObservation

    SingleObservation(CoordinateOracle()).fit(_data()).save(out)


def _trees(out: Path, workers: int) -> None:
    """Boosted trees, as `craftrl fit` takes them for features: what they learned and read. Their files hold dates."""
    import numpy as np

    from craftrl import CRAFT, TrajectoryDataset

    tau, rng = _data(), np.random.default_rng(0)
    x = np.stack([tau.at(h) for h in range(1, 5)], axis=1)[:, :, :8]
    noisy = (x + 0.1 * rng.standard_normal(x.shape)).astype(np.float32)
    data = TrajectoryDataset.from_arrays([noisy[tau.agent == k][:200] for k in range(2)])
    model = CRAFT("classifier", alpha=1, eta=0.2, nu=0.1).fit(data)
    out.mkdir()
    np.savez(out / "learned.npz", labels=model.labels_, read=model.transform(data), states=list(model.n_states_))


def _network(out: Path, workers: int) -> None:
    from campaign.formats import fitted

    fitted("network")[0].save(out)


def _command(*words: str) -> Callable[[Path, int], None]:
    def make(out: Path, workers: int) -> None:
        from craftrl.cli import main

        if main([*words, "--workers", str(workers), "--out", str(out / "new")]):
            raise RuntimeError("the command failed")

    return make


def _encode(out: Path, workers: int) -> None:
    from craftrl import CRAFT, CoordinateOracle
    from craftrl.deploy.tables import write_states

    tau = _data()
    model = CRAFT(CoordinateOracle(), alpha=1, eta=0.2, nu=0.1).fit(tau)
    write_states(out / "states.npz", model.transform(tau), tau.agent)


def _together(**parts: Callable[[Path, int], None]) -> Callable[[Path, int], None]:
    """Several things in one process: to import and compile takes longer than all of them."""

    def make(out: Path, workers: int) -> None:
        for name, part in parts.items():
            part(out / name, workers)

    return make


KINDS: dict[str, Callable[[Path, int], None]] = {
    "exact fits": _together(
        independent=_exact(coupling="independent"),
        chain=_exact(coupling="chain"),
        markov=_exact(coupling="markov"),
        given=_exact(alpha=1, eta=0.2, nu=0.1),
        agents=_exact(agents=4),
        single=_single,
        states=_encode,
    ),
    "classifier": _trees,
    "network": _network,
    "study": _command("reproduce", "table1", "--seeds", "1", "--horizon", "4", "--features", "8", "--quiet"),
    "collect": _command("collect", "--world", "minigrid", "--horizon", "4", "--n", "6"),
}
IN_WORKERS = ("study", "collect")


if __name__ == "__main__":
    folder = Path(sys.argv[3])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        KINDS[sys.argv[1]](folder, int(sys.argv[2]))
