"""Runs the campaign and prints its tables: python -m campaign --only arguments"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from campaign import arguments, bits, disks, files, kills, memory
from campaign.formats import FORMATS
from campaign.processes import Case, table
from campaign.writers import COMMANDS, ON_RAY

PARTS = ("files", "arguments", "kills", "disks", "memory", "bits")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m campaign",
        description="Damage files, give odd arguments, kill commands, take their disk and memory, compare bits.",
    )
    parser.add_argument("--only", choices=PARTS, help="one of the parts (default: all)")
    parser.add_argument("--files", type=int, default=500, help="damaged files of each format (default 500)")
    parser.add_argument("--first", type=int, default=0, help="first seed of the damage (default 0)")
    parser.add_argument("--formats", nargs="+", choices=list(FORMATS), default=list(FORMATS))
    parser.add_argument("--cases", type=int, metavar="N", help="so many odd arguments, drawn by --first (default: all)")
    parser.add_argument("--part", metavar="NAME", help="odd arguments of one part, as the table calls it")
    parser.add_argument("--kills", type=int, default=5, help="of each command, and as many pairs at once (default 5)")
    parser.add_argument("--kinds", nargs="+", choices=kills.KINDS, default=list(kills.KINDS), help="of disturbances")
    parser.add_argument("--disks", type=int, default=4, help="small disks for each command (default 4)")
    parser.add_argument("--limits", type=int, default=5, help="limits on the memory of each command (default 5)")
    parser.add_argument("--commands", nargs="+", choices=[*COMMANDS, *ON_RAY], default=list(COMMANDS))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/campaign"), help="folder for tables and faults")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    bad = 0
    if args.only in (None, "files"):
        cases = files.damage(args.formats, range(args.first, args.first + args.files), args.workers)
        bad += _report("files", cases, files.FAULTS, files.summary(cases), args.out)
    if args.only in (None, "arguments"):
        cases = [*arguments.argument_cases(), *arguments.command_cases()]
        cases = [case for case in cases if args.part in (None, case["part"])]
        cases = cases if args.cases is None else arguments.some(cases, args.cases, args.first)
        cases = arguments.try_arguments(cases, args.workers)
        bad += _report("arguments", cases, arguments.FAULTS, arguments.summary(cases), args.out)
    if args.only in (None, "kills"):
        cases = _kept(kills.disturb(args.commands, args.kills, args.first, args.kinds), args.out / "kills.jsonl")
        bad += _report("kills", cases, ["fault"], kills.table(cases), args.out)
    if args.only in (None, "disks"):
        cases = _kept(disks.fill(args.commands, args.disks, args.first), args.out / "disks.jsonl")
        bad += _report("disks", cases, disks.FAULTS, table(cases, "command", disks.COLUMNS), args.out)
    if args.only in (None, "memory"):
        cases = _kept(memory.starve(steps=args.limits), args.out / "memory.jsonl")
        bad += _report("memory", cases, memory.FAULTS, table(cases, "command", memory.COLUMNS), args.out)
    if args.only in (None, "bits"):
        cases = _kept(bits.compare(), args.out / "bits.jsonl")
        bad += _report("bits", cases, bits.FAULTS, table(cases, "kind", bits.COLUMNS), args.out)
    return 1 if bad else 0


def _kept(cases: Iterable[Case], path: Path) -> list[Case]:
    """All of them; each is in the file as soon as it is known, for whoever watches or stops the campaign."""
    found = []
    with path.open("w") as file:
        for case in cases:
            found.append(case)
            print(json.dumps(case), file=file, flush=True)
    return found


def _report(name: str, cases: Sequence[Case], faults: Sequence[str], table: str, out: Path) -> int:
    """Print the table; keep it and every fault in the folder."""
    found = [case for case in cases if case["outcome"] in faults]
    (out / f"{name}.md").write_text(table + "\n")
    (out / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")
    print(table)
    print(f"{len(found)} faults of {len(cases)} cases; each is in {out / f'{name}.json'}.")
    return len(found)


if __name__ == "__main__":
    raise SystemExit(main())
