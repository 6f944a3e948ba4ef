"""What any learner must do: scikit-learn's contract, and one encoder per step."""

from __future__ import annotations

import pickle
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from craftrl.arrays import Ints
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.inputs import as_dataset
from craftrl.errors import AssumptionWarning, CraftError, InvalidDataError, InvalidParameterError, NotFittedError
from craftrl.estimators.base import Learner
from craftrl.estimators.saving import load
from craftrl.testing.claims import about, check_array, check_parameters, content, must, pickled

Fit = Callable[[Learner, Ints, Ints], Learner]  # a learner to rows in this order, and the agents of all rows


def check_learner(learner: Learner, x: Any, agent: Any = None) -> None:
    """Raise AssertionError at the first thing that a learner must do and this one does not.

    learner   the one to check; clones of it are fitted twice
    x, agent  trajectories as `fit` takes them; no accuracy is asked for

    Checked are the parameters, what `fit` may leave behind, the encoders of all steps, that the same data gives the
    same result with rows in any order, pickle, `save` and `load`, and that bad input is refused.
    """
    check_parameters(learner)
    tau = as_dataset(x, agent).tau
    whole = tau.rows(np.arange(tau.n))

    def fit(model: Learner, rows: Ints, agent: Ints) -> Learner:
        """What it warns of the data is not the question here."""
        given: Any = whole[rows] if (tau.lengths == tau.H).all() else [whole[i, : tau.lengths[i]] for i in rows]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AssumptionWarning)
            return model.fit(given, agent[rows])

    model = clone(learner)
    _check_fit(model, fit, tau)
    states = _check_states(model, tau)
    _check_again(model, fit, states, tau)
    _check_copies(model, states, tau)
    fresh, n, strange = clone(learner), tau.n, np.stack([whole[:2]] * 3, axis=-1)
    for what, call in {
        "fit with one agent only": lambda: fit(fresh, np.arange(n), np.zeros(n, dtype=np.int64)),
        "fit with labels of another length": lambda: fresh.fit(whole, np.arange(n - 1) % 2),
        "fit with one array and no labels": lambda: fresh.fit(whole),
        "encode with observations of another shape": lambda: model.encode(strange[:, 0], 1),
        "transform with observations of another shape": lambda: model.transform(strange),
    }.items():
        with about(what, refused=InvalidDataError):
            call()


@about("A fit to this data")
def _check_fit(model: Learner, fit: Fit, tau: TrajectoryDataset) -> None:
    """Nothing is answered before; `fit` returns the learner, changes no parameter, and keeps results and no data."""
    parameters, before = model.get_params(deep=False), content(model)
    with about("transform before fit", refused=NotFittedError):
        model.transform(tau)
    with about("encode before fit", refused=NotFittedError):
        model.encode(tau.at(1), 1)
    must(fit(model, np.arange(tau.n), tau.agent) is model, "fit must return the learner itself; it returns another.")
    must(content(model) == before, "fit must change no parameter; it changed one; work on a clone of it.")
    for key, value in vars(model).items():
        named = key in parameters or (key.endswith("_") and not key.startswith("_"))
        must(named, f"What fit learns must have names that end in `_`; it sets `{key}`.")
        observed = isinstance(value, np.ndarray) and value.ndim > 2 and value.shape[2:] == tau.obs_shape
        must(not isinstance(value, TrajectoryDataset) and not observed, f"fit must keep no data; `{key}` does.")


@about("The states of all steps")
def _check_states(model: Any, tau: TrajectoryDataset) -> Ints:
    """One encoder per step, from 1 on; `transform`, which is returned, is `encode` step by step; `labels_` and
    `n_states_`, where the learner has them, fit the data."""
    found = model.obs_shape_
    must(len(model.encoders_) == tau.H, f"encoders_ must have {tau.H} entries; it has {len(model.encoders_)}.")
    with about("encoders_[0], since steps count from 1,", refused=CraftError):
        model.encoders_[0]
    must(found == tau.obs_shape, f"obs_shape_ must be that of the data, {tau.obs_shape}; it is {found}.")
    states, counts, labels = model.transform(tau), getattr(model, "n_states_", None), getattr(model, "labels_", None)
    check_array("What transform returns", states, (tau.n, tau.H), np.integer, -1)
    must(counts is None or len(counts) == tau.H, f"n_states_ must have {tau.H} entries; it is {counts}.")
    for h in range(1, tau.H + 1):
        code, there = model.encode(tau.at(h), h), tau.present(h)
        check_array(f"What encode returns at h = {h}", code, (tau.n,), np.integer, 0)
        same = np.array_equal(states[:, h - 1], np.where(there, code, -1))
        must(same, f"transform must be encode, and -1 where a trajectory is over; at h = {h} it is not.")
        if labels is not None:
            top = max(getattr(model, "n_states_total_", model.n_states_[h]), 1) - 1
            check_array(f"labels_ at h = {h}", labels[:, h - 1], (tau.n,), np.integer, -1, top)
            over = (labels[~there, h - 1] == -1).all()
            must(over, f"labels_ must be -1 where a trajectory is over; at h = {h} some are not.")
    return np.asarray(states)


@about("A second fit")
def _check_again(model: Learner, fit: Fit, states: Ints, tau: TrajectoryDataset) -> None:
    """The same data gives the same, with the rows of the agents mixed in another way: each row's where the row was."""
    mixed = np.random.default_rng(0).permutation(tau.agent)
    rows = np.argsort(np.argsort(mixed, kind="stable"))  # each agent's rows keep their order
    other = fit(clone(model), rows, tau.agent)
    same = np.array_equal(other.transform(tau), states)
    must(same, "The same data must give the same, however the agents' rows are mixed; it differs; seed what is random.")
    same = not hasattr(model, "labels_") or np.array_equal(vars(other)["labels_"], model.labels_[rows])
    must(same, "labels_ must have the rows in the order given to fit; they are in another.")


def _check_copies(model: Any, states: Ints, tau: TrajectoryDataset) -> None:
    """Through pickle, where the parameters go through it, and through `save` and `load`, where it can be saved."""
    copies = {}
    if pickled(clone(model)):
        with about("A pickle of a fitted learner, as of a fresh one,"):
            copies["a pickle round trip"] = pickle.loads(pickle.dumps(model))
    with tempfile.TemporaryDirectory() as folder, about("A model that is saved and loaded"):
        path = Path(folder) / "model"
        with suppress(InvalidParameterError):  # it says that it cannot be saved
            model.save(path)
        if path.exists():
            try:
                copies["save and load"] = load(path)
            except InvalidParameterError:  # functions or modules of the user's own, which come with the oracle
                copies["save and load"] = load(path, oracle=getattr(model, "oracle_", None))
    for how, copy in copies.items():
        must(np.array_equal(copy.transform(tau), states), f"A learner must say the same after {how}; it differs.")
