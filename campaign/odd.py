"""Odd values: what a parameter may be given by mistake, out of curiosity, or by a program that went wrong."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["ODD", "ODD_ADDRESSES", "ODD_PATHS", "ODD_TEXTS", "OwnError", "make_odd_paths"]


class OwnError(Exception):
    """Raised by a function of the caller's; it may pass through with its traceback, for that is where to look."""


def _raises(*given: Any, **named: Any) -> Any:
    raise OwnError


class _Plain:
    """A class where an instance is meant."""


def _endless() -> list[Any]:
    out: list[Any] = []
    out.append(out)
    return out


def _tensor() -> Any:
    import torch

    return torch.ones(2, requires_grad=True)


ODD: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "-1": lambda: -1,
    "0": lambda: 0,
    "1.5": lambda: 1.5,
    "2**63": lambda: 2**63,
    "10**400": lambda: 10**400,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "1e308": lambda: 1e308,
    "5e-324": lambda: 5e-324,
    "1j": lambda: 1j,
    "decimal": lambda: Decimal("0.3"),
    "fraction": lambda: Fraction(1, 3),
    "empty text": lambda: "",
    "text": lambda: "x",
    "NUL": lambda: "\0",
    "bytes": lambda: b"x",
    "empty list": lambda: [],
    "list of None": lambda: [None, None],
    "list of texts": lambda: ["a", "b"],
    "nested list": lambda: [[1], [2, 3]],
    "a list that holds itself": lambda: _endless(),
    "empty dict": lambda: {},
    "dict": lambda: {"x": 1},
    "set": lambda: {1},
    "generator": lambda: (i for i in (1, 2)),
    "object": lambda: object(),
    "class": lambda: _Plain,
    "number class": lambda: int,
    "function": lambda: lambda *given: None,
    "raising function": lambda: _raises,
    "array of none": lambda: np.zeros(0),
    "array (0, 3)": lambda: np.zeros((0, 3)),
    "array of one": lambda: np.array([1]),
    "array without axes": lambda: np.array(1.0),
    "array (2, 2, 2)": lambda: np.zeros((2, 2, 2), dtype=int),
    "array (2, 3, 0)": lambda: np.zeros((2, 3, 0), dtype=int),
    "array of NaN": lambda: np.full((4, 2), np.nan),
    "array of flags": lambda: np.array([True, False]),
    "array of huge integers": lambda: np.full((4, 2), 2**62),
    "array of negatives": lambda: np.full((4, 2), -5),
    "array of objects": lambda: np.array([None, "x", 1], dtype=object),
    "array of texts": lambda: np.array(["a", "b"]),
    "array of dates": lambda: np.array(["2026-01-01"], dtype="datetime64[D]"),
    "array of complex": lambda: np.ones((4, 2), dtype=complex),
    "tensor with a gradient": lambda: _tensor(),
    "masked array": lambda: np.ma.masked_array([[1, 2], [3, 4]], mask=[[0, 1], [0, 0]]),
}

ODD_PATHS = {
    "a dot": ".",
    "two dots": "..",
    "the root": "/",
    "a long name": "n" * 300,
    "a missing folder": "missing/deeper/name",
    "below a file": "file.txt/name",
    "a text file": "file.txt",
    "an empty file": "empty.h5",
    "an empty folder": "folder",
    "a pipe": "pipe",
    "a pipe that is named .h5": "pipe.h5",
    "a device": "/dev/null",
    "a full device": "/dev/full",
    "a loop of links": "loop",
    "a path": Path("x"),
    "a path with a surrogate": "\udcff",
    "a URL of nothing": "memory://campaign/nothing",
    "a URL without a name": "s3://",
    "a URL that leads out": "memory://campaign/../name",
    "a URL with NUL": "memory://campaign/\0",
    "a URL of no store": "nosuch://campaign/name",
    "a URL as a path": Path("s3://bucket/name"),
}

# For what connects to a cluster; nothing listens at port 1.
ODD_ADDRESSES = {
    "nobody there": "127.0.0.1:1",
    "nobody there, by a client": "ray://127.0.0.1:1",
    "an unknown host": "no-such-host.invalid:6379",
    "a port of 5000 digits": "127.0.0.1:" + "9" * 5000,
    "a port in superscript": "127.0.0.1:²",
    "no port": "127.0.0.1:",
    "port 0": "127.0.0.1:0",
    "no host": ":6379",
    "another scheme": "http://127.0.0.1:1",
    "a surrogate": "\udcff:6379",
    "NUL and a port": "\0:6379",
    "a long host": "n" * 5000 + ":6379",
}

ODD_TEXTS = {
    "empty": "",
    "a blank": " ",
    "a letter": "x",
    "NUL": "\0",
    "minus one": "-1",
    "zero": "0",
    "two": "2",
    "a part": "1.5",
    "nan": "nan",
    "inf": "inf",
    "too large for a float": "1e999",
    "by zero": "1/0",
    "beyond 64 bits": "99999999999999999999",
    "a superscript": "²",
    "5000 digits": "9" * 5000,
    "a percent sign": "%s %(x)s",
    "two dashes": "--",
    "an unknown option": "--nonsense",
    **{name: str(path) for name, path in (ODD_PATHS | ODD_ADDRESSES).items()},
}


def make_odd_paths(folder: Path) -> None:
    """What the names of ODD_PATHS stand for, in this folder; beside them there is only what `Bench.new` names.

    What a case has written is removed, here and in the store in memory: none may depend on those before it.
    """
    for path in folder.iterdir():
        if path.name.startswith("new"):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    if "fsspec.implementations.memory" in sys.modules:
        sys.modules["fsspec.implementations.memory"].MemoryFileSystem.store.clear()
    (folder / "file.txt").write_text("a few words\n")
    (folder / "empty.h5").touch()
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    os.mkfifo(folder / "pipe.h5")
    (folder / "loop").symlink_to("loop")
