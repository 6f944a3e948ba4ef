"""Hypothesis classes with their training oracles: log-odds, separation and encoding."""

from craftrl.oracles.base import BoundOracle, Encoder, EncoderFit, LogOdds, Mixed, Oracle, Separation
from craftrl.oracles.classes import CoordinateOracle, FiniteOracle

__all__ = [
    "BoundOracle",
    "CoordinateOracle",
    "Encoder",
    "EncoderFit",
    "FiniteOracle",
    "LogOdds",
    "Mixed",
    "Oracle",
    "Separation",
]
