"""Damages and reads files, one case per line of standard input; a crash or a hang ends this process and no other.

    python -m campaign.worker FORMAT FOLDER

Each line is a seed; each answer is a line of JSON: the outcome, what was done to the file, and what was said.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import warnings
from pathlib import Path

from campaign.formats import FORMATS
from campaign.mutations import mutate
from craftrl.errors import CraftError

MEMORY = 6 * 2**30  # bytes of address space: a number of trajectories that was damaged must not take the machine down


def main() -> None:
    import resource

    name, folder = sys.argv[1], Path(sys.argv[2])
    form = FORMATS[name]
    whole, damaged = folder / "whole", folder / "damaged"
    if not whole.exists():
        whole.mkdir(parents=True)
        form.make(whole)
    right = form.read(whole)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        rng = random.Random(int(line))
        shutil.rmtree(damaged, ignore_errors=True)
        shutil.copytree(whole, damaged)
        file = rng.choice(sorted(path for path in damaged.rglob("*") if path.is_file()))
        done = mutate(file, rng)
        outcome, said = read(form, damaged, right)
        print(json.dumps({"outcome": outcome, "file": file.name, "done": done, "said": said[:300]}), flush=True)


def read(form, folder, right):  # type: ignore[no-untyped-def]
    """same: as from the whole file; refused: one of our errors; changed: other numbers; foreign: any other error."""
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
