"""More data than one machine: fits that count where the shards are, and what they cost."""

from craftrl.distributed.executor import Executor, LocalExecutor
from craftrl.distributed.fitting import fit_on_shards

__all__ = ["Executor", "LocalExecutor", "fit_on_shards"]
