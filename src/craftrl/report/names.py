"""What agents are called in a report; a state is called by its number."""

from __future__ import annotations

from craftrl.estimators.craft import CRAFT

__all__ = ["agent_names", "pairs_of_agents"]


def agent_names(model: CRAFT) -> tuple[str, ...]:
    """The agents as the report calls them: by name, or "agent 0" where they have but a number."""
    return tuple(name if isinstance(name, str) else f"agent {name}" for name in model.agents_)


def pairs_of_agents(model: CRAFT) -> list[str]:
    """What each axis of the grid compares: the first agent with each of the others."""
    first, *others = agent_names(model)
    return [f"{first} against {other}" for other in others]
