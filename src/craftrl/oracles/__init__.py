"""Hypothesis classes with their training oracles: log-odds, separation and encoding.

`NeuralOracle` and `Training` need torch and are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from craftrl.core.oracle import EncoderFit, LogOdds, PreparedOracle
from craftrl.oracles.base import Choice, Oracle
from craftrl.oracles.classifier import ClassifierOracle
from craftrl.oracles.finite import CoordinateOracle, FiniteOracle
from craftrl.oracles.learned import PreparedLearned

if TYPE_CHECKING:
    from craftrl.oracles.network import NeuralOracle, Training

__all__ = [
    "Choice",
    "ClassifierOracle",
    "CoordinateOracle",
    "EncoderFit",
    "FiniteOracle",
    "LogOdds",
    "NeuralOracle",
    "Oracle",
    "PreparedLearned",
    "PreparedOracle",
    "Training",
]


def __getattr__(name: str) -> type:
    if name in ("NeuralOracle", "Training"):
        found: type = getattr(import_module("craftrl.oracles.network"), name)
        return found
    raise AttributeError(f"module 'craftrl.oracles' has no attribute {name!r}")
