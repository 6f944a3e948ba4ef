"""The paper itself: its assumptions measured, its theorem with every constant, its baselines and its table.

`empirical_assumptions` and `population_assumptions` give alpha, eta, nu and nu' with the states that attain them;
`sample_size` says how much data the theorem asks for, and `guaranteed_epsilon` what it promises for the data at hand.
`DRAFT`, `RecursiveDRAFT`, `SingleObservation` and `PairedObservation` are what the paper compares CRAFT with;
`craftrl reproduce table1` runs that comparison. Names are imported when they are first used.

Paper: Sections 2.5, 3.1-3.3 and 4, Appendix C
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from craftrl.paper.assumptions import Assumptions, empirical_assumptions, population_assumptions
    from craftrl.paper.baselines import DRAFT, PairedObservation, RecursiveDRAFT, SingleObservation
    from craftrl.paper.theorem import chance_accuracy, guaranteed_epsilon, sample_size

__all__ = [
    "DRAFT",
    "Assumptions",
    "PairedObservation",
    "RecursiveDRAFT",
    "SingleObservation",
    "chance_accuracy",
    "empirical_assumptions",
    "guaranteed_epsilon",
    "population_assumptions",
    "sample_size",
]

_HOME = {
    **dict.fromkeys(("Assumptions", "empirical_assumptions", "population_assumptions"), "assumptions"),
    **dict.fromkeys(("chance_accuracy", "guaranteed_epsilon", "sample_size"), "theorem"),
    **dict.fromkeys(("DRAFT", "PairedObservation", "RecursiveDRAFT", "SingleObservation"), "baselines"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'craftrl.paper' has no attribute {name!r}")
    return getattr(import_module(f"craftrl.paper.{_HOME[name]}"), name)
