"""Damages and reads files, one case per line of standard input; a crash or a hang ends this process and no other.

    python -m campaign.worker FOLDER

Each line is a seed and the name of a format; each answer is a line of JSON: the outcome, what was done to which file,
and what was said.
"""

from __future__ import annotations

import json
import random
import resource
import shutil
import sys
import warnings
from functools import cache
from pathlib import Path

from campaign.formats import FORMATS, Format
from campaign.mutations import mutate
from craftrl.errors import CraftError

MEMORY = 16 * 2**30  # bytes of address space: a damaged number of trajectories must not take the machine down


def main() -> None:
    folder = Path(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        seed, name = line.rstrip("\n").split(" ", 1)
        print(json.dumps(_case(name, int(seed), folder)), flush=True)


def _case(name: str, seed: int, folder: Path) -> dict[str, str]:
    rng = random.Random(seed)
    place = folder / name
    right = _whole(name, place)
    damaged = place / "damaged"
    shutil.rmtree(damaged, ignore_errors=True)
    shutil.copytree(place / "whole", damaged)
    file = rng.choice(sorted(path for path in damaged.rglob("*") if path.is_file()))
    done = mutate(file, rng)
    outcome, said = _outcome(FORMATS[name], damaged, right)
    return {"outcome": outcome, "file": file.name, "done": done, "said": said[:300]}


@cache
def _whole(name: str, place: Path) -> str:
    """Makes the files of a format where they are not there yet; what a user sees in them."""
    if not (place / "whole").exists():
        (place / "whole").mkdir(parents=True)
        FORMATS[name].make(place / "whole")
    return FORMATS[name].read(place / "whole")


def _outcome(form: Format, folder: Path, right: str) -> tuple[str, str]:
    """same: as from the whole file; refused: one of our errors; foreign: any other error; changed, or read where
    nothing protects a file of others: other numbers."""
    try:
        got = form.read(folder)
    except CraftError as error:
        return "refused", str(error)
    except Exception as error:
        return "foreign", f"{type(error).__name__}: {error}"
    if got == right:
        return "same", ""
    return ("changed" if form.sealed else "read"), ""


if __name__ == "__main__":
    main()
