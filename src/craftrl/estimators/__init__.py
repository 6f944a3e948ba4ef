"""What users fit: CRAFT with scikit-learn's contract, and everything that makes one life of it."""

from craftrl.estimators.craft import CRAFT

__all__ = ["CRAFT"]
