"""What users fit: CRAFT with scikit-learn's contract, its choices, its one encoder for all steps, its files."""

from craftrl.estimators.craft import CRAFT
from craftrl.estimators.learned import Partition
from craftrl.estimators.saving import load

__all__ = ["CRAFT", "Partition", "load"]
