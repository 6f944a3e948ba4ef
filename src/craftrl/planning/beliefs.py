"""What labels say of actions, as probabilities: each action of a state does one of a few things, and all are done.

The same reasoning serves twice: which move an action makes in a state, and which latent action it is in all states.
"""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

__all__ = ["STRAY", "SURE", "assign", "covering"]

Floats = NDArray[np.floating]

STRAY = 0.05  # labels with a misread frame, taken for granted: encoders of a few percent error must do no harm
SURE = 0.5  # an option is taken as known once it is likelier than all others together


def assign(evidence: Floats, prior: Floats, required: NDArray[np.bool_]) -> Floats:
    """The probability (A, M) of each of M options for each of A actions.

    Each action has one option; several may have the same one. What is known of some actions speaks of the others: an
    option that some action must have (videos show it) and that no known action has is left to the unknown ones. If one
    action is left for it, it is this one.

    evidence  (A, M): the log-likelihood of each action's labels under each option, 0 where there is none
    prior     (A, M): how plausible the options are without these labels; need not sum to 1
    required  (M,): options that some action must have
    """
    likelihood = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    belief = _normalised(prior * likelihood)
    known = belief.max(axis=1) > SURE
    claimed = np.zeros(len(required), dtype=bool)
    claimed[belief[known].argmax(axis=1)] = True
    left = required & ~claimed
    if known.all() or not left.any():
        return belief
    total = float(prior[~known].sum(axis=1).mean() / max(prior[~known].max(), 1e-300))  # options, in units of one
    weight_left, weight_claimed = covering(int((~known).sum()), int(left.sum()), total)
    weight = np.where(left, weight_left, weight_claimed)
    belief[~known] = _normalised(prior[~known] * weight * likelihood[~known])
    return belief


def covering(unknown: int, left: int, options: float) -> tuple[float, float]:
    """How likely one of `unknown` actions has one given option that is `left` over, and how likely another one.

    Every way to give the unknown actions an option each, such that all that are left over are covered, counts as
    equally likely. By inclusion and exclusion there are sum_j (-1)^j C(left, j) (options - j)^unknown of them.
    """
    ways = _ways(unknown, left, options)
    if unknown < left or ways <= 0:  # more is left over than actions: some of it is misread, and nothing says what
        return 1 / left, 0.0
    other = _ways(unknown - 1, left, options) / ways
    return (1 - (options - left) * other) / left, other


def _ways(actions: int, left: int, options: float) -> float:
    if actions < left:
        return 0.0
    return max(0.0, sum((-1) ** j * comb(left, j) * (options - j) ** actions for j in range(left + 1)))


def _normalised(weights: Floats) -> Floats:
    """Rows that sum to 1; a row of zeros is left as it is."""
    total = weights.sum(axis=-1, keepdims=True)
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
