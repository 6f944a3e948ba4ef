"""Runs a sweep: one small row on disk for every run, so that a killed sweep goes on where it stopped.

A study lists its runs as frozen settings and gives one function from settings to results. What is on disk:

    DIR/settings.json      which study, which settings: a folder never mixes two sweeps
    DIR/rows/<key>.json    one row per finished run: its settings and its results

Rows are written whole or not at all. They depend on the settings alone, so that any number of workers writes the same
files; analysis reads rows and never runs anything.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from craftrl._version import __version__
from craftrl.errors import AssumptionWarning, CraftError, InvalidParameterError

__all__ = [
    "RunOne",
    "check_writable",
    "load_rows",
    "prepare_folder",
    "run_sweep",
    "seed_of",
    "write_json",
    "write_text",
]

Row = dict[str, Any]
RunOne = Callable[[Any], Mapping[str, Any]]


def run_sweep(
    name: str,
    settings_list: Sequence[Any],
    run_one: RunOne,
    out: str | os.PathLike[str],
    workers: int = 1,
    progress: bool = True,
) -> list[Row]:
    """Run what is not yet in `out`, and return all rows in the order of `settings_list`.

    name           of the study; part of the folder's identity
    settings_list  frozen dataclasses of plain values, one per run, all different
    run_one        from one of them to its results, plain values too; takes all randomness from its settings
                   (`seed_of`). Importable or not: workers get it by value.
    out            the folder; created where missing
    workers        processes; each keeps to one thread, so that they do not fight for the cores

    A row is its settings and its results in one flat dictionary.
    """
    if workers < 1:
        raise InvalidParameterError(f"workers must be at least 1; {workers} was given.")
    folder = Path(out)
    keys = [_key(settings) for settings in settings_list]
    if len(set(keys)) < len(keys):
        raise InvalidParameterError("Each run of a sweep must have settings of its own; two are the same.")
    prepare_folder(folder, name, settings_list)
    rows = folder / "rows"
    todo = [s for s, key in zip(settings_list, keys) if _read_row(rows / f"{key}.json") is None]
    _run_all(name, todo, len(keys), run_one, rows, workers, progress)
    return load_rows(folder, settings_list)


def load_rows(out: str | os.PathLike[str], settings_list: Sequence[Any]) -> list[Row]:
    """The rows of these runs, in this order; all must be there."""
    rows = []
    for settings in settings_list:
        row = _read_row(Path(out) / "rows" / f"{_key(settings)}.json")
        if row is None:
            raise CraftError(f"The run {asdict(settings)} is not in {out} yet; run the study's command again.")
        rows.append(row)
    return rows


def prepare_folder(out: Path, name: str, settings_list: Sequence[Any]) -> None:
    """Create the folder and its settings.json, or check that it belongs to this very sweep.

    Everything that can go wrong with a folder goes wrong here, before any work is done.
    """
    wanted = _manifest(name, settings_list)
    path = out / "settings.json"
    if path.exists():
        _check_same_sweep(out, _read_manifest(path), wanted)
    check_writable(out)
    if not path.exists():
        write_json(path, wanted)
    (out / "rows").mkdir(exist_ok=True)


def check_writable(out: Path) -> None:
    """Create the folder where missing, and make sure that files can be put there."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / f".writable-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InvalidParameterError(
            f"The output folder must be writable; {out} is not ({error.strerror}); choose another with --out."
        ) from error


def seed_of(*parts: int | str) -> Any:
    """A `numpy.random.SeedSequence` made from these parts alone: the same on every machine and in every worker."""
    import numpy as np

    digest = hashlib.sha256(json.dumps(parts).encode()).digest()
    return np.random.SeedSequence(int.from_bytes(digest[:16], "big"))


def write_json(path: Path, value: Any) -> None:
    """Write JSON whole or not at all."""
    write_text(path, json.dumps(value, indent=1, default=_plain) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all: into a neighbour, then renamed."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        temporary.write_text(text)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise InvalidParameterError(f"{path} could not be written ({error.strerror}); free space or rights.") from error


# -- running -----------------------------------------------------------------------------------------------------


def _run_all(
    name: str, todo: Sequence[Any], total: int, run_one: RunOne, rows: Path, workers: int, progress: bool
) -> None:
    from joblib import Parallel, delayed, parallel_config
    from tqdm import tqdm

    with tqdm(total=total, initial=total - len(todo), desc=name, unit="run", disable=not progress) as bar:
        if workers == 1:
            for settings in todo:
                _run_to_disk(settings, run_one, rows)
                bar.update()
            return
        with parallel_config(backend="loky", n_jobs=workers, inner_max_num_threads=1):
            parallel = Parallel(return_as="generator_unordered", batch_size=1)
            for _ in parallel(delayed(_run_to_disk)(settings, run_one, rows) for settings in todo):
                bar.update()


def _run_to_disk(settings: Any, run_one: RunOne, rows: Path) -> None:
    """One run in one worker. A failed assumption is a result here, and in the row: no warning for each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        result = run_one(settings)
    given = asdict(settings)
    if given.keys() & result.keys():
        raise InvalidParameterError(f"A result may not bear a setting's name; {given.keys() & result.keys()} do.")
    write_json(rows / f"{_key(settings)}.json", {**given, **result})


# -- identity ----------------------------------------------------------------------------------------------------


def _key(settings: Any) -> str:
    text = json.dumps(asdict(settings), sort_keys=True, default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _manifest(name: str, settings_list: Sequence[Any]) -> dict[str, Any]:
    """The study, the library's version, and of each setting all values that occur."""
    values: dict[str, list[Any]] = {}
    for settings in settings_list:
        for field, value in asdict(settings).items():
            seen = values.setdefault(field, [])
            if value not in seen:
                seen.append(value)
    runs = hashlib.sha256("".join(sorted(map(_key, settings_list))).encode()).hexdigest()[:16]
    manifest = {"study": name, "craftrl": __version__, "settings": values, "runs": len(settings_list), "key": runs}
    return dict(json.loads(json.dumps(manifest, default=_plain)))


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_text())
        return {"study": manifest["study"], "craftrl": manifest["craftrl"], **manifest}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidParameterError(
            f"{path} must be the settings file of a study; it is not; choose another folder with --out."
        ) from error


def _check_same_sweep(out: Path, found: dict[str, Any], wanted: dict[str, Any]) -> None:
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


def _short(values: Any) -> str:
    """A list of values as text: 0, 1, 2, .., 19."""
    if not isinstance(values, list):
        return str(values)
    shown = [str(v) for v in values]
    return ", ".join(shown if len(shown) <= 5 else [*shown[:3], "..", shown[-1]])


def _read_row(path: Path) -> Row | None:
    """A finished row, or None: a file that is no JSON was not written by us and is run again."""
    try:
        return dict(json.loads(path.read_text()))
    except (OSError, ValueError):
        return None


def _plain(value: Any) -> Any:
    """NumPy scalars and arrays as plain numbers and lists."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is no plain value; give numbers, text or lists.")
