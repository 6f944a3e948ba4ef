"""Ray as executor: sums and fits as on one machine whatever dies, errors as themselves, one sentence for the rest."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray
from safetensors.numpy import load_file

from craftrl import CRAFT, load
from craftrl.cli import main
from craftrl.distributed import ray_address, read_states
from craftrl.distributed.executor import LocalExecutor
from craftrl.distributed.ray_executor import LARGE, RayExecutor
from craftrl.distributed.versions import check_versions, versions_elsewhere
from craftrl.engine.threads import usable_threads
from craftrl.envs import BitsExBMDP, collect
from craftrl.errors import ClusterError, InvalidDataError, InvalidParameterError, MissingDependencyError
from sharding import assert_same as assert_same_model
from sharding import fitted, write_shards

STORE = 80 * 2**20
LOCAL = LocalExecutor()
BOUNDS = {"alpha": 1.0, "eta": 0.2, "nu": 0.1}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head and a node of one core each; no other Ray on this machine hears of it."""
    from ray._private.authentication.authentication_token_setup import ensure_token_if_auth_enabled
    from ray.cluster_utils import Cluster

    folder = tempfile.mkdtemp(prefix="craftrl-ray-", dir="/tmp")  # Ray's sockets need short names
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ray._private.utils.write_ray_address", lambda *_: None)
        patch.setenv("RAY_AUTH_MODE", "token")  # as every Ray that this process starts
        ray_address.read_environment_again()
        ensure_token_if_auth_enabled()
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        node = {"object_store_memory": STORE, "include_dashboard": False, "temp_dir": folder}
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **node})
        cluster.add_node(num_cpus=1, object_store_memory=STORE)
        yield cluster
        cluster.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def executor(cluster: Any) -> Iterator[RayExecutor]:
    with RayExecutor(cluster.address, fan_in=3) as executor:
        yield executor


