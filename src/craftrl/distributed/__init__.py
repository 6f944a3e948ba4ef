"""More data than one machine: fits that count where the shards are, and what they cost."""

from craftrl.distributed.encoding import StatesOfShard, encode_on_shards, read_states
from craftrl.distributed.executor import Executor, LocalExecutor
from craftrl.distributed.fitting import fit_on_shards
from craftrl.distributed.ray_executor import RayExecutor

__all__ = [
    "Executor",
    "LocalExecutor",
    "RayExecutor",
    "StatesOfShard",
    "encode_on_shards",
    "fit_on_shards",
    "read_states",
]
