"""How much memory observations may take: a number of bytes, a text such as "4GB", or a share of the machine's."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

import torch

from craftrl.arguments import is_number

__all__ = ["allowed_bytes", "to_bytes"]

UNITS = {"": 1, "b": 1} | {f"{p}b": 1000**i for i, p in enumerate("kmgt", 1)} | {
    f"{p}ib": 1024**i for i, p in enumerate("kmgt", 1)
}  # fmt: skip
SHARE = 0.25  # of the machine's memory, and of a GPU's
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of a container


def to_bytes(value: object) -> int | None:
    """4000, "4000", "4 kB", "4GB" (1000s) or "4GiB" (1024s) as a positive number of bytes; None for anything else."""
    found = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*([a-z]*)", str(value).strip().lower())
    if not (isinstance(value, str) or is_number(value)) or found is None or found[2] not in UNITS:
        return None
    n_bytes = float(found[1]) * UNITS[found[2]]
    return int(n_bytes) if 1 <= n_bytes < math.inf else None


def allowed_bytes(memory: int | str | None, device: torch.device) -> int:
    """What `Training(memory=...)` allows; None for a quarter of the memory of the machine, or of the GPU if less.

    It is a share of all memory rather than of what is free now, so that a run that is started again has the same
    allowance, and with it the same order of minibatches.
    """
    if memory is not None:
        given = to_bytes(memory)
        assert given is not None, "Training has checked it"
        return given
    total = _machine_bytes()
    if device.type == "cuda":
        total = min(total, torch.cuda.get_device_properties(device).total_memory)
    return _rounded(int(SHARE * total))


def _machine_bytes() -> int:
    """The memory of this machine, or of the container that we run in."""
    sizes = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for path in map(Path, LIMITS):
        if path.is_file() and (limit := path.read_text().strip()).isdigit():
            sizes.append(int(limit))
    return min(sizes)


def _rounded(n_bytes: int) -> int:
    """Down to whole GiB, or 64 MiB: what a kernel keeps for itself differs a little from start to start."""
    unit = 2**30 if n_bytes >= 2**30 else 2**26
    return max(unit, n_bytes // unit * unit)
