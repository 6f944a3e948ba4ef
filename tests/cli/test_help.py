"""Help and version: every command has examples and names its defaults, and nothing heavy is imported to answer."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import ENVIRONMENT, craftrl
from craftrl.cli import main
from craftrl.cli.reproduce import available_studies

COMMANDS = (
    *("import", "inspect", "collect", "fit", "evaluate", "encode", "render", "actions", "plan", "export", "report"),
    *(
        "reproduce",
        "theory assumptions",
        "theory sample-size",
        *(f"reproduce {study}" for study in available_studies()),
    ),
)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command.split(), "--help"]) == 0
    text = capsys.readouterr().out
    assert "examples:\n  craftrl " + command in text
    assert all(len(line) <= 120 for line in text.splitlines())


def test_every_command_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    listed = re.findall(r"^│ ([a-z]+) ", capsys.readouterr().out, flags=re.MULTILINE)
    assert set(listed) == {command.split()[0] for command in COMMANDS}


def test_help_of_fit_names_defaults_and_flags_that_can_be_denied(tmp_path: Path) -> None:
    text = " ".join(craftrl("fit", "--help", cwd=tmp_path).replace("│", " ").split())
    assert "markov needs the least data [choices: auto, independent, chain, markov] [default: auto]" in text
    assert "--stationary --no-stationary one encoder for all steps; by default if x are images" in text
    assert "--grey pictures: in one channel --key" in text  # a flag that is off has no default to tell
    assert "The same command again goes on from whatever was finished" in text


def test_help_imports_no_numerical_package() -> None:
    """So that it answers at once: in 0.11 s on an idle machine."""
    for words in (["--help"], ["fit", "--help"]):
        run = [sys.executable, "-X", "importtime", "-m", "craftrl", *words]
        result = subprocess.run(run, capture_output=True, text=True, check=True, env=ENVIRONMENT)
        assert not re.search(r"\| +(numpy|scipy|numba|matplotlib|torch|sklearn)\b", result.stderr)


def test_the_help_names_every_world(capsys: pytest.CaptureFixture[str]) -> None:
    main(["collect", "--help"])
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "bits (the paper's) or pixels" in text


def test_the_usage_of_a_report_says_that_data_may_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--help"]) == 0
    assert capsys.readouterr().out.startswith("Usage: craftrl report --out STR [OPTIONS] MODEL [DATA]\n")


def test_version(tmp_path: Path) -> None:
    assert re.fullmatch(r"craftrl \d+\.\d+\.\d+\n", craftrl("--version", cwd=tmp_path))
