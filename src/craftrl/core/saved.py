"""What can be written to a model's file, declared by the class that can."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Self


class Savable:
    """Something that a saved model is made of.

    `saved` gives what it consists of: plain values, arrays, lists and dictionaries of these, and other `Savable`s.
    `restored` makes it again. For dataclasses both follow from the fields. A file may name the subclasses that this
    package has, and no others (`craftrl.estimators.saving`).
    """

    def saved(self) -> dict[str, Any]:
        """The parts, by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    @classmethod
    def restored(cls, parts: dict[str, Any], given: Any) -> Self:
        """The object again. `given` is the oracle that the caller of `craftrl.load` passed, or None: it holds what
        no file can, such as functions and networks of the user's own."""
        return cls(**parts)
