"""The paper itself: its assumptions measured, its theorem with every constant, its baselines and its table.

`empirical_assumptions` and `population_assumptions` give alpha, eta, nu and nu' with the states that attain them;
`sample_size` says how much data the theorem asks for, and `guaranteed_epsilon` what it promises for the data at hand.
`DRAFT`, `RecursiveDRAFT`, `SingleObservation` and `PairedObservation` are what the paper compares CRAFT with;
`craftrl reproduce table1` runs that comparison.

Paper: Sections 2.5, 3.1-3.3 and 4, Appendix C
"""

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
