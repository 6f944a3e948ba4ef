"""A fitted model where it is used: in a table of states, a video, a PyTorch module, an ONNX file, an environment.

Nothing is imported before it is used: each part needs a package of its own.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from craftrl.deploy.networks import StateModule, export_onnx
    from craftrl.deploy.plan_video import write_plan
    from craftrl.deploy.tables import write_states
    from craftrl.deploy.video import render
    from craftrl.deploy.wrapper import StateObservation

__all__ = ["StateModule", "StateObservation", "export_onnx", "render", "write_plan", "write_states"]

WHERE = {
    "StateModule": "networks",
    "export_onnx": "networks",
    "render": "video",
    "write_plan": "plan_video",
    "write_states": "tables",
    "StateObservation": "wrapper",
}


def __getattr__(name: str) -> Any:
    if name not in WHERE:
        raise AttributeError(f"module 'craftrl.deploy' has no attribute {name!r}")
    return getattr(import_module(f"craftrl.deploy.{WHERE[name]}"), name)