def counts(seed: int, size: int = 50) -> tuple[Any, Any]:
    """Stands for what a shard adds: two arrays of integers."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 9, (size, 3)), np.array([1 << seed, 1])


def picked(table: Any, i: int) -> int:
    return int(table[i])


def once(marker: Path, fail: Any, value: Any) -> Any:
    """The value, but only when it is tried again; every try is written down."""
    with open(marker, "a") as file:
        file.write("x")
    if marker.stat().st_size == 1:
        fail()
    return value


def broken() -> None:
    raise InvalidDataError("Every shard must be whole; this one is not.")


def unreachable() -> None:
    raise ConnectionResetError("the store hung up")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def beside(folder: Path, me: int, other: int) -> tuple[str, Any]:
    """Where this was done, and a value that is too large to travel with a message; done when the other is at work."""
    (folder / str(me)).touch()
    while not (folder / str(other)).exists():
        time.sleep(0.01)
    return ray.get_runtime_context().get_node_id(), counts(me, 50_000)


def first(values: tuple[Any, Any]) -> Any:
    return values[0]


def second(values: tuple[Any, Any]) -> Any:
    return values[1]


def assert_same(one: Any, other: Any) -> None:
    for a, b in zip(one, other, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("n", [1, 3, 11])
def test_a_sum_has_every_value_once_in_a_tree(executor: RayExecutor, n: int) -> None:
    here = LOCAL.total([counts(i) for i in range(n)])
    there = executor.total([executor.submit(counts, i) for i in range(n)])
    assert_same(here, there)
    assert there[1][0] == 2**n - 1  # one bit for each


def test_values_stay_away_and_handles_stand_for_them(executor: RayExecutor) -> None:
    handle = executor.submit(counts, 3)
    assert isinstance(handle, ray.ObjectRef)
    assert_same([executor.get([executor.submit(second, handle)])[0]], [counts(3)[1]])


def test_a_large_argument_travels_once(executor: RayExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    put: list[Any] = []
    real = ray.put
    monkeypatch.setattr(ray, "put", lambda value: put.append(value) or real(value))
    table = np.arange(LARGE)
    function = partial(picked, table)  # a function that holds a table is as large as that
    handles = [executor.submit(picked, table, i) for i in range(5)] + [executor.submit(function, i) for i in range(5)]
    assert executor.get(handles) == [*range(5), *range(5)]
    assert len(put) == 2
    assert put[0] is table


def test_a_task_has_one_thread(executor: RayExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    assert executor.workers == 2
    assert executor.get([executor.submit(usable_threads)]) == [1]


def test_our_errors_come_as_themselves_and_are_not_tried_again(executor: RayExecutor, tmp_path: Path) -> None:
    marker = tmp_path / "tries"
    handles = [executor.submit(counts, i) for i in range(8)] + [executor.submit(once, marker, broken, counts(8))]
    with pytest.raises(InvalidDataError, match="this one is not") as caught:
        executor.total(handles)
    assert type(caught.value) is InvalidDataError
    assert caught.value.__cause__ is None
    assert marker.read_text() == "x"


@pytest.mark.parametrize("fail", [unreachable, die])
def test_what_fails_for_a_while_is_done_again_and_counted_once(
    executor: RayExecutor, tmp_path: Path, fail: Any
) -> None:
    here = LOCAL.total([counts(i) for i in range(9)])
    handles = [executor.submit(counts, i) for i in range(8)]
    handles.append(executor.submit(once, tmp_path / "tries", fail, counts(8)))
    assert_same(here, executor.total(handles))
    assert (tmp_path / "tries").read_text() == "xx"


def test_a_worker_that_always_dies_is_told_in_one_sentence(executor: RayExecutor) -> None:
    with RayExecutor(retries=1) as stubborn, pytest.raises(ClusterError, match="WorkerCrashedError") as caught:
        stubborn.total([stubborn.submit(counts, 1), stubborn.submit(die)])
    assert str(caught.value).count("\n") == 0
    assert ray.is_initialized()  # the connection was another's, and stays


class Meddling:
    """An executor that does something before the first task of a kind, or to it."""

    def __init__(self, executor: RayExecutor, kind: str, act: Any = None, marker: Path | None = None) -> None:
        self.executor, self.kind, self.act, self.marker = executor, kind, act, marker
        self.get, self.total, self.close = executor.get, executor.total, executor.close
        self.workers = executor.workers

    def submit(self, function: Any, *args: Any) -> Any:
        if function.__name__ == self.kind and self.act is not None:
            act, self.act = self.act, None
            if self.marker is not None:
                return self.executor.submit(after, self.marker, act, function, *args)
            act()
        return self.executor.submit(function, *args)


def after(marker: Path, fail: Any, function: Any, *args: Any) -> Any:
    return once(marker, fail, None) or function(*args)


def test_one_handle_may_count_twice_and_what_is_none_is_refused(executor: RayExecutor) -> None:
    one = executor.submit(np.sum, np.arange(4))
    assert executor.total([one, one]) == 12
    assert executor.get([one, one]) == [6, 6]
    for odd in ([None], [np.arange(3)], ["x", one]):
        with pytest.raises(InvalidParameterError, match="Each of handles must be what submit gives"):
            executor.get(odd)
        with pytest.raises(InvalidParameterError, match="Each of handles must be what submit gives"):
            executor.total(odd)


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    world = BitsExBMDP(4, 10, seed=0)
    tau = collect(world, world.paper_policies(), 1200, seed=0).tau
    return write_shards(tau, tmp_path_factory.mktemp("data") / "shards", 400)


@pytest.fixture(scope="module")
def here(shards: Path) -> CRAFT:
    return fitted(shards, **BOUNDS)[0]


@pytest.mark.parametrize("kind", ["packed", "answered"])
def test_a_worker_that_dies_during_a_fit_changes_nothing(
    executor: RayExecutor, shards: Path, here: CRAFT, tmp_path: Path, kind: str
) -> None:
    meddling = Meddling(executor, kind, die, tmp_path / "tries")
    assert_same_model(here, fitted(shards, meddling, **BOUNDS)[0])
    assert (tmp_path / "tries").read_text() == "xx"


def test_a_shard_that_vanishes_is_named_if_it_is_still_needed(
    executor: RayExecutor, shards: Path, here: CRAFT, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(shards, tmp_path / "shards"))
    victim = copy / "shard_00004.npz"
    with pytest.raises(InvalidDataError, match=victim.name):
        fitted(copy, Meddling(executor, "packed", victim.unlink), **BOUNDS)
    shutil.copy(shards / victim.name, victim)
    later = Meddling(executor, "answered", victim.unlink)  # all shards have been read by then
    assert_same_model(here, fitted(copy, later, **BOUNDS)[0])


def test_the_command_does_on_ray_what_it_does_here(
    executor: RayExecutor, shards: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = []
    for backend in ("local", "ray"):
        assert main(["fit", str(shards), "--backend", backend, "--out", str(tmp_path / backend)]) == 0
        texts.append(re.sub(r"[\d.e-]+ s\.", "", capsys.readouterr().out))
    here, there = (text[text.index("Chosen:") : text.index("Written to")] for text in texts)
    assert here == there
    one, other = load(tmp_path / "local"), load(tmp_path / "ray")
    assert_same_model(one, other)
    assert not hasattr(other, "labels_")
    assert saved(tmp_path / "local") == saved(tmp_path / "ray")
    argv = ["encode", str(tmp_path / "ray"), str(shards), "--backend", "ray", "--out", str(tmp_path / "states")]
    assert main(argv) == 0
    states = np.concatenate([part.load() for part in read_states(tmp_path / "states")])
    np.testing.assert_array_equal(states, one.labels_)


def test_a_connection_that_is_there_is_used_as_it_is(executor: RayExecutor, cluster: Any) -> None:
    with RayExecutor(cluster.address) as same:
        assert same.get([same.submit(sum, [1, 2])]) == [3]
    for options in ({"address": "10.1.2.3:6379"}, {"workers": 1}, {"store_bytes": STORE}):
        with pytest.raises(InvalidParameterError, match="connected to the Ray at"):
            RayExecutor(**options)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameterError, match="must be open"):
        same.submit(sum, [1, 2])


def test_a_driver_that_differs_from_its_nodes_is_refused(
    executor: RayExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = np.__version__
    monkeypatch.setattr(np, "__version__", "0.1")
    with pytest.raises(ClusterError, match=rf"node \S+ has NumPy {there}, the driver NumPy 0.1; install the same"):
        RayExecutor()


def test_nodes_that_differ_are_named_with_both_versions() -> None:
    ours = versions_elsewhere()()
    assert ours.keys() == {"Python", "NumPy", "numba", "craftrl"}
    check_versions(["10.0.0.1"], [dict(ours)])
    theirs = ours | {"NumPy": "1.0", "craftrl": "(missing)"}
    with pytest.raises(ClusterError, match=rf"node 10.0.0.2 has NumPy 1.0, craftrl \(missing\), .*{np.__version__}"):
        check_versions(["10.0.0.1", "10.0.0.2"], [ours, theirs])


def test_what_a_lost_node_held_is_made_again(executor: RayExecutor, cluster: Any, tmp_path: Path) -> None:
    """The last test with this cluster: its node goes, and with it values that a sum still needs."""
    pairs = [executor.submit(beside, tmp_path, me, 1 - me) for me in range(2)]  # on one core each
    handles = [executor.submit(second, pair) for pair in pairs]
    (lost,) = cluster.worker_nodes
    assert lost.node_id in executor.get([executor.submit(first, pair) for pair in pairs])
    ray.wait(handles, num_returns=2, fetch_local=False)
    cluster.remove_node(lost)
    assert_same(LOCAL.total([counts(me, 50_000) for me in range(2)]), executor.total(handles))


def saved(folder: Path) -> Any:
    """What a model's folder says, but labels and times, and what these change."""
    config = json.loads((folder / "config.json").read_text())
    arrays = load_file(folder / "arrays.safetensors")

    def content(value: Any) -> Any:
        if isinstance(value, dict) and set(value) == {"array"}:
            return arrays[value["array"]].dtype.str, arrays[value["array"]].tolist()
        if isinstance(value, dict):
            return {k: content(v) for k, v in value.items() if k not in ("labels_", "seconds", "checksum", "files")}
        return [content(part) for part in value] if isinstance(value, list) else value

    return content(config)


