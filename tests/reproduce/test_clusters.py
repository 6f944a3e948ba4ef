"""Sweeps on clusters of Ray and Dask: the rows of one process, to the byte; killed, they go on; or one sentence."""

from __future__ import annotations

import os
import socket
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from craftrl.cli import main
from craftrl.distributed.ray_executor import RayExecutor
from craftrl.distributed.versions import check_versions, versions_elsewhere
from craftrl.errors import AssumptionWarning, ClusterError, CraftError, InvalidParameterError
from craftrl.reproduce.dask_cluster import joined_dask
from craftrl.reproduce.runner import run_sweep, seed_of
from craftrl.reproduce.workers import Workers


@dataclass(frozen=True)
class Draw:
    size: int
    seed: int


DRAWS = [Draw(size, seed) for size in (2, 3) for seed in range(3)]


def draw(settings: Draw) -> dict[str, Any]:
    warnings.warn("silenced in workers, as here", AssumptionWarning, stacklevel=1)
    rng = np.random.default_rng(seed_of("draw", settings.size, settings.seed))
    threads = {os.environ.get(f"{name}_NUM_THREADS") for name in ("OMP", "NUMBA", "CRAFTRL")}
    alone = threads == {"1"} or os.environ.get("DRIVER") == str(os.getpid())
    return {"numbers": rng.random(settings.size), "best": np.int64(rng.integers(10)), "one thread": alone}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


# -- bad input, all on the command line: one sentence, code 2, nothing left behind --------------------------------


@pytest.mark.parametrize("backend", ["ray", "dask"])
def test_nobody_at_the_address(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    monkeypatch.setattr("craftrl.reproduce.dask_cluster.PATIENCE", 0.5)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # taken, and not listening
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        argv = ["reproduce", "table1", "--backend", backend, "--address", address, "--out", str(tmp_path / "out")]
        assert main(argv) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"A {backend.capitalize()} cluster must answer at ")
    assert address in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("backend", ["ray", "dask"])
def test_a_missing_package(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    monkeypatch.setitem(sys.modules, {"ray": "ray", "dask": "distributed"}[backend], None)
    assert main(["reproduce", "table1", "--backend", backend, "--out", str(tmp_path / "out")]) == 2
    assert f"pip install 'craftrl[{backend}]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("workers", "message"),
    [
        (Workers(0, "ray"), "workers must be an integer of at least 1; 0 was given"),
        (Workers(2, "spark"), "backend must be one of loky, ray, dask; 'spark' was given"),
        (Workers(2, "loky", "host:1"), "An address goes with a cluster; 'host:1' was given; add --backend ray"),
    ],
)
def test_senseless_workers(workers: Workers, message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        workers.check()


# -- the same rows, whatever happens -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dask() -> Iterator[Any]:
    with joined_dask(None, 2) as client:
        yield client


@pytest.fixture(scope="module")
def ray() -> Iterator[None]:
    with RayExecutor(workers=2, store_bytes=100 * 2**20):
        yield


@pytest.fixture
def clusters(ray: None, dask: Any) -> dict[str, str | None]:
    """Two workers of each kind. Ray is joined by this process already; Dask is joined by its address."""
    dask.wait_for_workers(2)  # one that died is replaced
    return {"ray": None, "dask": dask.scheduler.address}


@pytest.fixture
def whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    monkeypatch.setenv("DRIVER", str(os.getpid()))
    run_sweep("draws", DRAWS, draw, tmp_path / "here", progress=False)
    return contents(tmp_path / "here")


@pytest.mark.parametrize("backend", ["ray", "dask"])
def test_a_cluster_writes_the_rows_of_one_process(
    tmp_path: Path, clusters: dict[str, str | None], whole: dict[str, bytes], backend: str
) -> None:
    where = {"backend": backend, "address": clusters[backend]}
    run_sweep("draws", DRAWS, draw, tmp_path / "there", 2, progress=False, **where)
    assert contents(tmp_path / "there") == whole


@pytest.mark.parametrize("backend", ["ray", "dask"])
def test_finished_rows_outlive_a_run_that_fails_and_a_worker_that_dies(
    tmp_path: Path, clusters: dict[str, str | None], dask: Any, whole: dict[str, bytes], backend: str
) -> None:
    """The first run of a worker kills it; the last run fails. All other rows are there, and the sweep goes on."""
    once = tmp_path / "killed once"

    def fragile(settings: Draw) -> dict[str, Any]:
        if settings == DRAWS[1] and not once.exists():
            once.touch()
            os._exit(1)
        if settings == DRAWS[-1]:
            raise InvalidParameterError("The last run fails.")
        return draw(settings)

    where = {"backend": backend, "address": clusters[backend], "progress": False}
    with pytest.raises(InvalidParameterError, match=r"^The last run fails\.$"):
        run_sweep("draws", DRAWS, fragile, tmp_path / "out", 1, **where)
    assert once.exists()
    assert len(list((tmp_path / "out" / "rows").glob("*.json"))) == len(DRAWS) - 1
    dask.wait_for_workers(2)
    run_sweep("draws", DRAWS, draw, tmp_path / "out", 2, **where)
    assert contents(tmp_path / "out") == whole


def test_rows_are_on_disk_while_others_still_run(tmp_path: Path, clusters: dict[str, str | None]) -> None:
    """The second run ends when it sees the row of the first, which this process has written."""
    rows = tmp_path / "out" / "rows"

    def waits(settings: Draw) -> dict[str, Any]:
        import time

        end = time.monotonic() + 60
        while settings.seed == 1 and not list(rows.glob("*.json")) and time.monotonic() < end:
            time.sleep(0.01)
        return {"seen": len(list(rows.glob("*.json")))}

    for backend in ("ray", "dask"):
        where = {"backend": backend, "address": clusters[backend], "progress": False}
        seen = run_sweep("waits", DRAWS[:2], waits, tmp_path / "out", 2, **where)
        assert [row["seen"] for row in seen] == [0, 1]
        for path in sorted((tmp_path / "out").rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()


def test_more_workers_than_there_are(tmp_path: Path, clusters: dict[str, str | None]) -> None:
    for backend, address in clusters.items():
        with pytest.raises(InvalidParameterError, match="it has 2, and 5 were asked for; ask for fewer"):
            run_sweep("draws", DRAWS, draw, tmp_path, 5, progress=False, backend=backend, address=address)


def test_a_worker_without_the_code_of_the_study(
    tmp_path: Path, clusters: dict[str, str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_here.py").write_text("def run_one(settings):\n    return {}\n")
    monkeypatch.syspath_prepend(tmp_path)
    import only_here

    with pytest.raises(CraftError, match=r"must have the code of the study; one has not .*only_here"):
        run_sweep("draws", DRAWS, only_here.run_one, tmp_path / "out", 2, progress=False, backend="ray")


def test_a_dask_worker_that_differs_is_refused(dask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = versions_elsewhere()()
    older = {**ours, "NumPy": "1.0"}
    monkeypatch.setattr("craftrl.reproduce.dask_cluster.versions_elsewhere", lambda: lambda: older)
    refused = pytest.raises(ClusterError, match=rf"has NumPy 1.0, the driver NumPy {ours['NumPy']}; install the same")
    with refused, joined_dask(dask.scheduler.address, 1):
        pass
    check_versions(["10.0.0.1"], [ours])
