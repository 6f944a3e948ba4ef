"""Compiling takes seconds on first use: whoever watches is told of it, and nobody of code that is read from disk."""

import sys

import pytest
from numba import njit

from craftrl.engine import kernels, threads
from craftrl.progress import COMPILED, COMPILING, watched_by


def twice(x):
    return 2 * x


@pytest.fixture
def loop(monkeypatch):
    """A loop of ours that nobody has called yet."""
    monkeypatch.setattr(twice, "__module__", "craftrl.engine.of_a_test")
    return njit(twice)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_whoever_watches_hears_of_compiling_once(loop, n_threads):
    heard = []
    with watched_by(lambda what, h: heard.append(what)):
        assert list(threads.ordered_map(loop, [1, 2, 3], n_threads)) == [2, 4, 6]
    assert heard == [COMPILING, COMPILED]


def test_loops_of_others_are_not_told_of():
    heard = []
    with watched_by(lambda what, h: heard.append(what)):
        assert njit(twice)(2) == 4
    assert heard == []


def test_where_nobody_watches_a_terminal_is_told_once_and_a_log_never(loop, monkeypatch, capsys):
    monkeypatch.setattr(kernels.TOLD, "said", False)
    assert loop(1) == 2
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert (loop(1.0), loop(1j)) == (2.0, 2j)
    assert capsys.readouterr().err == f"craftrl: {COMPILING} ...\n"
