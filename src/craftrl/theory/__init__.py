"""The paper's theory as functions: its assumptions measured, its lemmas with every constant, its theorem inverted.

`empirical_assumptions` and `population_assumptions` give alpha, eta, nu and nu' with the states that attain them;
`sample_size` says how much data the theorem asks for, and `guaranteed_epsilon` what it promises for the data at
hand. Below them lies one pair of functions per lemma, the sample size and its inverse. docs/theory.md explains
them symbol by symbol and lists the slips found in the proofs.

Paper: Section 2.5, Sections 3.1-3.3, Appendix C
"""

from craftrl.theory.assumptions import (
    Assumptions,
    Attained,
    empirical_assumptions,
    pi_emp,
    population_assumptions,
)
from craftrl.theory.chain import chain_spread_epsilon, chain_spread_sample_size
from craftrl.theory.chance import chance_accuracy
from craftrl.theory.classification import (
    encoding_epsilon,
    encoding_sample_size,
    mean_shift_bound,
    separation_margin,
    separation_sample_size,
)
from craftrl.theory.draft import (
    CorruptedExample,
    corrupted_example,
    draft_epsilon,
    draft_loss,
    draft_loss_from_accuracy,
    draft_sample_size,
)
from craftrl.theory.recursion import (
    recursive_step_epsilon,
    recursive_step_holds,
    recursive_step_sample_size,
)
from craftrl.theory.spread import (
    enclosing_bins,
    erm_spread_epsilon,
    erm_spread_sample_size,
    reference_loss,
    spread_epsilon,
    spread_sample_size,
)
from craftrl.theory.theorem import SampleSize, guaranteed_epsilon, sample_size, step_epsilon
from craftrl.theory.visits import possible_pairs

__all__ = [
    "Assumptions",
    "Attained",
    "CorruptedExample",
    "SampleSize",
    "chain_spread_epsilon",
    "chain_spread_sample_size",
    "chance_accuracy",
    "corrupted_example",
    "draft_epsilon",
    "draft_loss",
    "draft_loss_from_accuracy",
    "draft_sample_size",
    "empirical_assumptions",
    "enclosing_bins",
    "encoding_epsilon",
    "encoding_sample_size",
    "erm_spread_epsilon",
    "erm_spread_sample_size",
    "guaranteed_epsilon",
    "mean_shift_bound",
    "pi_emp",
    "population_assumptions",
    "possible_pairs",
    "recursive_step_epsilon",
    "recursive_step_holds",
    "recursive_step_sample_size",
    "reference_loss",
    "sample_size",
    "separation_margin",
    "separation_sample_size",
    "spread_epsilon",
    "spread_sample_size",
    "step_epsilon",
]
