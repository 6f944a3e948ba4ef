"""Classification when some of the data is wrong: telling two sets apart, and learning the final encoders.

CRAFT's sets of observations are i.i.d. samples of latent states except for a bounded number m of strangers and
missing ones, chosen by an adversary for all we know. Both lemmas tolerate them: the first because its
answer is a yes or no with a wide margin, the second at the price of a share of errors in proportion to m/n.

`n` below may be read as the size of the smallest set before or after corruption: docs/theory.md shows
that both lemmas hold with either.

Paper: Proposition C.3, Lemma C.4 (binary), Lemma C.5 (multi-class)
"""

from __future__ import annotations

import math

from craftrl.theory.ranges import check_count, in_range

__all__ = [
    "encoding_epsilon",
    "encoding_sample_size",
    "mean_shift_bound",
    "separation_margin",
    "separation_sample_size",
]


@in_range
def mean_shift_bound(changed: int, size: int) -> float:
    """How far the mean of `size` numbers in [0, 1] can move when `changed` are inserted or removed.

    Paper: Proposition C.3
    """
    return changed / size


@in_range
def separation_sample_size(*, delta: float, class_size: int, m: int = 0) -> int:
    """Samples that the smaller of two sets needs, m of them corrupted, for the test L(g) > 1/2 to be right.

        max(8 m, (128/7) ln(2 |G| / delta))

    Then with probability 1 - delta the best g in G has L(g) > 1/2 if both sets have one distribution, and
    L(g) <= 1/2 if some g in G separates their supports.

    Paper: Lemma C.4
    """
    return max(8 * m, math.ceil(128 / 7 * _log_class(class_size, delta)))


@in_range
def separation_margin(n: int, *, delta: float, class_size: int, m: int = 0) -> float:
    """How far L(g) may lie from its clean expectation (0 or 1), for all g at once; the test needs 1/2 or less.

        sqrt(ln(2 |G| / delta) / (n - m)) + 2 m / n

    Paper: Lemma C.4 (the inequality in its proof)
    """
    check_count("n", n, least=m + 1)
    return math.sqrt(_log_class(class_size, delta) / (n - m)) + mean_shift_bound(2 * m, n)


@in_range
def encoding_sample_size(*, epsilon: float, delta: float, class_size: int, N: int, m: int = 0) -> int:
    """Samples that the smallest of N sets needs, m moved between sets, for an encoder right on 1 - epsilon.

        max(8 m / epsilon, 64 N ln(2 |Phi| / delta) / (7 epsilon^2))

    Then with probability 1 - delta, the encoder of Line 46 is right with probability at least 1 - epsilon on
    every one of the N states.

    Paper: Lemma C.5
    """
    statistical = 64 * N * _log_class(class_size, delta) / (7 * epsilon**2)
    return math.ceil(max(8 * m / epsilon, statistical))


@in_range
def encoding_epsilon(n: int, *, delta: float, class_size: int, N: int, m: int = 0) -> float:
    """The inverse: the errors that n samples per state guarantee to stay below; above 1 it says nothing."""
    statistical = math.sqrt(64 * N * _log_class(class_size, delta) / (7 * n))
    return max(8 * m / n, statistical)


def _log_class(class_size: int, delta: float) -> float:
    return math.log(2 * class_size / delta)
