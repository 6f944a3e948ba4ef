"""Runs cases, one per line of standard input; a crash or a hang ends this process and no other.

    python -m campaign.worker KIND FOLDER

It says when it is ready. Each line is then a case as JSON; each answer is a line of JSON with its outcome. Whatever
the library prints goes nowhere.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import warnings
from importlib import import_module
from pathlib import Path

MEMORY = 16 * 2**30  # bytes of address space: a number that is too large must not take the machine down


def main() -> None:
    kind, folder = sys.argv[1], Path(sys.argv[2])
    run_case = import_module(f"campaign.{kind}").run_case
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as answers, open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
        print("ready", file=answers, flush=True)
        for line in sys.stdin:
            print(json.dumps(run_case(json.loads(line), folder)), file=answers, flush=True)


if __name__ == "__main__":
    main()
