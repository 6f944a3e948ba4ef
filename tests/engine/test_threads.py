"""As many threads as allowed, one inside a parallel experiment, and results in order."""

import threading
import time

import joblib
import pytest

from craftrl import InvalidParameterError
from craftrl.engine.threads import LIMITS, ordered_map, usable_threads


@pytest.fixture(autouse=True)
def no_limits(monkeypatch):
    for name in LIMITS:
        monkeypatch.delenv(name, raising=False)


def test_all_cores_by_default():
    assert usable_threads() == joblib.cpu_count()
    assert usable_threads(7) == 7


def test_limits_of_the_environment(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert usable_threads() == 3
    monkeypatch.setenv("CRAFTRL_NUM_THREADS", "2")
    assert usable_threads() == 2
    assert usable_threads(5) == 5


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_one_inside_a_parallel_experiment(backend):
    found = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(usable_threads)() for _ in range(4))
    limit = max(1, joblib.cpu_count() // 2) if backend == "loky" else 1  # what joblib grants each process
    assert found == [limit] * 4


def test_results_come_in_order_from_several_threads():
    names = set()

    def slow_square(i):
        names.add(threading.current_thread().name)
        time.sleep(0.002 * (5 - i % 5))
        return i * i

    assert list(ordered_map(slow_square, range(20), 4)) == [i * i for i in range(20)]
    assert len(names) > 1


def test_an_error_in_a_thread_is_raised():
    with pytest.raises(ZeroDivisionError):
        list(ordered_map(lambda i: 1 // (i - 3), range(10), 2))


@pytest.mark.parametrize("n_threads", [0, True, 1.5, "two"])
def test_numbers_of_threads_that_mean_nothing(n_threads):
    with pytest.raises(InvalidParameterError, match="n_threads must be an integer of at least 1"):
        usable_threads(n_threads)
