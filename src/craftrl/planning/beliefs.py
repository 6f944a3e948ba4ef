"""What labels say of actions, as probabilities: each action of a state does one of a few things, and all are done.

The same reasoning serves twice: which move an action makes in a state, and which latent action it is in all states.
"""

from __future__ import annotations

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
    equally likely.
    """
    all_covered = _covered(unknown, left, options)
    if all_covered <= 0:  # more is left over than actions: some of it is misread, and nothing says what
        return 1 / left, 0.0
    other = _covered(unknown - 1, left, options) / (options * all_covered)
    return max(0.0, 1 - (options - left) * other) / left, other


def _covered(actions: int, left: int, options: float) -> float:
    """The probability that all that is left over is covered if each action draws one of the options at random.

    Computed action by action, over how many are covered already: sums with alternating signs would overflow, or
    cancel, where there are many actions.
    """
    new = np.clip((left - np.arange(left + 1)) / max(options, left), 0.0, 1.0)  # that the next draw covers one more
    covered = np.zeros(left + 1)
    covered[0] = 1.0
    for _ in range(actions):
        covered = covered * (1 - new) + np.concatenate([[0.0], (covered * new)[:-1]])
    return float(covered[-1])


def _normalised(weights: Floats) -> Floats:
    """Rows that sum to 1; a row of zeros is left as it is."""
    total = weights.sum(axis=-1, keepdims=True)
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
