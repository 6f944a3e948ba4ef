"""tau: trajectories with agent labels, in memory or on disk."""

from craftrl.data.dataset import TrajectoryDataset

__all__ = ["TrajectoryDataset"]
