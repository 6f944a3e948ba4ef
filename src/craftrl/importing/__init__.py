"""Data in: recordings of each agent, in whatever format they lie on disk, as one store that `fit` reads.

`import_data` recognises the format, reads episode by episode and writes one HDF5 file. `inspect` says what such a file
holds and what may be wrong with it. Action labels go into a file of their own, which no learner opens.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from craftrl.importing.actions import read_actions
    from craftrl.importing.importer import import_data
    from craftrl.importing.inspection import Inspection, inspect
    from craftrl.importing.source import Agent, Episode, Recording

__all__ = ["Agent", "Episode", "Inspection", "Recording", "import_data", "inspect", "read_actions"]

_HOME = {
    "Agent": "source",
    "Episode": "source",
    "Inspection": "inspection",
    "Recording": "source",
    "import_data": "importer",
    "inspect": "inspection",
    "read_actions": "actions",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module 'craftrl.importing' has no attribute {name!r}")
    return getattr(import_module(f"craftrl.importing.{_HOME[name]}"), name)
