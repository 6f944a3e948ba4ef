"""scikit-learn estimators in files without pickle, by skops."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from craftrl.core.saved import Savable
from craftrl.errors import InvalidDataError, InvalidParameterError, require

__all__ = ["is_foreign_estimator", "read_estimator", "write_estimator"]

# Parts of scikit-learn's own classifiers that skops does not vouch for by default. They hold numbers and run no code
# of a file's choosing.
KNOWN = (
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.metrics._dist_metrics.ManhattanDistance64",
    "sklearn.neighbors._ball_tree.BallTree",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree",
)


def is_foreign_estimator(value: Any) -> bool:
    """Whether it is an estimator that is not ours."""
    return isinstance(value, BaseEstimator) and not isinstance(value, Savable)


def write_estimator(estimator: Any, path: Path) -> None:
    """Write it, unless it holds what no file could bring back, such as a function without a name."""
    skops = require("skops.io", "classifiers")
    try:
        skops.dump(estimator, path)
        lost = [name for name in skops.get_untrusted_types(file=path) if "<" in name]
    except (TypeError, ValueError, AttributeError) as error:
        raise InvalidParameterError(
            f"A classifier can be saved if skops can write it; {type(estimator).__name__} cannot be written ({error})."
        ) from error
    if lost:
        raise InvalidParameterError(
            f"A classifier can be saved if everything in it can be imported by name; {', '.join(lost)} cannot; define "
            "it at the top of a module."
        )


def read_estimator(path: Path, trusted: Sequence[str]) -> Any:
    """The estimator again, if it is made of types that are known to be harmless or that the caller trusts."""
    skops = require("skops.io", "classifiers")
    unknown = sorted(set(skops.get_untrusted_types(file=path)) - {*KNOWN, *trusted})
    if unknown:
        raise InvalidDataError(
            f"A classifier is loaded only if every type in it is known; {path} has {', '.join(unknown)}; if you trust "
            f"where it comes from, call craftrl.load(path, trusted={unknown})."
        )
    return skops.load(path, trusted=[*KNOWN, *trusted])
