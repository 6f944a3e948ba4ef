"""As many threads as allowed, results in order, and whoever watches is told of what is compiled."""

import sys
import threading
import time

import joblib
import pytest
from numba import njit

from craftrl import InvalidParameterError
from craftrl.engine import kernels
from craftrl.engine.threads import LIMITS, ordered_map, usable_threads
from craftrl.progress import COMPILED, COMPILING, watched_by


def test_all_cores_by_default_and_fewer_by_the_environment(monkeypatch):
    for name in LIMITS:
        monkeypatch.delenv(name, raising=False)
    assert usable_threads() == joblib.cpu_count()
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert usable_threads() == 3
    monkeypatch.setenv("CRAFTRL_NUM_THREADS", "2")
    assert usable_threads() == 2
    assert usable_threads(5) == 5
    for none in (0, True, 1.5, "two"):
        with pytest.raises(InvalidParameterError, match="n_threads must be an integer of at least 1"):
            usable_threads(none)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_one_inside_a_parallel_experiment(backend, monkeypatch):
    for name in LIMITS:
        monkeypatch.delenv(name, raising=False)
    found = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(usable_threads)() for _ in range(4))
    limit = max(1, joblib.cpu_count() // 2) if backend == "loky" else 1  # what joblib grants each process
    assert found == [limit] * 4


def test_results_come_in_order_from_several_threads_and_errors_are_raised():
    names = set()

    def slow_square(i):
        names.add(threading.current_thread().name)
        time.sleep(0.002 * (5 - i % 5))
        return i * i

    assert list(ordered_map(slow_square, range(20), 4)) == [i * i for i in range(20)]
    assert len(names) > 1
    with pytest.raises(ZeroDivisionError):
        list(ordered_map(lambda i: 1 // (i - 3), range(10), 2))


def twice(x):
    return 2 * x


@pytest.fixture
def loop(monkeypatch):
    """A loop of ours that nobody has called yet."""
    monkeypatch.setattr(twice, "__module__", "craftrl.engine.of_a_test")
    return njit(twice)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_whoever_watches_hears_of_compiling_once_and_of_nobody_elses(loop, n_threads, monkeypatch):
    heard = []
    with watched_by(lambda what, *_: heard.append(what)):
        assert list(ordered_map(loop, [1, 2, 3], n_threads)) == [2, 4, 6]
        monkeypatch.setattr(twice, "__module__", "theirs")
        assert njit(twice)(2) == 4
    assert heard == [COMPILING, COMPILED]


def test_where_nobody_watches_a_terminal_is_told_once_and_a_log_never(loop, monkeypatch, capsys):
    monkeypatch.setattr(kernels.LISTENER, "said", False)
    assert loop(1) == 2
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert (loop(1.0), loop(1j)) == (2.0, 2j)
    assert capsys.readouterr().err == f"craftrl: {COMPILING} ...\n"
