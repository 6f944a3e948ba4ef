"""Gymnasium ids of the worlds, as strings: a world's module is imported only when it is made."""

from __future__ import annotations

__all__ = ["WORLD_IDS", "register_worlds"]

WORLD_IDS = {
    "craftrl/Bits-v0": "craftrl.envs.bits:BitsExBMDP",
    "craftrl/Lock-v0": "craftrl.envs.lock:LockExBMDP",
    "craftrl/MultiMaze-v0": "craftrl.envs.multimaze:MultiMazeExBMDP",
    "craftrl/PixelGrid-v0": "craftrl.envs.pixels:PixelsExBMDP",
}


def register_worlds() -> None:
    """Make every id known to Gymnasium, where it is installed; once is enough, twice does no harm."""
    try:
        from gymnasium.envs.registration import register, registry
    except ImportError:
        return
    for world_id, world in WORLD_IDS.items():
        if world_id not in registry:
            register(world_id, entry_point="craftrl.envs.gym:make_env", kwargs={"world": world})
