"""scikit-learn estimators as bytes without pickle, by skops, and safe to use once they are read again.

skops vouches for the types in a file and not for their content. Compiled code of scikit-learn takes indices from trees
and support vectors without looking whether they are in range: an altered file would end the process. So everything
that such code reads is checked, or made anew.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from craftrl.errors import InvalidDataError, InvalidParameterError, require

# Parts of scikit-learn's own classifiers that skops does not vouch for; `_check` looks at what they hold.
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
    "sklearn.utils._bunch.Bunch",
)


def in_bytes(estimator: BaseEstimator) -> bytes:
    """The estimator, unless it holds what no file could bring back, such as a function without a name."""
    skops = require("skops.io", "classifiers")
    try:
        data: bytes = skops.dumps(estimator)
        if lost := [name for name in skops.get_untrusted_types(data=data) if "<" in name]:
            raise TypeError(f"it holds {', '.join(lost)}, which cannot be imported by name")
    except (TypeError, ValueError, AttributeError) as error:
        raise InvalidParameterError(
            f"A classifier can be saved if skops can write it; {type(estimator).__name__} cannot be written ({error}); "
            "define what it is made of at the top of a module."
        ) from error
    return data


def estimator_of(data: bytes, trusted: Sequence[str]) -> BaseEstimator:
    """The estimator again, if it is made of known or trusted types, and no index in it leads out of its arrays."""
    skops = require("skops.io", "classifiers")
    unknown = sorted(set(skops.get_untrusted_types(data=data)) - {*KNOWN, *trusted})
    if unknown:
        raise InvalidDataError(
            f"A classifier is loaded only if every type in it is known; this one has {', '.join(unknown)}; if you "
            f"trust where it comes from, call craftrl.load(path, trusted={unknown})."
        )
    estimator: BaseEstimator = skops.loads(data, trusted=[*KNOWN, *trusted])
    seen: dict[int, object] = {}
    waiting: list[Any] = [estimator]
    while waiting:  # everything that it holds, directly or not
        part = waiting.pop()
        if id(part) not in seen and not isinstance(part, (type, ModuleType, FunctionType)):
            seen[id(part)] = part
            waiting += part.ravel().tolist() if isinstance(part, np.ndarray) and part.dtype == object else []
            waiting += gc.get_referents(part)
    for part in seen.values():
        if isinstance(part, BaseEstimator):
            _check(part)
    return estimator


def _check(part: Any) -> None:
    """Raise ValueError, or whatever comes of a missing attribute, where compiled code would read what is not there."""
    from sklearn.ensemble._forest import BaseForest
    from sklearn.ensemble._gb import BaseGradientBoosting
    from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
    from sklearn.neighbors._base import NeighborsBase
    from sklearn.svm._base import BaseLibSVM
    from sklearn.tree import BaseDecisionTree

    if getattr(part, "memory", None) is not None:
        part.memory = None  # the folder of a pipeline's cache: what is there would be read with pickle
    if isinstance(part, BaseDecisionTree) and hasattr(part, "tree_"):
        tree = part.tree_
        _must(tree.node_count == tree.capacity and tree.n_features == part.n_features_in_, "a tree of another size")
        nodes = tree.__getstate__()["nodes"]
        _check_nodes(nodes, nodes["left_child"] != -1, ("left_child", "right_child", "feature"), tree.n_features)
    if isinstance(part, (BaseForest, BaseGradientBoosting)) and hasattr(part, "estimators_"):
        members = np.ravel(np.asarray(part.estimators_, dtype=object))
        same = all(isinstance(m, BaseDecisionTree) and m.n_features_in_ == part.n_features_in_ for m in members)
        _must(same, "trees of other observations")
        if isinstance(part, BaseGradientBoosting):
            _must(part.estimators_.shape[1] == part.n_trees_per_iteration_, "trees of other classes")
    if isinstance(part, BaseHistGradientBoosting) and hasattr(part, "_predictors"):
        n, categorical = part.n_features_in_, np.asarray(part._bin_mapper.is_categorical_)
        for predictor in (p for stage in part._predictors for p in stage):
            nodes, bits = predictor.nodes, predictor.raw_left_cat_bitsets
            inner = nodes["is_leaf"] == 0
            _check_nodes(nodes, inner, ("left", "right", "feature_idx"), n)
            split = nodes[inner & (nodes["is_categorical"] != 0)]
            _must(categorical.shape == (n,) and bits.shape[1] == 8, "categories of another size")
            _must(
                categorical[split["feature_idx"]].all() and (split["bitset_idx"] < len(bits)).all(), "no such category"
            )
    if isinstance(part, NeighborsBase) and hasattr(part, "_fit_X"):
        n = part.n_samples_fit_
        _must(part._fit_X.shape == (n, part.n_features_in_), "neighbours of another size")
        if part._tree is not None:  # made again from the data, as `fit` makes it
            metric = {"metric": part.effective_metric_, **part.effective_metric_params_}
            part._tree = type(part._tree)(part._fit_X, part.leaf_size, **metric)
        if hasattr(part, "classes_"):
            known = part._y.shape == (n,) and np.isin(part._y, np.arange(len(part.classes_))).all()
            _must(known, "neighbours of other classes")
    if isinstance(part, BaseLibSVM) and hasattr(part, "support_vectors_"):
        n, k = len(part.support_), len(part._n_support)
        pairs = k * (k - 1) // 2
        _must(not part._sparse and k >= 2 and min(part._n_support) >= 0, "support vectors of no classes")
        _must(part.support_vectors_.shape == (n, part.n_features_in_), "support vectors of another size")
        _must(part._dual_coef_.shape == (k - 1, n) and len(part._intercept_) == pairs, "coefficients of another size")
        _must(len(part._probA) == len(part._probB) and len(part._probA) in (0, pairs), "probabilities of another size")
        _must(0 <= min(part.support_, default=0) <= max(part.support_, default=0) < part.shape_fit_[0], "no such rows")


def _check_nodes(nodes: np.ndarray, inner: np.ndarray, names: tuple[str, str, str], n_features: int) -> None:
    """Children come after their parents, so that every way through the tree ends, and within the tree."""
    left, right, feature = (nodes[name][inner].astype(np.int64) for name in names)
    here = np.flatnonzero(inner)
    inside = (here < np.minimum(left, right)) & (np.maximum(left, right) < len(nodes))
    _must(len(nodes) > 0 and inside.all(), "a tree with branches that lead out of it")
    _must(((feature >= 0) & (feature < n_features)).all(), "a tree that reads other observations")


def _must(holds: bool | np.bool, what: str) -> None:
    if not holds:
        raise ValueError(f"a classifier has {what}")
