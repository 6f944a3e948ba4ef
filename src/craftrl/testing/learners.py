"""What any learner must do: scikit-learn's contract, and one encoder per step."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from craftrl.data.dataset import TrajectoryDataset
from craftrl.errors import CraftError, InvalidDataError, InvalidParameterError, NotFittedError
from craftrl.estimators.saving import load
from craftrl.testing.claims import about, must, must_answer, must_refuse
from craftrl.testing.datasets import LearnerData, interleaved
from craftrl.testing.encoders import can_be_pickled
from craftrl.testing.parameters import check_parameters, check_unchanged, snapshot

__all__ = ["check_learner"]


def check_learner(learner: Any, x: Any, agent: Any = None, **fit_arguments: Any) -> None:
    """Raise AssertionError at the first thing that a learner must do and this one does not.

    learner        the one to check; clones of it are fitted, three times in all
    x, agent       trajectories as `fit` takes them; no accuracy is asked for
    fit_arguments  what `fit` needs beside them, such as `actions`; arrays with one row for each trajectory

    Checked are the parameters, what `fit` may leave behind, the encoders of all steps, that the same data gives the
    same result with rows in any order, pickle, `save` and `load`, and that bad input is refused.
    """
    data = LearnerData.of(x, agent, fit_arguments)
    check_parameters(learner)
    check_not_fitted(clone(learner), data)
    model = clone(learner)
    check_fit(model, data)
    check_encoders(model, data)
    check_labels(model, data)
    check_same_again(model, data)
    check_rows(clone(learner), model, data)
    check_pickle(model, data)
    check_files(model, data)
    check_refusals(clone(learner), model, data)


def check_not_fitted(model: Any, data: LearnerData) -> None:
    """Nothing is answered before `fit`."""
    must_refuse(NotFittedError, lambda: model.transform(data.tau), "transform before fit")
    must_refuse(NotFittedError, lambda: model.encode(data.tau.at(1), 1), "encode before fit")


@about("A fitted learner")
def check_fit(model: Any, data: LearnerData) -> None:
    """`fit` returns the learner, changes no parameter, and leaves results that end in `_` and hold no data."""
    name = type(model).__name__
    before = {key: snapshot(value) for key, value in model.get_params(deep=False).items()}
    result = must_answer(lambda: data.fit(model), f"{name}.fit must take this data")
    must(result is model, f"{name}.fit must return the learner itself; it returns {type(result).__name__}.")
    check_unchanged(before, model, "fit")
    for key, value in vars(model).items():
        if key in before:
            continue
        must(
            key.endswith("_") and not key.startswith("_"),
            f"What {name}.fit learns must have names that end in `_`; it sets `{key}`.",
        )
        observed = isinstance(value, np.ndarray) and value.shape[2:] == data.tau.obs_shape and value.ndim > 2
        must(
            not isinstance(value, TrajectoryDataset) and not observed,
            f"{name}.fit must keep no data; `{key}` holds observations.",
        )


@about("The states of all steps")
def check_encoders(model: Any, data: LearnerData) -> None:
    """One encoder per step, from 1 on; `transform` is `encode` step by step."""
    name, tau = type(model).__name__, data.tau
    must(len(model.encoders_) == tau.H, f"{name}.encoders_ must have {tau.H} entries; it has {len(model.encoders_)}.")
    must_refuse(CraftError, lambda: model.encoders_[0], "encoders_[0], since steps count from 1,")
    must(
        model.obs_shape_ == tau.obs_shape,
        f"{name}.obs_shape_ must be that of the data, {tau.obs_shape}; it is {model.obs_shape_}.",
    )
    states = must_answer(lambda: model.transform(tau), f"{name}.transform must take the data that was fitted")
    must(states.shape == (tau.n, tau.H), f"transform must return shape {(tau.n, tau.H)}; it returns {states.shape}.")
    for h in range(1, tau.H + 1):
        code = model.encode(tau.at(h), h)
        must(
            code.shape == (tau.n,) and code.dtype.kind in "iu" and code.min() >= 0,
            f"encode must return one state of 0 or more for each observation; at h = {h} it does not.",
        )
        must(
            np.array_equal(states[:, h - 1], np.where(tau.present(h), code, -1)),
            f"transform must be encode step by step, and -1 where a trajectory is over; at h = {h} it is not.",
        )


@about("labels_ and n_states_")
def check_labels(model: Any, data: LearnerData) -> None:
    """`labels_` and `n_states_`, where the learner has them."""
    if hasattr(model, "n_states_"):
        must(
            len(model.n_states_) == data.tau.H,
            f"n_states_ must have {data.tau.H} entries; it has {len(model.n_states_)}.",
        )
    if not hasattr(model, "labels_"):
        return
    labels, shape = model.labels_, (data.tau.n, data.tau.H)
    must(labels.shape == shape, f"labels_ must have shape {shape}; it has {labels.shape}.")
    must(labels.min() >= -1, f"labels_ must be -1 or more; {labels.min()} is in it.")
    for h in range(1, data.tau.H + 1):
        top = getattr(model, "n_states_total_", model.n_states_[h])
        must(labels[:, h - 1].max() < max(top, 1), f"labels_ at h = {h} must be below {top}, the number of states.")
        over = labels[~data.tau.present(h), h - 1]
        must((over == -1).all(), f"labels_ must be -1 where a trajectory is over; at h = {h} some are not.")


@about("A second fit")
def check_same_again(model: Any, data: LearnerData) -> None:
    """Fitted a second time to the same data, the learner says the same."""
    before = model.transform(data.tau)
    after = data.fit(model).transform(data.tau)
    must(
        np.array_equal(before, after),
        f"{type(model).__name__} fitted twice to the same data must say the same; it differs; seed whatever is random.",
    )


@about("A fit to rows in another order")
def check_rows(fresh: Any, model: Any, data: LearnerData) -> None:
    """Rows of several agents in any order: the same result, each row's where the row was."""
    rows = interleaved(data.agent)
    mixed = data.fit(fresh, rows)
    must(
        np.array_equal(mixed.transform(data.tau), model.transform(data.tau)),
        "The result must not depend on how the rows of the agents are interleaved; it does.",
    )
    if hasattr(model, "labels_"):
        must(
            np.array_equal(mixed.labels_, model.labels_[rows]),
            "labels_ must have the rows in the order given to fit; they are in another.",
        )


