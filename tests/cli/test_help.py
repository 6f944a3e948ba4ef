"""Help and version: every command has examples and names its defaults, and nothing heavy is imported to answer."""

import re
import subprocess
import sys

import pytest

from command_line import ENVIRONMENT, craftrl
from craftrl.cli.reproduce import available_studies

COMMANDS = (
    *("import", "inspect", "collect", "fit", "evaluate", "encode", "render", "actions", "plan", "export", "report"),
    *("reproduce", "theory assumptions", "theory sample-size"),
    *(f"reproduce {study}" for study in available_studies()),
)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples(command):
    text = craftrl(command, "--help")
    assert "examples:\n  craftrl " + command in text
    assert all(len(line) <= 120 for line in text.splitlines())


def test_every_command_is_listed_and_the_version_told():
    listed = re.findall(r"^│ ([a-z]+) ", craftrl("--help"), flags=re.MULTILINE)
    assert set(listed) == {command.split()[0] for command in COMMANDS}
    assert re.fullmatch(r"craftrl \d+\.\d+\.\d+\n", craftrl("--version"))


def test_help_names_defaults_flags_that_can_be_denied_and_worlds():
    text = " ".join(craftrl("fit --help").replace("│", " ").split())
    assert "markov needs the least data [choices: auto, independent, chain, markov] [default: auto]" in text
    assert "--stationary --no-stationary one encoder for all steps; by default " in text
    assert "--grey pictures: in one channel --key" in text  # a flag that is off has no default to tell
    assert "bits are the paper's [choices: bits, pixels]" in craftrl("collect --help")
    assert craftrl("report --help").startswith("Usage: craftrl report --out STR [OPTIONS] MODEL [DATA]\n")


def test_help_imports_no_numerical_package():
    """So that it answers at once: in 0.11 s on an idle machine."""
    run = [sys.executable, "-X", "importtime", "-m", "craftrl", "fit", "--help"]
    result = subprocess.run(run, capture_output=True, text=True, check=True, env=ENVIRONMENT)
    assert not re.search(r"\| +(numpy|scipy|numba|matplotlib|torch|sklearn)\b", result.stderr)
