"""The cost model against what it describes: real fits on shards, real planes, and a simulation of the tree."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from craftrl import CRAFT, CoordinateOracle
from craftrl.cli import main
from craftrl.core.limits import check_sums
from craftrl.data.shards import ShardWriter
from craftrl.distributed.cost import estimate, round_seconds, tree_levels, where_reduction_dominates
from craftrl.distributed.dataset import parts_of
from craftrl.distributed.executor import LocalExecutor, added
from craftrl.distributed.fitting import fit_on_shards
from craftrl.distributed.forecast import Forecast, NetworkJob, in_bytes, in_time, job_of
from craftrl.distributed.job import Cluster, Job
from craftrl.distributed.parts import packed
from craftrl.distributed.rates import Rates
from craftrl.distributed.simulation import Stragglers, simulated_round
from craftrl.envs import BitsExBMDP, collect
from craftrl.errors import InvalidParameterError

RATES = Rates.shipped()
LARGE = Job(10**9, shard_bytes=2**31)
H, M, N = 9, 48, 600


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of sizes that no constant was fitted to: four shards."""
    path = tmp_path_factory.mktemp("cost") / "shards"
    world = BitsExBMDP(H, M, seed=0)
    tau = collect(world, world.paper_policies(), N // 2, seed=0).tau
    x = np.stack([tau.at(h) for h in range(1, H + 1)], axis=1)
    with ShardWriter(path, H, (M,), np.uint8) as out:
        for agent in (0, 1):
            out.append(agent, x[tau.agent == agent][: N // 4])
            out.append(agent, x[tau.agent == agent][N // 4 :])
    return path


class Counting:
    """How many rounds there were, and how many bytes their sums had."""

    workers = 1

    def __init__(self) -> None:
        self.rounds, self.n_bytes = 0, 0

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)

    def get(self, handles: Sequence[Any]) -> list[Any]:
        return list(handles)

    def total(self, handles: Sequence[Any]) -> Any:
        value = added(*handles)
        self.rounds += 1
        self.n_bytes += _nbytes(value)
        return value

    def close(self) -> None:
        pass


def _nbytes(value: Any) -> int:
    return sum(map(_nbytes, value)) if isinstance(value, tuple) else np.asarray(value).nbytes


@pytest.mark.parametrize("coupling", ["independent", "chain", "markov"])
def test_rounds_and_bytes_are_those_of_a_fit(shards: Path, coupling: str) -> None:
    executor = Counting()
    model = CRAFT(CoordinateOracle(), alpha=math.log(3), eta=0.2, nu=5 / 32, coupling=coupling)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit_on_shards(model, shards, executor)
    assert executor.rounds == pytest.approx(RATES.rounds_of(coupling, H, bounds_given=True), rel=0.1)
    # Counts come in blocks of 5 x 40 encoders, which 48 fill badly: the model leaves that out.
    assert executor.n_bytes == pytest.approx(RATES.reduced_bytes(coupling, 2, M, H), rel=0.35)


def test_memory_of_a_worker_is_that_of_its_planes(shards: Path) -> None:
    """To the next 512 trajectories, in which planes are counted."""
    parts = [part for part, _ in parts_of(shards, LocalExecutor())]
    n = sum(part.shard.n for part in parts)
    held = sum(step.planes.nbytes for part in parts for step in packed([part], CoordinateOracle()).steps)
    formula = Job(n, H, M).packed_bytes
    assert formula <= held <= formula + len(parts) * H * M * 512 / 8


def test_a_tree_adds_all_leaves() -> None:
    assert tree_levels(1, 8) == []
    assert tree_levels(512, 8) == [(512, 64), (64, 8), (8, 1)]
    assert tree_levels(513, 8) == [(513, 65), (65, 9), (9, 2), (2, 1)]


def test_more_nodes_shorten_what_is_shared_and_nothing_else() -> None:
    one, ten, thousand = (estimate(LARGE, Cluster(nodes), RATES) for nodes in (1, 10, 1000))
    assert one.shared > ten.shared > thousand.shared
    assert thousand.reduction == pytest.approx(ten.reduction, rel=0.1)
    assert one.decide == ten.decide == thousand.decide
    assert ten.worker_bytes > thousand.worker_bytes
    assert ten.driver_bytes == thousand.driver_bytes
    assert ten.money == pytest.approx(10 * ten.seconds / 3600)
    local = estimate(LARGE, Cluster(1), RATES, local=True)
    assert (local.start, local.reduction, local.moved_bytes) == (0, 0, 0)


def test_the_point_where_reduction_dominates_is_where_it_begins_to() -> None:
    where = where_reduction_dominates(LARGE, Cluster(), RATES)
    assert where is not None
    before, there = (estimate(LARGE, Cluster(nodes), RATES) for nodes in (where - 1, where))
    assert before.reduction <= before.shared
    assert there.reduction > there.shared
    free = replace(RATES, task=0.0, dispatch=0.0, hop=0.0, add=math.inf)
    assert where_reduction_dominates(LARGE, Cluster(bandwidth=1e15), free, most=1000) is None


@pytest.mark.parametrize("nodes", [2, 20, 200])
@pytest.mark.parametrize("n_bytes", [1e3, 1e6])
def test_the_closed_form_is_what_a_simulation_finds(nodes: int, n_bytes: float) -> None:
    cluster = Cluster(nodes)
    shards = max(600, cluster.cores)
    closed = round_seconds(shards, min(shards, cluster.cores), n_bytes, cluster, RATES)
    assert simulated_round(shards, n_bytes, cluster, RATES) == pytest.approx(closed, rel=0.35)


def test_stragglers_hold_up_a_round_by_what_they_take() -> None:
    cluster, work = Cluster(100), 1.0
    smooth = simulated_round(1600, 1e3, cluster, RATES, work)
    held_up = simulated_round(1600, 1e3, cluster, RATES, work, Stragglers(0.05, 10.0), seed=3)
    assert held_up == simulated_round(1600, 1e3, cluster, RATES, work, Stragglers(0.05, 10.0), seed=3)
    assert smooth + 8 * work < held_up < smooth + 10 * (work + RATES.task)


# -- craftrl estimate ------------------------------------------------------------------------------------------------


def test_sizes_come_from_the_data_and_options_go_first(shards: Path) -> None:
    assert job_of(shards) == Job(N, H, M, files=4)
    assert job_of(shards, shard_bytes=10**6) == Job(N, H, M, shard_bytes=10**6)
    assert job_of(shards, trajectories=10**6, coupling="chain") == Job(10**6, H, M, coupling="chain")


def test_a_forecast_has_every_phase_and_size(shards: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["estimate", str(shards), "--trajectories", "1e9", "--nodes", "10", "1000", "--frames-per-second", "2e4"]
    assert main(argv) == 0
    out = capsys.readouterr().out
    assert "1,000,000,000 trajectories of 2 agents, H = 9, 48 features of 2 values: 432 GB" in out
    forecast = Forecast(job_of(shards, trajectories=10**9), Cluster(), [10, 1000], RATES)
    assert str(forecast) in out
    assert list(forecast.columns) == ["1 machine", "10 nodes", "1,000 nodes"]
    for name in (
        "read and pack",
        "reduce in a tree",
        "memory of a core",
        "moved in the tree",
        "cost",
        "would hardly be quicker",
    ):
        assert name in out
    assert "10 ranks:" in out


def test_the_shards_that_there_are_are_the_tasks_of_a_round(shards: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert job_of(shards).tasks(1000) == 4
    assert job_of(shards, trajectories=10**6).tasks(2) == 7  # of 64 MiB each
    assert main(["estimate", str(shards), "--nodes", "1"]) == 0
    out = capsys.readouterr().out
    assert "; 4 shards; " in out
    assert "At most 4 cores work at once, one for each shard" in out


def test_a_cluster_that_does_not_pay_is_advised_against(capsys: pytest.CaptureFixture[str]) -> None:
    sentence = "One machine without a cluster is quicker than that: leave out --backend ray."
    for trajectories, pays in (("1e4", False), ("1e9", True)):
        assert main(["estimate", "--trajectories", trajectories]) == 0
        assert (sentence in capsys.readouterr().out) != pays


@pytest.mark.parametrize(("n", "coupling"), [(10**8, "markov"), (2 * 10**8, "chain"), (10**9, "independent")])
def test_left_to_itself_an_estimate_takes_the_coupling_of_the_fit(n: int, coupling: str) -> None:
    job = Job(n, horizon=30)
    assert job.taken == coupling
    assert estimate(job, Cluster(10), RATES) == estimate(replace(job, coupling=coupling), Cluster(10), RATES)
    text = str(Forecast(job, Cluster(), [10], RATES))
    assert f"\ncoupling {coupling}" in text
    assert ('are more than "markov" can add up' in text) == (coupling != "markov")


def test_a_coupling_that_cannot_add_up_so_many_losses_is_refused_as_by_the_fit() -> None:
    with pytest.raises(InvalidParameterError) as by_fit:
        check_sums("markov", [10**9] * 29, 2, 2)
    with pytest.raises(InvalidParameterError) as here:
        Job(10**9, horizon=30, coupling="markov")
    assert str(here.value) == str(by_fit.value)
    assert "use coupling='independent', fewer" in str(here.value)
    with pytest.raises(InvalidParameterError, match="too many for it; use fewer trajectories or fewer steps"):
        Job(10**11, agents=64)


def test_a_network_is_a_matter_of_frames() -> None:
    job = NetworkJob(frames=10**6, frame_bytes=100, frames_per_second=1000, epochs=4)
    assert job.seconds(1) == pytest.approx(10**4)
    assert job.seconds(2) == pytest.approx(10**4 / 1.8)


def test_calibration_measures_this_machine() -> None:
    found = RATES.calibrated()
    assert found.read != RATES.read
    assert 1e7 < found.read < 1e12
    assert 1e9 < found.count < 1e15
    assert found.rounds == RATES.rounds


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "An estimate needs sizes; neither DATA nor --trajectories was given"),
        (["no_such_folder"], "no_such_folder"),
        (["--trajectories", "1"], "trajectories must be an integer of at least 2; 1 was given"),
        (["--trajectories", "1e9", "--horizon", "1"], "horizon must be an integer from 2 to 1000000; 1 was given"),
        (["--trajectories", "1e3", "--horizon", "1e12"], "horizon must be an integer from 2 to 1000000"),
        (["--trajectories", "1e10"], "fewer than 2**31 trajectories of an agent; 5000000000 were given"),
        (["--trajectories", "1e9", "--bandwidth", "0"], "bandwidth must be a number of bytes a second, from 1 to 1e15"),
        (["--trajectories", "1e9", "--frames-per-second", "0"], "frames_per_second must be a number from 1e-6"),
    ],
)
def test_one_sentence_for_what_cannot_be(argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["estimate", *argv]) == 2
    out, error = capsys.readouterr()
    assert not out
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("text", ["1.5", "0", "many", "1e400"])
def test_no_whole_numbers(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["estimate", "--trajectories", text])
    assert "must be a whole number of at least 1, such as 5000 or 1e9" in capsys.readouterr().err


def test_no_such_coupling() -> None:
    with pytest.raises(InvalidParameterError, match="coupling must be auto or one of independent, chain"):
        Job(10, coupling="strong")


def test_words_for_sizes() -> None:
    assert [in_time(s) for s in (0, 0.42, 59, 150, 9000, 10**6)] == [
        "0 s",
        "0.4 s",
        "59 s",
        "2.5 min",
        "2.5 h",
        "11.6 days",
    ]
    assert [in_bytes(n) for n in (12, 3.84e12, 2**20, 5e16)] == ["12 B", "3.84 TB", "1.05 MB", "50 PB"]
