"""More data than one machine: fits that count where the shards are, and what they cost."""

from craftrl.distributed.encoding import StatesOfShard, encode_on_shards, read_states
from craftrl.distributed.executor import Executor, LocalExecutor
from craftrl.distributed.fitting import fit_on_shards

__all__ = ["Executor", "LocalExecutor", "StatesOfShard", "encode_on_shards", "fit_on_shards", "read_states"]
