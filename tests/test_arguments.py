"""The shared checks of arguments: what passes, and what the sentence says of the rest."""

import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from craftrl import arguments
from craftrl.data.labels import as_array, as_labels
from craftrl.errors import InvalidDataError, InvalidParameterError


def learning_rate(value):
    arguments.check_number("lr", value, "a positive number", lambda v: v > 0)


@pytest.mark.parametrize("value", [1, 2.5, np.float32(1), np.int8(3), Fraction(1, 3)])
def test_numbers(value):
    learning_rate(value)


NO_NUMBERS = [True, None, "1", float("nan"), float("inf"), 10**400, 1j, np.ones(2), -1]


@pytest.mark.parametrize(
    ("check", "values", "told"),
    [
        (learning_rate, NO_NUMBERS, r"lr must be a positive number; .* was given"),
        (lambda v: arguments.check_whole("n", v), [True, 1.0, 2**63, -1, None], "n must be an integer of at least 0"),
        (lambda v: arguments.check_kind("world", v, dict, "a dict"), [dict, "text"], "world must be a dict"),
        (lambda v: arguments.check_function("make", v, "a function"), [dict, 3], "make must be a function"),
        (lambda v: arguments.check_method("model", v, "encode", "a model"), ["text", str], "model must be a model"),
        (lambda v: arguments.check_path("The store", v), ["", "a\0b", b"x", None, 3], "The store must be a path"),
        (
            lambda v: arguments.check_target("The store", v),
            [".", "/", "..", "a/.."],
            "must be a path that ends in a name",
        ),
        (
            lambda v: arguments.check_room_in_memory("It", v, "take less"),
            [9.09e8 * 2**30],
            r"must fit into memory; that needs 9.09e\+08 GiB",
        ),
    ],
    ids=["number", "whole", "kind", "function", "method", "path", "target", "memory"],
)
def test_what_is_not_what_it_must_be_is_refused(check, values, told):
    for value in values:
        with pytest.raises(InvalidParameterError, match=told):
            check(value)


def test_pipes_are_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidParameterError, match=r"must be a file or a folder; .*pipe.* was given"):
        arguments.check_source("The store", tmp_path / "pipe")
    assert arguments.check_source("The store", tmp_path / "new") == tmp_path / "new"
    with pytest.raises(InvalidParameterError, match=r"must be within reach; .* is not \(File name too long\)"):
        arguments.check_source("The store", tmp_path / ("n" * 300))


def test_a_folder_that_may_not_be_entered_is_told(monkeypatch, tmp_path):
    """Tests may run as a user who may enter everything, so the system's answer is made up."""

    def refused(path, **how):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", refused)
    for check in (arguments.check_source, arguments.check_target):
        with pytest.raises(InvalidParameterError, match=r"within reach; .*x.h5 is not .*denied.*rights"):
            check("The data", tmp_path / "x.h5")


def test_a_quoted_value_is_one_short_line():
    class Bad:
        def __repr__(self):
            raise RuntimeError

    assert arguments.quoted(10**5000) == "a value of type int"
    assert arguments.quoted(Bad()) == "a value of type Bad"
    text = arguments.quoted(np.zeros((40, 40)))
    assert len(text) <= 80
    assert "\n" not in text


def test_labels_are_whole_numbers_in_an_array():
    assert as_labels("states", [[0, 1], [2, -1]], 2).dtype == np.int64
    for bad in (None, [[1], [2, 3]], [0.5], ["a"], np.ma.masked_array([1, 2], mask=[0, 1]), object()):
        with pytest.raises(InvalidDataError, match="states must be whole numbers"):
            as_labels("states", bad)
    with pytest.raises(InvalidDataError, match=r"states must have shape \(n, H\)"):
        as_labels("states", [1, 2], 2)
    with pytest.raises(InvalidDataError, match="p must be finite numbers"):
        as_array("p", [1.0, np.nan])
