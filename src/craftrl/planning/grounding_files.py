"""What was grounded as a file: every label in numbers, tied to the model whose states they name."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from craftrl.arguments import check_kind, check_source, check_target, is_url, is_whole
from craftrl.data import urls
from craftrl.data.files import UNREADABLE, sealed_text, unsealed, write_text
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.planning.grounding import MOST_ACTIONS, Grounding
from craftrl.planning.moves import Moves

__all__ = ["load_grounding", "model_fingerprint", "save_grounding"]

FORMAT, VERSION = "craftrl grounding", 1
MOST_TIMES = 10**7


def model_fingerprint(path: str | os.PathLike[str]) -> str:
    """What tells a saved model from others: a checksum of its file."""
    data = urls.read_bytes(os.fspath(path)) if is_url(path) else check_source("The model", path).read_bytes()
    return hashlib.sha256(data).hexdigest()[:16]


def save_grounding(path: str | os.PathLike[str], grounding: Grounding, model: str) -> None:
    """Write all labels of a grounding to a JSON file, whole or not at all; an earlier grounding is replaced.

    model  what tells the model from others, as `model_fingerprint` gives it
    """
    check_kind("grounding", grounding, Grounding, "a Grounding")
    _check_fingerprint(model)
    content = {
        "format": FORMAT,
        "format_version": VERSION,
        "model": model,
        "shared": grounding.nodes.shared,
        "n_actions": grounding.n_actions,
        "labels": [list(label) for label in grounding.labels],
    }
    where = check_target("The grounding", path)
    if where.exists():
        _read(where)  # an earlier grounding is replaced, and nothing else
    write_text(where, sealed_text(content))


def load_grounding(
    path: str | os.PathLike[str], moves: Moves, model: str, *, latent: Any = None, deterministic: bool = True
) -> Grounding:
    """A grounding from such a file, over the moves of the same model; the rest is as for `Grounding`."""
    check_kind("moves", moves, Moves, "Moves, as Moves.from_model gives them")
    _check_fingerprint(model)
    content = _read(check_source("The grounding", path))
    if content["model"] != model or content["shared"] != moves.nodes.shared:
        raise InvalidDataError(
            f"A grounding must be of this model, since every model numbers its states in its own way; {path} is of "
            "another one; choose another name, and ground again."
        )
    if any(node >= moves.nodes.n for s, _, t, _ in content["labels"] for node in (s, t)):
        raise InvalidDataError(
            f"A grounding must name states 0..{moves.nodes.n - 1}, as in this data; {path} names others; give the "
            "data that it was made with."
        )
    grounding = Grounding(moves, content["n_actions"], latent, deterministic)
    for s, a, t, times in content["labels"]:
        for _ in range(times):
            grounding.add(s, a, t)
    return grounding


def _check_fingerprint(model: Any) -> None:
    if not isinstance(model, str) or not model:
        raise InvalidParameterError(
            "model must be a text that tells the model from others; none was given; call model_fingerprint(path)."
        )


def _read(path: Path) -> dict[str, Any]:
    try:
        content = unsealed(path.read_bytes())
        if content["format"] != FORMAT or content["format_version"] != VERSION:
            raise ValueError("it is of another kind or version")
        _check_labels(content["labels"], content["n_actions"])
        _ = content["model"], content["shared"]
    except UNREADABLE as error:
        raise InvalidDataError(
            f"{path} must be a grounding that craftrl plan wrote; it cannot be read ({error}); choose another name, or "
            "remove it and ground again."
        ) from error
    return content


def _check_labels(labels: Any, n_actions: Any) -> None:
    if not (is_whole(n_actions) and 1 <= n_actions <= MOST_ACTIONS):
        raise ValueError("it has no number of actions")
    for label in labels:
        s, a, t, times = label
        if not all(is_whole(part) for part in label) or min(s, a, t) < 0 or not 1 <= times <= MOST_TIMES:
            raise ValueError("a label is not a state, an action, a state and how often")
        if a >= n_actions:
            raise ValueError("a label has an action that there is not")
