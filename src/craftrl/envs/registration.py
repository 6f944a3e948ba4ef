"""The worlds in Gymnasium's registry: each of the catalogue's own under its id."""

from __future__ import annotations

from craftrl.envs.catalogue import WORLDS

__all__ = ["register_worlds"]


def register_worlds() -> None:
    """Make every id known to Gymnasium, where it is installed; once is enough, twice does no harm."""
    try:
        from gymnasium.envs.registration import register, registry
    except ImportError:
        return
    for entry in WORLDS.values():
        if entry.gym_id not in registry:
            register(entry.gym_id, entry_point="craftrl.envs.gym:make_env", kwargs={"world": entry.path})
