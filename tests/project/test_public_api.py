"""The names that stay from the first day, and what importing them costs."""

import subprocess
import sys

import pytest

import craftrl
import craftrl.envs
import craftrl.importing
import craftrl.oracles
import craftrl.paper


@pytest.mark.parametrize(
    "module",
    [craftrl, craftrl.envs, craftrl.importing, craftrl.oracles, craftrl.paper],
)
def test_everything_promised_is_there(module):
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert sorted(module.__all__) == sorted(set(module.__all__))


def test_the_first_names():
    from craftrl import CRAFT, CoordinateOracle, FiniteOracle, TrajectoryDataset
    from craftrl.envs import BitsExBMDP
    from craftrl.paper import DRAFT, PairedObservation, RecursiveDRAFT, SingleObservation

    assert all((CRAFT, CoordinateOracle, FiniteOracle, DRAFT, PairedObservation, RecursiveDRAFT, SingleObservation))
    assert BitsExBMDP(30, 128, 0).H == 30
    assert callable(TrajectoryDataset.from_arrays)


def test_import_is_light():
    """No optional or slow package comes with `import craftrl` or with the command line's parser."""
    heavy = ["torch", "sklearn", "matplotlib", "gymnasium", "h5py", "numba", "joblib"]
    code = f"import sys, craftrl, craftrl.cli\nprint([name for name in {heavy!r} if name in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_a_missing_package_is_named_with_its_pip_command():
    from craftrl.errors import MissingDependencyError, require

    with pytest.raises(MissingDependencyError, match=r"pip install 'craftrl\[neural\]'"):
        require("no_such_package", "neural")
