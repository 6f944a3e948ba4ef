"""CRAFT's rows that take a GPU, all made anew by one command, several fits at a time on one card.

    python -m studies.on_one_gpu OUT [NAME ...] [--data recordings]

Rows are in OUT/NAME, what a study says in OUT/NAME.log. Stopped and given again, the command goes on from what was
finished. The rows of rivals are not made here.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

__all__ = ["STUDIES", "command"]

FULL = "pixels --preset full --walkers 4 --techniques craft"
CUTS = ("clips", "unequal")
PLANNING = "planning --full --techniques craft --seeds 2 --labels 0 5 10 20 50 100 200 500"
STUDIES = {
    "rooms13": "pixels --preset rooms13 --techniques craft --seeds 3",
    "rooms": "pixels --preset rooms --techniques craft --seeds 3",
    "walkers": "pixels --preset full --walkers 0 4 8 --n 5000 --techniques craft --seeds 3",
    "few-500": f"{FULL} --n 500 --seeds 10",
    "few-1000": f"{FULL} --n 1000 --seeds 10",
    "n": f"{FULL} --n 2000 20000 --seeds 3",
    **{f"{cut}-3x3": f"pixels --preset long --techniques craft --cut {cut} --seeds 3" for cut in CUTS},
    **{f"{cut}-4x4": f"{FULL} --n 5000 --cut {cut} --seeds 3" for cut in CUTS},
    "games": "games --techniques craft --seeds 3",
    **{f"{cut}-games": f"games --techniques craft --cut {cut} --seeds 3" for cut in CUTS},
    **{f"planning-{world}": f"{PLANNING} --worlds {world}" for world in ("pixels", "rooms", "minigrid", "freeway")},
    "ablations": "ablations",
}


def command(name: str, out: Path, data: str) -> list[str]:
    """What is given to `craftrl` for a study."""
    study = STUDIES[name].split()
    recordings = ["--data", data] if study[0] in ("games", "planning") else []
    return ["reproduce", *study, *recordings, "--device", "cuda", "--workers", "1", "--out", str(out / name)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: all of {', '.join(STUDIES)}")
    parser.add_argument("--data", default="results/games-data", help="recordings of games (default: %(default)s)")
    asked = parser.parse_intermixed_args()  # options may stand between the names
    if unknown := sorted(set(asked.names) - set(STUDIES)):
        parser.error(f"Studies are {', '.join(STUDIES)}; {', '.join(unknown)} was given.")
    asked.out.mkdir(parents=True, exist_ok=True)
    names = asked.names or list(STUDIES)
    with ThreadPoolExecutor(len(names)) as pool:
        return int(any(list(pool.map(lambda name: _run(name, asked.out, asked.data), names))))


def _run(name: str, out: Path, data: str) -> int:
    """One study, to its end; its exit code."""
    with (out / f"{name}.log").open("ab") as log:
        said = [sys.executable, "-m", "craftrl", *command(name, out, data)]
        code = subprocess.run(said, env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=log, stderr=log).returncode
    ended = "done" if not code else f"exit code {code}, see {name}.log"
    print(f"{name}: {ended}\n", end="", flush=True)  # in one piece: others speak as well
    return code


if __name__ == "__main__":
    sys.exit(main())
