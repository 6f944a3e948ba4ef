"""tau: trajectories with agent labels, in memory or on disk; whatever users give, as one dataset; files."""

from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.store import DatasetWriter, read_actions, read_true_states

__all__ = ["DatasetWriter", "TrajectoryDataset", "read_actions", "read_true_states"]
