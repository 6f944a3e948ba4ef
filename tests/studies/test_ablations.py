"""The study of ablations on a tiny world: one setting at a time, rows and the table."""

import json
from functools import partial

import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")

from craftrl import CRAFT, NeuralOracle, Partition, Training
from craftrl.cli import main
from studies.ablations.report import format_table
from studies.ablations.run import model_of
from studies.ablations.spec import NAMES, PARTS, Run, sweep


def settings_of(model: CRAFT) -> dict[str, object]:
    """All that can be set, of the model, its network and how it is trained."""
    parameters = model.get_params(deep=False)
    oracle = parameters.pop("oracle")
    network = oracle.get_params(deep=False)
    return {**parameters, **network, **vars(network.pop("training")), **vars(parameters.pop("partition"))}


def test_every_part_is_one_setting_and_has_a_name():
    assert NAMES.keys() == PARTS.keys()
    plain = settings_of(CRAFT(NeuralOracle(training=Training(seed=1, device="cpu")), partition=Partition()))
    differ = {
        part: {name: value for name, value in settings_of(model_of(Run(part, "clips", 1, device="cpu"))).items()
               if value != plain[name] and not hasattr(value, "__dict__")}
        for part in PARTS
    }  # fmt: skip
    assert differ.pop("default") == {}
    assert {part: changed for part, (_, changed) in PARTS.items() if part != "default"} == differ


def test_all_parts_see_one_dataset_before_the_next():
    runs = sweep(["default", "smooth"], seeds=2, n=10)
    assert [(run.seed, run.cut, run.part) for run in runs[:3]] == [
        (0, "whole", "default"), (0, "whole", "smooth"), (0, "clips", "default"),
    ]  # fmt: skip
    assert len(runs) == 8


@pytest.mark.filterwarnings("ignore::craftrl.errors.AssumptionWarning")
def test_the_study_writes_rows_and_a_table(tmp_path, monkeypatch, capsys):
    tiny = [Run(part, "clips", 0, 40, 2, 8, 1, "cpu") for part in ("default", "smooth")]
    monkeypatch.setattr("studies.ablations.spec.sweep", lambda *given: tiny)
    monkeypatch.setattr("studies.ablations.run.Training", partial(Training, epochs=2))
    assert main(["reproduce", "ablations", "--quiet", "--out", str(tmp_path)]) == 0
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [(row["part"], row["true"]) for row in rows] == [("default", 4), ("smooth", 4)]
    assert all(0 < row["pooled"] <= 1 and row["found"] >= 1 for row in rows)
    printed = capsys.readouterr().out
    assert format_table(rows) in printed
    assert f"| {NAMES['smooth']} | " in printed
    assert "whole" not in format_table(rows)
