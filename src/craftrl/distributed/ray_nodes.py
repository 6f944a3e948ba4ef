"""Is every node of a cluster like the driver? The same bits come only from the same code."""

from __future__ import annotations

from types import ModuleType

from craftrl.distributed.versions import check_versions, versions_elsewhere
from craftrl.errors import ClusterError

__all__ = ["check_nodes"]

PATIENCE = 60.0  # seconds in which every node must answer


def check_nodes(ray: ModuleType) -> int:
    """The number of one-core workers, once every node has shown the driver's versions."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = [node for node in ray.nodes() if node["Alive"]]
    cores = sum(int(node["Resources"].get("CPU", 0)) for node in nodes)
    if cores < 1:
        raise ClusterError(
            "A cluster must have at least one core for work; this one has none; start a node with --num-cpus."
        )
    probe = ray.remote(num_cpus=0, max_retries=3)(versions_elsewhere())
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
    check_versions([node["NodeManagerAddress"] for node in nodes], answers)
    return cores
