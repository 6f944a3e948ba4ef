"""A results folder: whose sweep it holds, and which runs are done."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from craftrl._version import __version__
from craftrl.data.files import check_writable, plain_value, write_json
from craftrl.data.places import Place
from craftrl.data.ranges import read_ranges
from craftrl.data.remote import Remote
from craftrl.errors import InvalidParameterError, RemoteError

__all__ = ["Row", "check_folder", "finished_rows", "forget_folder", "prepare_folder", "row_key"]

Row = dict[str, Any]


def check_folder(out: Place, name: str, settings_list: Sequence[Any]) -> None:
    """Raise where the folder holds another sweep, or files of somebody else's; nothing is written."""
    path = out / "settings.json"
    others = _plain_names(out)  # before the settings, which come first: an equal command may be at work
    if path.exists():
        _check_same_sweep(out, _read_manifest(path), _manifest(name, settings_list))
    elif others:
        raise InvalidParameterError(
            f"A results folder must be a new one, or that of the same sweep; {out} holds other files, such as "
            f"{others[0]}; choose another folder with --out."
        )


def prepare_folder(out: Place, name: str, settings_list: Sequence[Any]) -> None:
    """Create the folder and its settings.json, or check that it belongs to this very sweep.

    Everything that can go wrong with a folder goes wrong here, before any work is done.
    """
    check_folder(out, name, settings_list)
    check_writable(out)
    if not (out / "settings.json").exists():
        write_json(out / "settings.json", _manifest(name, settings_list))


def forget_folder(out: Place) -> None:
    """Take away what `prepare_folder` has made, and an empty rows/, where there is nothing else in it."""
    with suppress(OSError, RemoteError):
        if not isinstance(out, Remote) and (out / "rows").exists():
            (out / "rows").rmdir()  # first: with something in it, the settings must stay
        (out / "settings.json").unlink()
        if not isinstance(out, Remote):
            out.rmdir()


def row_key(settings: Any) -> str:
    """A short name of one run, made from its settings alone."""
    return _key_of(asdict(settings))


def finished_rows(out: Place, settings_list: Sequence[Any]) -> dict[str, Row]:
    """The rows of these runs that are on disk, by key: from rows/, or packed in rows.jsonl.

    A file that is no JSON was not finished by us: its run counts as not done.
    """
    packed = {}
    fields = set(asdict(settings_list[0]))
    for line in _lines(out / "rows.jsonl"):
        row = _parse(line)
        if row is not None and fields <= row.keys():
            packed[_key_of({field: row[field] for field in fields})] = row
    found = {}
    singles = _texts(out / "rows", [f"{key}.json" for key in map(row_key, settings_list)])
    for key in map(row_key, settings_list):
        single = _parse(singles.get(f"{key}.json", ""))
        row = packed.get(key) if single is None else single
        if row is not None:
            found[key] = row
    return found


# -- identity ----------------------------------------------------------------------------------------------------


def _key_of(given: dict[str, Any]) -> str:
    text = json.dumps(given, sort_keys=True, default=plain_value)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _manifest(name: str, settings_list: Sequence[Any]) -> dict[str, Any]:
    """The study, the library's version, and of each setting all values that occur."""
    values: dict[str, list[Any]] = {}
    for settings in settings_list:
        for field, value in asdict(settings).items():
            seen = values.setdefault(field, [])
            if value not in seen:
                seen.append(value)
    runs = hashlib.sha256("".join(sorted(map(row_key, settings_list))).encode()).hexdigest()[:16]
    manifest = {"study": name, "craftrl": __version__, "settings": values, "runs": len(settings_list), "key": runs}
    return dict(json.loads(json.dumps(manifest, default=plain_value)))


def _read_manifest(path: Place) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_text())
        return {"study": manifest["study"], "craftrl": manifest["craftrl"], **manifest}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidParameterError(
            f"{path} must be the settings file of a study; it is not; choose another folder with --out."
        ) from error


def _check_same_sweep(out: Place, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    if found == wanted:
        return
    pairs = [(label, found.get(label), wanted[label]) for label in ("study", "craftrl")]
    theirs = found.get("settings", {})
    pairs += [(field, theirs.get(field), value) for field, value in wanted["settings"].items()]
    what, old, new = next((p for p in pairs if p[1] != p[2]), ("combination of settings", "another", "this one"))
    raise InvalidParameterError(
        f"A results folder holds one sweep; {out} has {what} = {_short(old)}, and {_short(new)} was asked for; "
        "choose another folder with --out, or delete this one."
    )


def _plain_names(folder: Place) -> list[str]:
    """What a listing shows; temporary files of ours, and notes of version control, are hidden."""
    if isinstance(folder, Remote) or not folder.is_dir():
        return []
    return sorted(file.name for file in folder.iterdir() if not file.name.startswith("."))


def _short(values: Any) -> str:
    """A list of values as text: 0, 1, 2, .., 19."""
    if not isinstance(values, list):
        return str(values)
    shown = [str(v) for v in values]
    return ", ".join(shown if len(shown) <= 5 else [*shown[:3], "..", shown[-1]])


def _lines(path: Place) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _texts(folder: Place, names: Sequence[str]) -> dict[str, str]:
    """The files of these names that are there; those of a store are read together."""
    if isinstance(folder, Remote):
        there = folder.files()
        known = [there[name] for name in names if name in there]
        contents = read_ranges([(file, 0, file.length()) for file in known])
        return {file.name: data.decode(errors="replace") for file, data in zip(known, contents)}
    return {name: "".join(_lines(folder / name)) for name in names}


def _parse(text: str) -> Row | None:
    try:
        return dict(json.loads(text))
    except ValueError:
        return None
