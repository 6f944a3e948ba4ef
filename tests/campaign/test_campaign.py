"""A part of the campaign with fixed seeds: odd arguments and texts, damaged files, commands that are stopped."""

import os
import random
import sys
import warnings
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from campaign import calls, commands, files
from campaign.__main__ import FAULTS
from campaign.bench import Bench
from campaign.cases import answers
from campaign.disturb import KINDS, bits, disturb

LONG = ("NeuralOracle", "Training", "export_onnx", "render", "write_plan", "write_report", "check_gym_world")


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    calls.make_odd_paths(folder)
    before = Path.cwd()
    os.chdir(folder)
    yield Bench(folder)
    os.chdir(before)


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# -- arguments -----------------------------------------------------------------------------------------------------


def test_every_public_callable_is_called_and_its_call_works(bench):
    errors = {name for name, of in calls.PUBLIC.items() if isinstance(of, type) and issubclass(of, BaseException)}
    public = {name for name, of in calls.PUBLIC.items() if callable(of)} - errors - calls.NOT_CALLED
    assert public - set(calls.CALLS) == set()
    works = {name: calls.tried({"call": name, "parameter": None, "odd": None}, bench) for name in calls.CALLS}
    assert {name: said for name, said in works.items() if said["outcome"] != "fine"} == {}


@cache
def argument_cases(bench):
    return [case for case in calls.cases(bench) if case["parameter"] and case["call"] not in LONG]


@settings(max_examples=400, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_odd_arguments_get_a_result_or_one_of_our_errors(bench, data):
    case = data.draw(st.sampled_from(argument_cases(bench)))
    found = calls.tried(case, bench)
    assert found["outcome"] not in FAULTS, f"{case}: {found['said']}"


def test_errors_of_others_and_nonsense_are_faults(bench, monkeypatch):
    def fails(**given):
        raise ValueError("shapes do not match")

    case = {"call": "load", "parameter": "path", "odd": "None"}
    monkeypatch.setitem(calls.PUBLIC, "load", lambda path: fails())
    assert calls.tried(case, bench) == {"outcome": "foreign", "said": "ValueError: shapes do not match"}
    monkeypatch.setitem(calls.PUBLIC, "load", lambda path: 0.0 if path else float("nan"))
    assert calls.tried(case, bench)["outcome"] == "nonsense"


@pytest.mark.slow
def test_a_hang_and_a_crash_are_told_and_take_no_other_case_along():
    asked = [{"how": how} for how in ("fine", "hang", "crash", "fine")]
    assert [case["outcome"] for case in answers(misbehave, asked, 1, 1.0)] == ["fine", "hang", "crash", "fine"]


def misbehave(case, folder):
    if case["how"] == "hang":
        import time

        time.sleep(60)
    if case["how"] == "crash":
        os._exit(1)
    return {"outcome": "fine", "said": ""}


# -- the command line ----------------------------------------------------------------------------------------------


def test_every_command_and_every_option_that_writes_has_a_line():
    assert commands.unlisted() == []


def test_odd_texts_get_a_result_or_one_sentence(bench, tmp_path):
    quick = [c for c in commands.cases() if c["parameter"] and c["call"] in ("collect", "import", "encode", "inspect")]
    for case in random.Random(1).sample(quick, 50):
        found = commands.run_case(case, tmp_path)
        assert found["outcome"] not in FAULTS, f"{case}: {found['said']}"


@pytest.mark.parametrize(
    ("said", "one"),
    [
        ("horizon must be ...; 1 was given.\n", True),
        ("It does not answer (refused); try 2 of 6\nThe store must answer.\n", True),
        ("First line.\nSecond line.\n", False),
        ("", False),
    ],
)
def test_a_refusal_is_one_sentence(said, one):
    assert commands.one_sentence(said) is one


@pytest.mark.parametrize(("said", "writes"), [("One line.\nAnother.\n", False), ("One line.\n", True), ("", False)])
def test_a_refusal_that_says_too_much_or_nothing_or_leaves_a_file_is_a_fault(said, writes, tmp_path, monkeypatch):
    def main(line):
        if writes:
            (tmp_path / "new").touch()
        sys.stderr.write(said)
        return 2

    monkeypatch.setattr(commands, "main", main)
    monkeypatch.setattr(commands, "_staged", lambda folder: None)
    monkeypatch.chdir(tmp_path)
    assert commands.run_case({"call": "fit", "parameter": "--nu", "odd": "x"}, tmp_path)["outcome"] == "foreign"
    assert list(tmp_path.iterdir()) == []


# -- files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dataset", "model, bits", "NPZ", "CSV"])
def test_damaged_files_are_refused_or_read_as_they_were(name, tmp_path):
    found = [files.run_case({"format": name, "seed": seed}, tmp_path) for seed in range(1000, 1016)]
    assert [case for case in found if case["outcome"] in FAULTS] == []
    assert sum(case["outcome"] == "refused" for case in found) > len(found) / 2


@pytest.mark.parametrize(("sealed", "outcome"), [(True, "changed"), (False, "read")])
def test_other_numbers_are_a_fault_where_there_are_checksums(sealed, outcome, tmp_path, monkeypatch):
    form = files.Format(lambda f: (f / "a.npy").write_bytes(bytes(99)), lambda f: (f / "a.npy").read_bytes(), sealed)
    monkeypatch.setitem(files.FORMATS, "plain", form)
    assert {files.run_case({"format": "plain", "seed": seed}, tmp_path)["outcome"] for seed in range(20)} >= {outcome}


@pytest.mark.parametrize("name", ["data.npy", "dataset.json"])
def test_damage_changes_a_file_and_repeats_itself(name, tmp_path):
    whole = b'{"a": [1, {"b": 2}], "c": "text", "d": null}' * (1 if name.endswith("json") else 40)
    changed = 0
    for seed in range(60):
        results = []
        for _ in range(2):
            (tmp_path / name).write_bytes(whole)
            files.mutate(tmp_path / name, random.Random(seed))
            results.append((tmp_path / name).read_bytes())
        assert results[0] == results[1]
        changed += results[0] != whole
    assert changed > 50


# -- commands that are disturbed -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_command_that_is_disturbed_leaves_nothing_and_ends_as_if_it_was_not(kind):
    found = list(disturb([kind], ["collect", "encode"], seed=3))
    assert [case["said"] for case in found if case["outcome"] == "fault"] == []


@pytest.mark.slow
def test_exact_fits_write_the_same_bytes_with_any_number_of_threads():
    assert [case for case in bits(["fit"], threads=(1, 4)) if case["outcome"] == "fault"] == []
