"""Runs the campaign and prints its table: python -m campaign --files 2000"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from campaign.files import FAULTS, damage, table
from campaign.formats import FORMATS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m campaign", description="Damage every kind of file that is read.")
    parser.add_argument("--files", type=int, default=500, help="damaged files of each format (default 500)")
    parser.add_argument("--first", type=int, default=0, help="first seed (default 0)")
    parser.add_argument("--formats", nargs="+", choices=list(FORMATS), default=list(FORMATS))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--out", type=Path, default=Path("results/campaign"), help="folder for table.md and faults.json"
    )
    args = parser.parse_args()
    cases = damage(args.formats, range(args.first, args.first + args.files), args.workers)
    faults = [case for case in cases if case["outcome"] in FAULTS]
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "table.md").write_text(table(cases) + "\n")
    (args.out / "faults.json").write_text(json.dumps(faults, indent=1) + "\n")
    print(table(cases))
    print(f"{len(faults)} faults of {len(cases)} files; each is in {args.out / 'faults.json'} with its seed.")
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
