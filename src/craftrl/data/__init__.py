"""tau: trajectories with agent labels, in memory or on disk; whatever users give, as one dataset; files.

Classes are imported when they are first used: whoever only writes files needs no NumPy.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from craftrl.data.dataset import TrajectoryDataset
    from craftrl.data.store import DatasetWriter, read_actions, read_true_states

__all__ = ["DatasetWriter", "TrajectoryDataset", "read_actions", "read_true_states"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'craftrl.data' has no attribute {name!r}")
    if name == "TrajectoryDataset":
        from craftrl.data import dataset as module
    else:
        from craftrl.data import store as module  # type: ignore[no-redef]
    return getattr(module, name)
