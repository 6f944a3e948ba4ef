"""What is left to the library ("auto"): the data decides on the oracle, the oracle on how its answers are read.

Every choice is a record with its reason (`Choice`), so that nothing is decided in silence.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from sklearn.base import is_classifier

from craftrl.arguments import quoted
from craftrl.data.dataset import TrajectoryDataset
from craftrl.errors import InvalidDataError, InvalidParameterError, require
from craftrl.oracles.base import Choice, Oracle
from craftrl.oracles.classifier import ClassifierOracle
from craftrl.oracles.finite import CoordinateOracle

ORACLES = ("auto", "coordinates", "classifier", "network")
MAX_VALUES = 16  # integers with more values than this are measurements, not candidates for states


def choose_oracle(given: object, tau: TrajectoryDataset) -> tuple[Oracle, tuple[Choice, ...]]:
    """The oracle that the user means: an `Oracle`, a scikit-learn classifier, or one of `ORACLES` by name.

    Returned with the reason, where the data decided.
    """
    if isinstance(given, Oracle):
        return given, ()
    if not isinstance(given, type) and hasattr(given, "__sklearn_tags__") and is_classifier(given):
        return ClassifierOracle(given), ()
    if not (isinstance(given, str) and given in ORACLES):
        raise InvalidParameterError(
            f"oracle must be an Oracle such as CoordinateOracle(), a scikit-learn classifier, or one of "
            f"{', '.join(map(repr, ORACLES))}; {quoted(given)} was given."
        )
    oracle: Oracle
    auto, axes = given == "auto", len(tau.obs_shape)
    # The state may be one entry of a vector of bits; in an image it is a place, and no single pixel.
    may_be_entry = given == "coordinates" or (auto and axes <= 1)
    top = tau.largest_below(MAX_VALUES) if may_be_entry else None
    if top is not None:
        oracle = CoordinateOracle(max(2, top + 1))
        why = f"observations are integers in 0..{top}; each entry may be the state."
    elif given == "coordinates":
        found = "integers beyond that" if tau.dtype.kind in "biu" else f"observations of dtype {tau.dtype}"
        raise InvalidDataError(
            f"oracle='coordinates' needs integers in 0..{MAX_VALUES - 1}; {found} were given; convert whole numbers "
            "with x.astype(int), or use 'network' or 'classifier'."
        )
    elif given == "classifier" or (auto and axes == 1 and find_spec("torch") is None):
        from sklearn.ensemble import HistGradientBoostingClassifier  # slow to import

        oracle = ClassifierOracle(HistGradientBoostingClassifier(random_state=0))
        why = "boosted trees, which need no scaling of the features."
    elif auto and axes not in (1, 3):
        raise InvalidDataError(
            f"oracle='auto' needs small integers, feature vectors or images (rows, columns, channels); observations of "
            f"shape {tau.obs_shape} were given; add a channel axis to grey images, or give an oracle."
        )
    else:
        require("torch", "neural")
        from craftrl.oracles.network import NeuralOracle

        oracle = NeuralOracle()
        why = f"observations are {'feature vectors' if axes == 1 else 'images'} of shape {tau.obs_shape}."
    return oracle, (Choice("oracle", oracle, why),)


def recommended(oracle: Oracle, tau: TrajectoryDataset) -> dict[str, Choice]:
    """How the oracle's answers are read, unless the user says: coupling, relabel and stationary."""
    why = "states read off each new encoder keep the trajectories that fall between clusters."
    choices = oracle.coupling, Choice("relabel", True, why), _one_encoder_for(oracle, tau)
    return {choice.parameter: choice for choice in choices}


def _one_encoder_for(oracle: Oracle, tau: TrajectoryDataset) -> Choice:
    if not tau.aligned:
        return Choice("stationary", True, "windows are cut from anywhere, so that no step is like another.")
    if oracle.shares_over_time:
        why = "an observation is taken to mean the same at every step, so that all steps teach one encoder."
        return Choice("stationary", True, why)
    return Choice("stationary", False, "each step has an encoder of its own, as in the paper.")


def describe(choices: Iterable[Choice]) -> list[str]:
    """The choices as sentences; those that were made together, for one reason, in one."""
    together: dict[str, list[str]] = {}
    for choice in choices:
        together.setdefault(choice.why, []).append(choice.setting)
    return [f"{', '.join(settings)}: {why}" for why, settings in together.items()]
