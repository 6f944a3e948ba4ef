"""What need not be loaded is not: numba and h5py wait until there is something to count or to read."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "statement",
    [
        "import craftrl; craftrl.CRAFT, craftrl.CoordinateOracle",
        "import craftrl.engine.counting, craftrl.data.store",
        "from craftrl.cli import main",
    ],
)
def test_heavy_packages_are_not_imported(statement):
    code = f"{statement}\nimport sys\nprint([m for m in ('numba', 'h5py', 'torch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_machine_code_is_kept_on_disk():
    from craftrl.engine import kernels

    assert all(getattr(kernels, name).stats.cache_path for name in kernels.__all__)
