"""How far `craftrl fit` is, on one line: which run of CRAFT, which step, what is learned."""

from craftrl.progress import shown

__all__ = ["shown"]
