"""What the paper compares CRAFT with, all with the same `fit` and `encode`."""

from craftrl.baselines.agent_classifiers import PairedObservation, SingleObservation
from craftrl.baselines.draft import DRAFT, RecursiveDRAFT

__all__ = ["DRAFT", "PairedObservation", "RecursiveDRAFT", "SingleObservation"]
