"""Runs the campaign and prints its tables: python -m campaign files"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path

from campaign import calls, commands, disturb, files
from campaign.bench import Bench
from campaign.cases import Case, answers, table

FAULTS = ("foreign", "nonsense", "changed", "fault", "hang", "crash")
KILLS = ("kill", "interrupt", "terminate", "pair")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m campaign", description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parts = ("files", "arguments", "commands", "kills", "disks", "memory", "bits")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(parts)} (default: all)")
    parser.add_argument("--rounds", type=int, default=4, help="of each command; damaged files: 100 times as many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these formats, callables or commands")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/campaign"), help="folder of the cases")
    args = parser.parse_args()
    if unknown := sorted(set(args.parts) - set(parts)):
        parser.error(f"parts are {', '.join(parts)}; {', '.join(unknown)} was given")
    args.out.mkdir(parents=True, exist_ok=True)
    return int(sum(_report(name, cases(name, args), args.out) for name in args.parts or parts) > 0)


def cases(part: str, args: argparse.Namespace) -> Iterable[Case]:
    """The cases of one part with their outcomes."""
    if part == "files":
        seeds = range(100 * args.seed, 100 * (args.seed + args.rounds))
        asked = [{"format": name, "seed": seed} for name in args.only or files.FORMATS for seed in seeds]
        return answers(files.run_case, asked, args.workers, 300.0)
    if part in ("arguments", "commands"):
        with tempfile.TemporaryDirectory() as folder:
            asked = calls.cases(Bench(Path(folder))) if part == "arguments" else commands.cases()
        asked = [case for case in asked if not args.only or case["call"] in args.only]
        return answers((calls if part == "arguments" else commands).run_case, asked, args.workers, 20.0)
    if part == "bits":
        return disturb.bits(args.only)
    kinds = {"kills": KILLS, "disks": ("no room",), "memory": ("memory",)}[part]
    return disturb.disturb(kinds, args.only, args.rounds, args.seed)


def _report(name: str, found: Iterable[Case], out: Path) -> int:
    """Print the table and keep every case, each as soon as it is known."""
    known = []
    with (out / f"{name}.jsonl").open("w") as file:
        for case in found:
            known.append(case)
            print(json.dumps(case), file=file, flush=True)
    bad = sum(case["outcome"] in FAULTS for case in known)
    print(table(known, next(iter(known[0]))))
    print(f"{name}: {bad} faults of {len(known)} cases; each is in {out / f'{name}.jsonl'}.")
    return bad


if __name__ == "__main__":
    raise SystemExit(main())
