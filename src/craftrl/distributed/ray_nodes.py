"""Is every node of a cluster like the driver? The same bits come only from the same code."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from craftrl.errors import ClusterError

__all__ = ["check_nodes"]

PATIENCE = 60.0  # seconds in which every node must answer
Versions = dict[str, str]


def check_nodes(ray: ModuleType) -> int:
    """The number of one-core workers, once every node has shown the driver's versions."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = [node for node in ray.nodes() if node["Alive"]]
    cores = sum(int(node["Resources"].get("CPU", 0)) for node in nodes)
    if cores < 1:
        raise ClusterError(
            "A cluster must have at least one core for work; this one has none; start a node with --num-cpus."
        )
    probe = ray.remote(num_cpus=0, max_retries=3)(_probe())
    there = [
        probe.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)).remote()
        for node in nodes
    ]
    try:
        answers = ray.get(there, timeout=PATIENCE)
    except ray.exceptions.RayError as error:
        raise ClusterError(
            f"Every node must answer within {PATIENCE:.0f} seconds; one did not ({type(error).__name__}); see its logs."
        ) from error
    _check_versions(_probe()(), [node["NodeManagerAddress"] for node in nodes], answers)
    return cores


def _check_versions(ours: Versions, nodes: list[str], answers: list[Versions]) -> None:
    """Raise about the first node that differs, with everything in which it does."""
    for node, theirs in zip(nodes, answers, strict=True):
        differing = [name for name in ours if theirs[name] != ours[name]]
        if differing:
            there = ", ".join(f"{name} {theirs[name]}" for name in differing)
            here = ", ".join(f"{name} {ours[name]}" for name in differing)
            raise ClusterError(
                f"All nodes must have the driver's versions; node {node} has {there}, the driver {here}; install the "
                "same on all of them."
            )


def _probe() -> Callable[[], Versions]:
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
