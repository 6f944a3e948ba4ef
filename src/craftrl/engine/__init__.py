"""The exact engine: bit planes, compiled counting, and exact losses of all pairs of encoders."""

from craftrl.engine.counting import TILE_BYTES, group_counts, pair_counts, pair_losses
from craftrl.engine.engine import Engine
from craftrl.engine.packing import PackedStep, constant_step, pack_coordinates, pack_functions

__all__ = [
    "TILE_BYTES",
    "Engine",
    "PackedStep",
    "constant_step",
    "group_counts",
    "pack_coordinates",
    "pack_functions",
    "pair_counts",
    "pair_losses",
]
