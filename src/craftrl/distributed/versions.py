"""Is every worker of a cluster like the driver? The same bits come only from the same code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from craftrl.errors import ClusterError

__all__ = ["check_versions", "versions_elsewhere"]

Versions = dict[str, str]


def check_versions(nodes: Sequence[str], answers: Sequence[Versions]) -> None:
    """Raise about the first node that differs, with everything in which it does."""
    ours = versions_elsewhere()()
    for node, theirs in zip(nodes, answers, strict=True):
        differing = [name for name in ours if theirs[name] != ours[name]]
        if differing:
            there = ", ".join(f"{name} {theirs[name]}" for name in differing)
            here = ", ".join(f"{name} {ours[name]}" for name in differing)
            raise ClusterError(
                f"All nodes must have the driver's versions; node {node} has {there}, the driver {here}; install the "
                "same on all of them."
            )


def versions_elsewhere() -> Callable[[], Versions]:
    """A function that travels as a whole, since a node may have no craftrl, or another one."""

    def versions() -> Versions:
        import hashlib
        import platform
        from importlib import import_module
        from pathlib import Path

        found = {"Python": ".".join(platform.python_version_tuple()[:2])}
        for name, package in (("NumPy", "numpy"), ("numba", "numba"), ("craftrl", "craftrl")):
            try:
                module: Any = import_module(package)
            except ImportError:
                found[name] = "(missing)"
                continue
            found[name] = module.__version__
            if package == "craftrl":  # which may have been changed since its version was
                digest = hashlib.sha256()
                folder = Path(module.__file__).parent
                for file in sorted(folder.rglob("*.py")):
                    digest.update(f"{file.relative_to(folder).as_posix()}\0".encode() + file.read_bytes())
                found[name] += f" (source {digest.hexdigest()[:8]})"
        return found

    return versions
