"""What the campaign found in the parts that work on shards and clusters: odd values are refused where they enter."""

import numpy as np
import pytest

from campaign.formats import recorded_bits
from craftrl import CRAFT, CoordinateOracle, NeuralOracle
from craftrl.cli import main
from craftrl.data.places import place
from craftrl.data.ranks import ALONE, join, present
from craftrl.data.remote import Remote
from craftrl.distributed import LocalExecutor, encode_on_shards, fit_on_shards, train_on_ray
from craftrl.distributed.cost import estimate, round_seconds, tree_levels, where_reduction_dominates
from craftrl.distributed.forecast import Forecast, NetworkJob
from craftrl.distributed.job import Cluster, Job
from craftrl.distributed.rates import Rates
from craftrl.distributed.ray_address import check_answers, parsed
from craftrl.distributed.ray_connection import MOST_WORKERS, _check_local
from craftrl.distributed.train_on_ray import fit_networks_on_ray
from craftrl.errors import ClusterError, InvalidDataError, InvalidParameterError

RATES = Rates.shipped()


@pytest.mark.parametrize(
    "call",
    [
        lambda: tree_levels(10, 1),  # would never end
        lambda: tree_levels(0, 8),
        lambda: estimate(None, Cluster(), RATES),
        lambda: estimate(Job(10), Cluster(), RATES, local=np.ones(2)),
        lambda: round_seconds(10, 0, 1.0, Cluster(), RATES),
        lambda: round_seconds(10, 1, float("nan"), Cluster(), RATES),
        lambda: where_reduction_dominates(Job(10), Cluster(), RATES, most=10**9),
        lambda: Job(10, coupling=np.ones(2)),
        lambda: Job(10, bounds_given="no"),
        lambda: Forecast(Job(10), Cluster(), 3, RATES),
        lambda: Forecast(Job(10), Cluster(), [0], RATES),
        lambda: NetworkJob(10, 0, 1.0),
        lambda: NetworkJob(10, 1, 1.0, efficiency=2.0),
        lambda: NetworkJob(10, 1, 1e-300),
        lambda: NetworkJob(10, 1, 1.0).seconds(0),
        lambda: NetworkJob(10, 1, 1.0).text([2], float("inf")),
        lambda: parsed(np.ones(2)),
        lambda: parsed("127.0.0.1:" + "9" * 5000),
        lambda: _check_local(MOST_WORKERS + 1, None, None),
        lambda: place(None),
        lambda: Remote("name"),
        lambda: Remote("memory://name", "large"),
        lambda: join(None),
        lambda: ALONE.from_first(3),
        lambda: LocalExecutor(workers="x"),
        lambda: Job(10).tasks("x"),
        lambda: Cluster(bandwidth=1e-300),
        lambda: Cluster(price=1e300),
        lambda: LocalExecutor().submit("text"),
        lambda: LocalExecutor().get(3),
        lambda: LocalExecutor().total([]),
    ],
)
def test_odd_values_are_refused_in_a_sentence(call):
    with pytest.raises(InvalidParameterError, match=r"must .* (given|differ)"):
        call()
    assert present() is ALONE


@pytest.mark.parametrize(
    "values",
    [
        [np.ones(3), np.ones(3)],
        [np.ones(3, int), np.ones(1, int)],
        [(np.ones(3, int),), (np.ones(3, int), np.ones(3, int))],
        [(np.ones(3, int),), np.ones(3, int)],
        [np.ones(3, bool), np.ones(3, bool)],
        [[[1], [1, 2]], np.ones(3, int)],
    ],
)
def test_only_integers_of_one_shape_are_added(values):
    """Floats add up to other bits in another order, shapes are broadcast, and two True are True: all without a word."""
    with pytest.raises(InvalidParameterError, match="must be arrays"):
        LocalExecutor().total(values)


def test_sums_are_of_every_entry():
    one = (np.arange(3), (np.uint8(2), 5))
    first, (second, third) = LocalExecutor().total([one, one])
    assert first.tolist() == [0, 2, 4]
    assert (second, third) == (4, 10)


def test_largest_below_wants_a_number():
    tau = recorded_bits(3).tau
    assert tau.largest_below(2) == 1
    assert tau.largest_below(1) is None
    with pytest.raises(InvalidParameterError, match="most must be an integer"):
        tau.largest_below("x")


def test_texts_that_are_no_host_have_nobody_there():
    for host in ("n" * 5000, "\udcff", "\0"):
        with pytest.raises(ClusterError, match="must answer"):
            check_answers(f"{host}:6379", host, 6379, asked_for_tokens=False)


@pytest.mark.parametrize("executor", [None, "ray", LocalExecutor, object()])
def test_an_executor_must_be_one(tmp_path, executor):
    tau = recorded_bits(30).tau
    tau.save(tmp_path / "shards")
    model = CRAFT(CoordinateOracle(), alpha=1, eta=0.2, nu=0.1)
    with pytest.raises(InvalidParameterError, match="executor must be an executor"):
        fit_on_shards(model, tmp_path / "shards", executor)
    with pytest.raises(InvalidParameterError, match="executor must be an executor"):
        encode_on_shards(model, tmp_path / "shards", tmp_path / "states", executor)


@pytest.mark.parametrize(
    ("path", "horizon", "said"),
    [
        ("memory://campaign/nothing", None, "a dataset at memory://campaign/nothing"),
        ("nothing", None, "nothing is there"),
        ("/", None, "must be a folder of shards"),
        (None, None, "path must be a path"),
        ("memory://campaign/nothing", 1, "horizon must be an integer of at least 2"),
        ("memory://campaign/nothing", "all", "horizon must be an integer of at least 2"),
    ],
)
def test_networks_on_ray_are_checked_before_a_ray_starts(monkeypatch, path, horizon, said):
    monkeypatch.setattr(train_on_ray, "connected", lambda *given, **named: pytest.fail("a Ray was started"))
    with pytest.raises((InvalidParameterError, InvalidDataError), match=said):
        fit_networks_on_ray(CRAFT(NeuralOracle()), path, horizon=horizon)


def no_cluster(*given, **named):
    raise ClusterError("none there")


def test_networks_on_ray_get_a_url_as_it_is(monkeypatch):
    """A URL that is made absolute, as a path is, loses a slash and gets a folder of this machine before it."""
    recorded_bits(3).tau.save("memory://campaign/frames.h5")
    sent = []
    monkeypatch.setattr(train_on_ray, "_trainer", lambda: None)
    monkeypatch.setattr(train_on_ray, "_Work", lambda model, path, horizon: sent.append(path))
    monkeypatch.setattr(train_on_ray, "connected", no_cluster)
    with pytest.raises(ClusterError, match="none there"):
        fit_networks_on_ray(CRAFT(NeuralOracle()), "memory://campaign/frames.h5")
    assert sent == ["memory://campaign/frames.h5"]


def test_encode_looks_at_its_target_before_a_ray_starts(tmp_path, monkeypatch, capsys):
    recorded_bits(30).tau.save(tmp_path / "shards")
    (tmp_path / "mine").mkdir()
    monkeypatch.setattr("craftrl.cli.backend.workers_of", lambda args: pytest.fail("a Ray was started"))
    line = ["encode", str(tmp_path / "model"), str(tmp_path / "shards"), "--backend", "ray", "--out"]
    assert main([*line, str(tmp_path / "mine")]) == 2
    assert "is no folder of states of ours" in capsys.readouterr().err
