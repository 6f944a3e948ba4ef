"""Every name that is promised is there, and what importing costs."""

import subprocess
import sys

import pytest

import craftrl
import craftrl.envs
import craftrl.importing
import craftrl.oracles
import craftrl.paper
from craftrl.errors import MissingDependencyError, require


@pytest.mark.parametrize("module", [craftrl, craftrl.envs, craftrl.importing, craftrl.oracles, craftrl.paper])
def test_everything_promised_is_there(module):
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert sorted(module.__all__) == sorted(set(module.__all__))


@pytest.mark.parametrize(
    ("imported", "heavy"),
    [
        ("craftrl, craftrl.cli", "torch sklearn matplotlib gymnasium h5py numba joblib"),
        ("craftrl.estimators.craft, craftrl.engine.counting, craftrl.data.store", "torch numba h5py"),
    ],
)
def test_no_slow_package_comes_before_there_is_something_to_do_for_it(imported, heavy):
    code = f"import sys, {imported}\nprint([name for name in {heavy.split()} if name in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_a_missing_package_is_named_with_its_pip_command():
    with pytest.raises(MissingDependencyError, match=r"pip install 'craftrl\[neural\]'"):
        require("no_such_package", "neural")
