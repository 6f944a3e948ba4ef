"""What the docs say of defaults is what the code does: the table of parameters in docs/settings.md."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from craftrl import CRAFT, ClassifierOracle, CoordinateOracle, NeuralOracle
from craftrl.cli.fit import fit
from craftrl.data.inputs import as_dataset
from craftrl.estimators.choices import choose_oracle, recommended

PAGE = (Path(__file__).parents[2] / "docs/settings.md").read_text()
TABLE = [
    [cell.strip().strip("`") for cell in line.strip("|").split("|")]
    for line in re.search(r"\| parameter \| default .*?\n\n", PAGE, flags=re.S)[0].strip().splitlines()[2:]
]
SAID = {name: default for name, default, *_ in TABLE}
DATA = {
    "bits": np.random.default_rng(0).integers(0, 2, (8, 3, 4)),
    "feature vectors": np.random.default_rng(0).normal(size=(8, 3, 4)),
    "images": np.random.default_rng(0).integers(0, 256, (8, 3, 6, 6, 3)).astype(np.uint8),
}


def test_the_defaults_of_the_page_are_those_of_the_code():
    defaults = {name: parameter.default for name, parameter in inspect.signature(CRAFT).parameters.items()}
    assert defaults.pop("partition") is None  # settings of their own, as a network's Training is
    assert {name: f'"{default}"' for name, default in defaults.items()} == SAID


@pytest.mark.parametrize(("column", "kind"), list(enumerate(DATA, start=2)), ids=list(DATA))
def test_what_is_taken_for_each_kind_of_data(column, kind):
    pytest.importorskip("torch")
    said = {row[0]: row[column] for row in TABLE}
    tau = as_dataset(DATA[kind], np.repeat([0, 1], 4)).tau
    oracle, _ = choose_oracle("auto", tau)
    advice = {name: choice.value for name, choice in recommended(oracle, tau).items()}
    assert said.pop("oracle") == type(oracle).__name__
    assert {said.pop(name) for name in ("horizon", "window")} == {"from the data"}
    bounds = "from the data" if kind == "bits" else "not needed"
    assert {said.pop(name) for name in ("alpha", "eta", "nu")} == {bounds}
    assert said == {
        "coupling": f'"{advice["coupling"]}"',
        "relabel": str(advice["relabel"]),
        "stationary": str(advice["stationary"]),
    }


def test_the_command_line_leaves_as_much_to_the_data():
    """Options are called as parameters are; None leaves a flag to the library."""
    options = inspect.signature(fit).parameters
    assert set(SAID) <= set(options)
    assert {options[name].default for name in SAID} == {"auto", None}


def test_the_refits_of_a_diagnosis_are_those_of_the_page():
    pytest.importorskip("torch")
    said = re.search(r"\| refits in `diagnose` by default \|(.+)\|", PAGE)[1].split("|")
    oracles = CoordinateOracle(), ClassifierOracle(DecisionTreeClassifier()), NeuralOracle()
    assert [cell.strip() for cell in said] == [str(oracle.refits() or "none") for oracle in oracles]
