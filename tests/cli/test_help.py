"""Help and version: every command has examples, and nothing heavy is imported to answer."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from craftrl.cli import main
from craftrl.cli.reproduce import available_studies
from craftrl.envs import WORLDS

COMMANDS = [
    [],
    ["reproduce"],
    *(["reproduce", study] for study in available_studies()),
    ["collect"],
    ["import"],
    ["inspect"],
    ["fit"],
    ["evaluate"],
    ["actions"],
    ["plan"],
    ["report"],
    ["theory"],
    ["theory", "assumptions"],
    ["theory", "sample-size"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_has_examples(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([*command, "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert "examples:" in text
    assert "craftrl " + " ".join(command) in text


@pytest.mark.parametrize("command", [[], ["reproduce", "table1"], ["fit"]], ids=" ".join)
def test_help_answers_at_once(command: list[str]) -> None:
    """No numerical package is imported on the way."""
    run = [sys.executable, "-X", "importtime", "-m", "craftrl", *command, "--help"]
    result = subprocess.run(run, capture_output=True, text=True, check=True)
    assert not re.search(r"\| +(numpy|scipy|numba|matplotlib|torch)\b", result.stderr)


def test_the_help_names_every_world(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["collect", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "bits (the paper's), lock, multimaze or pixels; made by others: freeway, seaquest, minigrid, doom" in text
    assert list(WORLDS) == ["bits", "lock", "multimaze", "pixels", "freeway", "seaquest", "minigrid", "doom"]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert re.fullmatch(r"craftrl \d+\.\d+\.\d+\n", capsys.readouterr().out)
