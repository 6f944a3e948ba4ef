"""Data in: recordings of each agent, in whatever format they lie on disk, as one dataset that `fit` reads.

`import_data` recognises the format and writes the dataset, `read_episodes` reads new recordings alike, and `inspect`
says what a dataset holds and what may be wrong with it.
"""

from craftrl.importing.importer import import_data, read_episodes
from craftrl.importing.inspection import Inspection, inspect

__all__ = ["Inspection", "import_data", "inspect", "read_episodes"]
