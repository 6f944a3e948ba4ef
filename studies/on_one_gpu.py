"""CRAFT's rows that take a GPU, all made anew by one command, several fits at a time on one card.

    python -m studies.on_one_gpu OUT [LANE ...] [--data recordings]

A lane is a list of studies that run one after the other; all lanes run side by side. The first, the longest fit, has
the card when it wants it, and the others fill the gaps: NVIDIA's MPS is started for that, where it is there. Rows are
in OUT/NAME, what a study says in OUT/NAME.log. Stopped and given again, the command goes on from what was finished.
The rows of rivals are not made here: their code has not changed since they were.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

__all__ = ["LANES", "commands"]

LABELS = "0 5 10 20 50 100 200 500"
FULL = "pixels --preset full --techniques craft --bounds true auto"
PLANNING = f"planning --full --techniques craft --seeds 2 --bounds auto --labels {LABELS}"
LANES = {
    "rooms13": {"rooms13": "pixels --preset rooms13 --techniques craft --bounds auto"},
    "rooms": {"rooms": "pixels --preset rooms --techniques craft --bounds auto --seeds 3"},
    "walkers": {"rows": f"{FULL} --walkers 0 4 8 --n 5000 --seeds 3"},
    "few": {"n": f"{FULL} --walkers 4 --n 500 1000 --seeds 10"},
    "games": {
        "games": "games --techniques craft --seeds 3",
        "games-bounds": "games --techniques craft-bounds",
    },
    "planning": {f"planning-{world}": f"{PLANNING} --worlds {world}" for world in ("minigrid", "freeway", "rooms")},
}
ON_THE_CARD = ("--device", "cuda", "--workers", "1")
HIGH, LOW = "0", "1"  # CUDA_MPS_CLIENT_PRIORITY


def commands(lane: str, out: Path, data: str) -> dict[str, list[str]]:
    """The studies of a lane: what is given to `craftrl`, by name."""
    found = {}
    for name, said in LANES[lane].items():
        study = said.split()
        recordings = [] if study[0] == "pixels" else ["--data", data]
        found[name] = ["reproduce", *study, *recordings, *ON_THE_CARD, "--out", str(out / name)]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("lanes", nargs="*", metavar="LANE", help=f"default: all of {', '.join(LANES)}")
    parser.add_argument("--data", default="results/games-data", help="recordings of games (default: %(default)s)")
    asked = parser.parse_args()
    if unknown := sorted(set(asked.lanes) - set(LANES)):
        parser.error(f"Lanes are {', '.join(LANES)}; {', '.join(unknown)} was given.")
    asked.out.mkdir(parents=True, exist_ok=True)
    shared = _share_the_card(asked.out)
    lanes = asked.lanes or list(LANES)
    with ThreadPoolExecutor(len(lanes)) as pool:
        failed = list(pool.map(lambda lane: _run(lane, asked.out, asked.data, shared), lanes))
    return int(any(failed))


def _share_the_card(out: Path) -> dict[str, str]:
    """Start MPS; the environment in which processes use it, empty where it is not there."""
    if shutil.which("nvidia-cuda-mps-control") is None:
        print("There is no MPS here: lanes take turns on the card, and the first is not preferred.", flush=True)
        return {}
    places = {f"CUDA_MPS_{name}_DIRECTORY": str((out / "mps" / name.lower()).resolve()) for name in ("PIPE", "LOG")}
    for place in places.values():
        Path(place).mkdir(parents=True, exist_ok=True)
    subprocess.run(["nvidia-cuda-mps-control", "-d"], env=os.environ | places, check=False)
    return places


def _run(lane: str, out: Path, data: str, shared: dict[str, str]) -> int:
    """The studies of one lane; how many failed."""
    priority = HIGH if lane == next(iter(LANES)) else LOW
    env = os.environ | shared | {"CUDA_MPS_CLIENT_PRIORITY": priority, "OMP_NUM_THREADS": "1"}
    failed = 0
    for name, said in commands(lane, out, data).items():
        with (out / f"{name}.log").open("ab") as log:
            code = subprocess.run([sys.executable, "-m", "craftrl", *said], env=env, stdout=log, stderr=log).returncode
        ended = "done" if not code else f"exit code {code}, see {name}.log"
        print(f"{name}: {ended}\n", end="", flush=True)  # in one piece: other lanes speak as well
        failed += code != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
