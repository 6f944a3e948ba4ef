"""A fitted model where it is used: in a table of states, a video, a PyTorch module, an ONNX file, an environment.

What needs PyTorch or Gymnasium to be defined is imported when it is asked for.
"""

from typing import TYPE_CHECKING, Any

from craftrl.deploy.plan_video import write_plan
from craftrl.deploy.tables import write_states
from craftrl.deploy.video import render

if TYPE_CHECKING:
    from craftrl.deploy.networks import StateModule, export_onnx
    from craftrl.deploy.wrapper import StateObservation

__all__ = ["StateModule", "StateObservation", "export_onnx", "render", "write_plan", "write_states"]


def __getattr__(name: str) -> Any:
    if name == "StateObservation":
        from craftrl.deploy import wrapper as module
    elif name in __all__:
        from craftrl.deploy import networks as module  # type: ignore[no-redef]
    else:
        raise AttributeError(f"module 'craftrl.deploy' has no attribute {name!r}")
    return getattr(module, name)
