"""Networks on Ray: what a rank sends back, and what is said where it cannot. The ranks themselves: test_ranks.py."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import rank_runs
import ray

from craftrl import CRAFT
from craftrl.distributed import train_on_ray
from craftrl.distributed.train_on_ray import _Box, _plainly, _put_into, _rank, _Work, fit_networks_on_ray
from craftrl.errors import ClusterError, InvalidDataError, InvalidParameterError, MissingDependencyError
from craftrl.oracles.network.process_group import heard


def model() -> CRAFT:
    return CRAFT(rank_runs.oracle(rank_runs.TRAINING.but(epochs=1)), alpha=1.0, eta=0.02, nu=0.01)


@pytest.fixture
def box(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A box that is no actor."""
    monkeypatch.setattr(ray, "get", lambda value: value)
    kept = _Box()
    remote = {name: SimpleNamespace(remote=getattr(kept, name)) for name in ("put", "fail", "errors", "content")}
    return SimpleNamespace(**remote)


def test_what_the_first_rank_sends_makes_the_model_that_it_fitted(box: Any, tmp_path: Path) -> None:
    tau = rank_runs.images(60)
    tau.save(tmp_path / "shards")
    _rank({"work": _Work(model(), str(tmp_path / "shards"), 3), "box": box})
    content, said = box.content.remote()
    assert [category.__name__ for _, category in said] == ["AssumptionWarning"]
    learned = _put_into(model(), content)
    assert learned.labels_.shape == (120, 3)
    assert np.array_equal(learned.encode(tau.at(2), 2), learned.encoders_[2](tau.at(2)))


def test_an_error_of_a_rank_is_raised_as_itself(box: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidDataError, match="nowhere"):
        _rank({"work": _Work(model(), str(tmp_path / "nowhere"), None), "box": box})
    (told,) = box.errors.remote()
    with pytest.raises(Exception, match="Another rank has ended") as lost, heard():
        raise RuntimeError("Connection closed by peer")
    assert _plainly(RuntimeError("of Ray's own"), [lost.value, told]) is told
    assert _plainly(RuntimeError("of Ray's own"), [lost.value]) is lost.value
    plain = _plainly(RuntimeError("of Ray's own"), [])
    assert isinstance(plain, ClusterError)
    assert "of Ray's own" in str(plain)


def test_more_ranks_than_there_is_room_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    given = SimpleNamespace(cluster_resources=lambda: {"CPU": 4.0, "GPU": 2.0})
    monkeypatch.setattr(train_on_ray, "_scaling", lambda **settings: settings)
    on_gpus = CRAFT(rank_runs.oracle(rank_runs.TRAINING.but(device="auto")))
    assert train_on_ray._ranks(given, on_gpus, None)["num_workers"] == 2
    assert train_on_ray._ranks(given, model(), None) == {
        "num_workers": 4,
        "use_gpu": False,
        "resources_per_worker": {"CPU": 1.0},
    }
    with pytest.raises(InvalidParameterError, match="has 2, and 3 ranks were asked for"):
        train_on_ray._ranks(given, on_gpus, 3)


@pytest.mark.skipif(importlib.util.find_spec("pandas") is not None, reason="Ray Train is installed")
def test_without_ray_train_it_is_said_what_to_install() -> None:
    with pytest.raises(MissingDependencyError, match=r"need Ray Train.*pip install 'ray\[train\]'"):
        fit_networks_on_ray(model(), "shards")
