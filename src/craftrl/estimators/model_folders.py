"""The folder of a saved model: where it may be put, how it is written whole, and its files as they are read again.

On a disk the folder gets its name in one move. In a store with a URL `config.json` is written last, and says in
`stored` under which name each file lies there (`craftrl.data.publishing`).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from craftrl.arguments import check_flag
from craftrl.data.files import check_writable, moved_into_place, temporary_name, told_plainly
from craftrl.data.places import Place, target
from craftrl.data.publishing import publishing, taken
from craftrl.data.remote import Remote
from craftrl.data.seals import CHECKSUM, check_seal, file_digest, sealed
from craftrl.errors import InvalidParameterError
from craftrl.estimators.loaded_values import Altered

__all__ = ["CONFIG", "FORMAT_VERSION", "checked_files", "model_target", "own_name", "write_folder"]

CONFIG = "config.json"
# 2: what log-odds are worth at each step, and the log-odds themselves; 3: checksums; 4: files under other names, as in
# stores. Older ones are read, and a disk gets 3.
FORMAT_VERSION = 4
OLD_NAME = re.compile(r"arrays\.safetensors|estimator-\d+\.skops")  # files of models of formats 1 and 2

WriteFiles = Callable[[Path], None]


def model_target(path: str | os.PathLike[str], overwrite: bool) -> tuple[Place, bool]:
    """Where a model is to be put, and whether one is there; raises, before any work is done, where it cannot be.

    Nothing but a model is ever replaced.
    """
    where = target("The model", path)
    check_flag("overwrite", overwrite)
    check_writable(where.parent)
    if not taken(where):
        return where, False
    if not (where / CONFIG).is_file() or (isinstance(where, Path) and where.is_symlink()):
        raise InvalidParameterError(f"{where} exists and is no model of ours; choose another name.")
    if not overwrite:
        raise InvalidParameterError(
            f"{where} holds a model already; choose another name, or replace it with overwrite=True (--force)."
        )
    return where, True


def own_name(content: dict[str, Any]) -> Callable[[str], bool]:
    """Which files of a model's folder are its own, as `config.json` says; older ones say nothing of it."""
    files = content.get("files")
    if isinstance(files, dict):
        return lambda name: name == CONFIG or name in files
    return lambda name: name == CONFIG or OLD_NAME.fullmatch(name) is not None


def write_folder(where: Place, content: dict[str, Any], write_files: WriteFiles, overwrite: bool) -> None:
    """The files, and the content of `config.json` with their checksums; whole or not at all."""
    with told_plainly(where, "model"):
        if isinstance(where, Remote):
            _publish(where, content, write_files, overwrite)
        else:
            _write(where, content, write_files)


def _write(where: Path, content: dict[str, Any], write_files: WriteFiles) -> None:
    temporary = temporary_name(where)
    try:
        temporary.mkdir(parents=True)
        write_files(temporary)
        files = {file.name: file_digest(file) for file in sorted(temporary.iterdir())}
        _write_config(temporary, {**content, "format_version": 3, "files": files})
        moved_into_place(temporary, where)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _publish(where: Remote, content: dict[str, Any], write_files: WriteFiles, overwrite: bool) -> None:
    with publishing(where, CONFIG, overwrite) as work:
        write_files(work.local)
        sent = {name: work.send(name) for name in sorted(file.name for file in work.local.iterdir())}
        files = {part["file"]: part["sha256"] for part in sent.values()}
        stored = {name: part["file"] for name, part in sent.items()}
        _write_config(work.local, {**content, "format_version": 4, "files": files, "stored": stored})


def _write_config(folder: Path, content: dict[str, Any]) -> None:
    (folder / CONFIG).write_text(json.dumps(sealed(content), indent=1) + "\n")


# -- reading -----------------------------------------------------------------------------------------------------


@contextmanager
def checked_files(folder: Place, content: dict[str, Any]) -> Iterator[Path]:
    """A local folder with the model's files under their own names, once all checksums are found to fit.

    It is the folder given, unless that lies in a store or was copied from one. Models of formats 1 and 2 have no
    checksums.
    """
    has_seals = content["format_version"] >= 3 or CHECKSUM in content
    if has_seals:
        try:
            check_seal(content)
        except ValueError as error:
            raise Altered(f"{CONFIG}: {error}") from error
    digests = content["files"] if has_seals else {}
    stored = content.get("stored", {})
    if isinstance(folder, Path) and not stored:
        for name, digest in digests.items():
            _check_file(folder / _name(name), digest)
        yield folder
        return
    if not has_seals and isinstance(folder, Remote):
        digests = dict.fromkeys(folder.files())
    copy = temporary_name(Path(tempfile.gettempdir()) / folder.name)
    copy.mkdir()
    try:
        own_names = {part: name for name, part in stored.items()}
        for part, digest in digests.items():
            file = copy / _name(own_names.get(part, part))
            _fetch(folder / _name(part), file)
            if digest is not None:
                _check_file(file, digest)
        yield copy
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def _check_file(file: Path, digest: Any) -> None:
    if not file.is_file():
        raise Altered(f"{file.name} is missing")
    if file_digest(file) != digest:
        raise Altered(f"{file.name}: its checksum does not fit: it was damaged or edited")


def _fetch(part: Place, file: Path) -> None:
    try:
        file.write_bytes(part.read_bytes())
    except FileNotFoundError as error:
        raise Altered(f"{part.name} is missing") from error


def _name(name: Any) -> str:
    """The name of a file in the folder, not a way out of it."""
    if not isinstance(name, str) or not name or Path(name).name != name:
        raise Altered(f"{name!r} is no name of a file")
    return name
