"""What need not be loaded is not: numba and h5py wait until there is something to count or to read."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "statement",
    [
        "import craftrl; craftrl.CRAFT, craftrl.CoordinateOracle",
        "import craftrl.engine, craftrl.data.storage",
        "from craftrl.cli import main",
    ],
)
def test_heavy_packages_are_not_imported(statement):
    code = f"{statement}\nimport sys\nprint([m for m in ('numba', 'h5py', 'torch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_machine_code_is_kept_on_disk():
    from craftrl.engine import count_kernel, pack_kernel, search_kernel, sweep_kernel

    kernels = (
        count_kernel.count_pairs,
        pack_kernel.pack_bits,
        pack_kernel.pack_labels,
        sweep_kernel.binary_losses,
        sweep_kernel.sweep_losses,
        search_kernel.look_up_losses,
        search_kernel.corner_losses,
    )
    assert all(kernel.stats.cache_path for kernel in kernels)
