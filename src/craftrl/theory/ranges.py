"""The ranges in which the paper's numbers mean something, checked once at the border of each lemma."""

from __future__ import annotations

from craftrl.errors import InvalidParameterError

__all__ = ["check_count", "check_failure", "check_share"]


def check_share(name: str, value: float) -> None:
    """epsilon, epsilon_0, beta, ...: a share in (0, 1]."""
    if not 0 < value <= 1:
        raise InvalidParameterError(
            f"{name} must lie in (0, 1]; {name} = {value} was given; it is a share of samples or of errors."
        )


def check_failure(delta: float) -> None:
    """delta: a probability of failure in (0, 1)."""
    if not 0 < delta < 1:
        raise InvalidParameterError(
            f"delta must lie in (0, 1); delta = {delta} was given; it is the probability with which the "
            "guarantee may fail, 0.05 for example."
        )


def check_count(name: str, value: float, least: int = 1) -> None:
    """Numbers of samples, of hypotheses, of states, of steps."""
    if not value >= least:
        raise InvalidParameterError(f"{name} must be at least {least}; {name} = {value} was given; it counts things.")