@about("A pickle round trip")
def check_pickle(model: Any, data: LearnerData) -> None:
    """Through pickle and back; not asked of a learner whose parameters cannot be pickled."""
    if not can_be_pickled(clone(model)):
        return
    name = type(model).__name__
    again = pickle.loads(
        must_answer(lambda: pickle.dumps(model), f"A fitted {name} must be pickled, as a fresh one is")
    )
    must(
        np.array_equal(again.transform(data.tau), model.transform(data.tau)),
        f"{name} must say the same after a pickle round trip; it differs.",
    )


@about("save and load")
def check_files(model: Any, data: LearnerData) -> None:
    """Through `save` and `load`; not asked of a learner that says that it cannot be saved."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        try:
            model.save(path)
        except InvalidParameterError:
            return
        again = must_answer(lambda: _loaded(path, model), f"A {type(model).__name__} that was saved must be loaded")
    must(
        np.array_equal(again.transform(data.tau), model.transform(data.tau)),
        f"{type(model).__name__} must say the same after save and load; it differs.",
    )
    must(
        _printed(again) == _printed(model),
        f"A loaded model must have the parameters of the saved one; it is {_printed(again)[:100]!r}.",
    )


def _printed(model: Any) -> str:
    """The model as it prints, numbers of NumPy's as Python's own."""
    given = model.get_params(deep=False)
    return repr(type(model)(**{k: v.item() if isinstance(v, np.generic) else v for k, v in given.items()}))


def _loaded(path: Path, model: Any) -> Any:
    try:
        return load(path)
    except InvalidParameterError:  # functions or modules of the user's own, which come with the oracle
        return load(path, oracle=getattr(model, "oracle_", getattr(model, "oracle", None)))


def check_refusals(fresh: Any, model: Any, data: LearnerData) -> None:
    """Bad input is refused in one sentence."""
    x, agent, further = data.x, data.agent, data.further
    one_array = np.stack([data.tau.at(h) for h in range(1, data.tau.H + 1)], axis=1)
    must_refuse(InvalidDataError, lambda: fresh.fit(x, agent[:-1], **further), "fit with labels of another length")
    must_refuse(InvalidDataError, lambda: fresh.fit(x, np.zeros_like(agent), **further), "fit with one agent only")
    must_refuse(InvalidDataError, lambda: fresh.fit(one_array, **further), "fit with one array and no labels")
    strange = np.zeros((2, *data.tau.obs_shape, 3), dtype=data.tau.dtype)
    must_refuse(InvalidDataError, lambda: model.encode(strange, 1), "encode with observations of another shape")
    must_refuse(
        InvalidDataError,
        lambda: model.transform(np.stack([strange] * data.tau.H, axis=1)),
        "transform with observations of another shape",
    )
