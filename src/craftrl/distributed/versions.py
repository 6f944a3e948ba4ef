"""Driver and workers must run the same: Python, NumPy and craftrl, or results could differ without a word."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping

from craftrl._version import __version__
from craftrl.errors import CraftError

__all__ = ["check_versions", "versions", "versions_elsewhere"]


def versions() -> dict[str, str]:
    """What runs here, by name."""
    import numpy as np

    return {"Python": platform.python_version(), "NumPy": np.__version__, "craftrl": __version__}


def versions_elsewhere() -> Callable[[], dict[str, str]]:
    """`versions` as a function that is sent whole: it also answers where there is no craftrl."""

    def found() -> dict[str, str]:
        import platform
        from importlib import import_module

        known = {"Python": platform.python_version()}
        for name, package in (("NumPy", "numpy"), ("craftrl", "craftrl")):
            try:
                known[name] = import_module(package).__version__
            except ImportError:
                known[name] = "none"
        return known

    return found


def check_versions(theirs: Mapping[str, Mapping[str, str]]) -> None:
    """Raise where a worker runs something else than we do; `theirs` has `versions` by the name of each worker."""
    ours = versions()
    for worker, found in theirs.items():
        for name, version in ours.items():
            if found.get(name) != version:
                raise CraftError(
                    f"Driver and workers must run the same {name}; here it is {version}, at {worker} "
                    f"{found.get(name) or 'none'}; install the same version everywhere."
                )
