"""tau: trajectories with agent labels, in memory or on disk; whatever users give, as one dataset; files.

`TrajectoryDataset` is imported when it is first used: whoever only writes files needs no NumPy.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from craftrl.data.dataset import TrajectoryDataset

__all__ = ["TrajectoryDataset"]


def __getattr__(name: str) -> Any:
    if name != "TrajectoryDataset":
        raise AttributeError(f"module 'craftrl.data' has no attribute {name!r}")
    from craftrl.data.dataset import TrajectoryDataset

    return TrajectoryDataset
