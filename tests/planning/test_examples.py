"""The examples run as written, with small settings."""

import importlib.util
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tabular_on_states(capsys):
    (curve,) = example("tabular_on_states").main(["--videos", "2000", "--steps", "600", "--seeds", "1"])
    assert curve.steps[-1] == 600
    assert curve.score[-1] == 1.0
    assert "16 states, from videos without actions" in capsys.readouterr().out


def test_stable_baselines_on_states():
    settings = ["--videos", "2000", "--steps", "128", "--every", "64", "--seeds", "1"]
    curves = example("sb3_on_states").main(settings)
    assert set(curves) == {"PPO pixels", "PPO states", "DQN states"}
    assert all(curve.steps.tolist() == [64, 128] for (curve,) in curves.values())


def test_imitate():
    settings = ["--videos", "1000", "--labels", "0", "100", "--episodes", "60", "--seeds", "1"]
    reached = example("imitate").main(settings)
    assert reached[0] < [0.6]
    assert reached[100] > [0.75]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_examples_are_short(path):
    assert len(path.read_text().splitlines()) <= 65
