"""Damage to files, drawn from a generator: what disks, transfers and curious people do to them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

__all__ = ["mutate"]

ODD_VALUES: tuple[Any, ...] = (None, True, -1, 0, 1, 2**63, 1e308, float("nan"), "", "x", [], {}, [[]], "../../x", 0.5)


def mutate(path: Path, rng: random.Random) -> str:
    """Damage one file in place; returns what was done, in a word."""
    data = bytearray(path.read_bytes())
    if path.suffix in (".json", ".jsonl") and rng.random() < 0.5:
        return _mutate_json(path, data, rng)
    kinds = {
        "bits": _flip_bits,
        "bytes": _set_bytes,
        "truncated": _truncate,
        "run": _overwrite_run,
        "cut": _cut,
        "inserted": _insert,
        "moved": _move,
    }
    kind = rng.choice(list(kinds))
    path.write_bytes(kinds[kind](data, rng))
    return kind


def _flip_bits(data: bytearray, rng: random.Random) -> bytes:
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def _set_bytes(data: bytearray, rng: random.Random) -> bytes:
    for _ in range(rng.choice([1, 2, 4])):
        data[rng.randrange(len(data))] = rng.choice([0, 0xFF, 0x7F, 0x80, rng.randrange(256)])
    return bytes(data)


def _truncate(data: bytearray, rng: random.Random) -> bytes:
    return bytes(data[: rng.randrange(len(data))])


def _overwrite_run(data: bytearray, rng: random.Random) -> bytes:
    start, length = _run(data, rng)
    filling = rng.choice([b"\0", b"\xff", None])
    data[start : start + length] = filling * length if filling else rng.randbytes(length)
    return bytes(data)


def _cut(data: bytearray, rng: random.Random) -> bytes:
    start, length = _run(data, rng)
    del data[start : start + length]
    return bytes(data)


def _insert(data: bytearray, rng: random.Random) -> bytes:
    start, length = _run(data, rng)
    data[start:start] = rng.randbytes(length)
    return bytes(data)


def _move(data: bytearray, rng: random.Random) -> bytes:
    start, length = _run(data, rng)
    part = data[start : start + length]
    del data[start : start + length]
    place = rng.randrange(len(data) + 1)
    data[place:place] = part
    return bytes(data)


def _run(data: bytearray, rng: random.Random) -> tuple[int, int]:
    length = min(len(data), rng.choice([1, 4, 16, 64, 512]))
    return rng.randrange(len(data) - length + 1), length


def _mutate_json(path: Path, data: bytearray, rng: random.Random) -> str:
    """Valid JSON with one value replaced, removed or doubled."""
    text = data.decode()
    head, _, rest = text.partition("\n") if path.suffix == ".jsonl" else (text, "", "")
    content = json.loads(head)
    places = list(_places(content))
    if not places:
        return "none"
    holder, key = rng.choice(places)
    change = rng.choice(["replaced", "removed", "doubled"])
    if change == "removed":
        del holder[key]
    elif change == "doubled" and isinstance(holder, list):
        holder.insert(key, holder[key])
    else:
        holder[key] = rng.choice(ODD_VALUES)
    path.write_text(json.dumps(content) + ("\n" + rest if rest else "\n"))
    return f"JSON {change}"


def _places(content: Any) -> Any:
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in list(items):
        yield content, key
        yield from _places(value)
