"""Every exception and warning that the library raises.

One template for all messages: what must hold, what was given, what to do. The command line prints the
message alone and exits with code 2.
"""

from importlib import import_module
from types import ModuleType


class CraftError(Exception):
    """Base of all errors that craftrl raises on purpose."""


class InvalidParameterError(CraftError, ValueError):
    """A parameter lies outside the range in which it means something."""


class InvalidDataError(CraftError, ValueError):
    """The data given cannot be what the algorithm asks for."""


class NotFittedError(CraftError, ValueError, AttributeError):
    """Something learned was asked for before `fit`; of the kinds that scikit-learn's own is."""


class MissingDependencyError(CraftError, ImportError):
    """An optional package is needed and not installed."""


class ClusterError(CraftError, RuntimeError):
    """Machines that should work together do not: none answers, they differ, or work failed too often."""


class RemoteError(CraftError):
    """A store that is reached over a network refuses, or does not answer."""


class AssumptionWarning(UserWarning):
    """An assumption of the paper seems not to hold on this data; the result may be poor."""


def require(module: str, extra: str) -> ModuleType:
    """Import an optional package, or say which pip command installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"This needs the package '{module.split('.')[0]}', which is not installed; "
            f"install it with: pip install 'craftrl[{extra}]'"
        ) from error