class TestWithoutCluster:
    """No Ray is started here."""

    @pytest.mark.parametrize("address", ["http://a:1", "a", "a:b", "ray://a", ":1", "a:99999", 7])
    def test_an_address_must_look_like_one(self, address: Any) -> None:
        with pytest.raises(InvalidParameterError, match="address must be HOST:PORT"):
            RayExecutor(address)

    @pytest.mark.parametrize("scheme", ["", "ray://"])
    def test_nobody_at_the_address(self, monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
        monkeypatch.setattr(ray, "is_initialized", lambda: False)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # nobody else gets this port, and nobody listens
            with pytest.raises(ClusterError, match=r"none does .*refused"):
                RayExecutor(f"{scheme}127.0.0.1:{taken.getsockname()[1]}")

    def test_something_else_at_the_address(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ray, "is_initialized", lambda: False)
        monkeypatch.setattr(ray_address, "PATIENCE", 1.0)
        nobody = pytest.raises(ClusterError, match="something is there, but no Ray")
        with socket.create_server(("127.0.0.1", 0)) as silent, nobody:
            RayExecutor(f"127.0.0.1:{silent.getsockname()[1]}")

    def test_only_a_ray_of_its_own_can_be_sized(self) -> None:
        with pytest.raises(InvalidParameterError, match="workers is for a Ray on this machine"):
            RayExecutor("10.1.2.3:6379", workers=2)
        for options in ({"workers": 0}, {"store_bytes": 1}, {"fan_in": 1}, {"retries": -1}):
            with pytest.raises(InvalidParameterError, match="must be an integer"):
                RayExecutor(**options)  # type: ignore[arg-type]

    def test_without_ray_it_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "ray", None)
        with pytest.raises(MissingDependencyError, match=r"craftrl\[ray\]"):
            RayExecutor()

    def test_a_ray_of_its_own_is_quiet_and_leaves_nothing(
        self, shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One worker, started by the command; the model is the same as that of no worker at all."""
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        argv = ["fit", str(shards), "--alpha", "1", "--eta", "1/5", "--nu", "1/10"]
        assert main([*argv, "--out", str(tmp_path / "local")]) == 0
        argv += ["--backend", "ray", "--workers", "1", "--out", str(tmp_path / "ray")]
        run = subprocess.run([sys.executable, "-m", "craftrl", *argv], capture_output=True, text=True, check=False)
        assert (run.returncode, re.sub(r"(shards|fit|run \d).*", "", run.stderr).strip()) == (0, "")
        assert run.stdout.startswith("Data: ")
        assert saved(tmp_path / "local") == saved(tmp_path / "ray")

    @pytest.mark.parametrize(
        ("argv", "words"),
        [
            (["fit", "{h5}", "--backend", "ray"], "needs one folder of shards"),
            (["fit", "{shards}", "{shards}", "--backend", "ray"], "2 paths were given"),
            (["fit", "{shards}", "--backend", "ray", "--oracle", "classifier"], "fit that on one machine"),
            (["fit", "{shards}", "--backend", "ray", "--diagnose", "3"], "--diagnose is for data that one machine"),
            (["fit", "{shards}", "--backend", "ray", "--address", "http://a"], "address must be HOST:PORT"),
            (["fit", "{shards}", "--workers", "2"], "--workers is for a cluster; add --backend ray"),
            (["encode", "model", "{shards}", "--backend", "ray", "--out", "a.csv"], "--out must be a folder"),
            (["encode", "model", "{shards}", "--address", "auto"], "--address is for a cluster"),
        ],
    )
    def test_the_command_says_in_one_sentence_what_it_cannot(
        self, shards: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], argv: list[str], words: str
    ) -> None:
        (tmp_path / "data.h5").touch()
        argv = [arg.format(h5=tmp_path / "data.h5", shards=shards) for arg in argv]
        out = [] if "--out" in argv else ["--out", str(tmp_path / "out")]
        assert main([*argv, *out]) == 2
        err = capsys.readouterr().err
        assert words in err
        assert len(err.splitlines()) == 1
        assert not (tmp_path / "out").exists()
