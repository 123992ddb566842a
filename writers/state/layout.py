"""The layout of a state: a local folder with one folder for each unit, and hidden names for work in progress.

``LABEL/unit.json`` is the record of a finished unit and stays forever. ``LABEL/STAGE/`` holds the window state of the
stage at the end of the unit. ``.wincli-state`` marks the folder as a state, ``.wincli-lock`` is its lock,
``.journal.json`` a commit under way, ``.running.json`` a unit under way, ``.last-error.json`` the last failure. With an
id of 12 hex digits, ``.new-ID`` is a unit that is being written, ``.old-ID`` a former unit during a swap and
``.gone-ID`` a folder that is being deleted.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...windowing.errors import ConfigError, DamagedError
from ...windowing.support.checksum import read_object, seal, unseal
from ..folders import atomic_swap
from ..folders.atomic_file import writing
from ..folders.os_errors import reason
from ..folders.place import new_token
from .unit_record import UnitRecord, WrittenOutput, newer

FORMAT = 1
"""The format of the folder; goes up when its layout changes."""
MARKER = ".wincli-state"
LOCK = ".wincli-lock"
JOURNAL = ".journal.json"
RUNNING = ".running.json"
LAST_ERROR = ".last-error.json"
RECORD = "unit.json"
_LONGEST_NAME = 255  # bytes: the limit of common file systems


def put(path: Path, content: str) -> None:
    """Write a file atomically, and to disk before this returns. Raises `OSError`."""
    with writing(path, _half(path)) as half:
        half.write_text(content, encoding="utf-8")
    atomic_swap.sync(path.parent)


def put_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a value as indented JSON with its checksum, as `put` does."""
    put(path, json.dumps(seal(value), indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path, keys: Set[str], do: str) -> dict[str, Any] | None:
    """Return the value that `put_json` has written, None where the file does not exist.

    Raises `DamagedError` where the content is not what was written, or its keys are not ``keys``, and
    `NotADirectoryError` where a folder of the path is a file. ``do``: what the user can do about damage.
    """
    try:
        value = unseal(read_object(path.read_bytes()))
        if value.keys() != keys:
            raise ValueError("its keys are others")
    except FileNotFoundError:
        return None
    except NotADirectoryError:  # a folder above the state is a file: there is no state that could be damaged
        raise
    except OSError as error:
        raise DamagedError(f"cannot read {path}: {reason(error)}", do) from error
    except ValueError as error:
        raise not_as_written(path, do) from error
    return value


def not_as_written(path: Path, do: str) -> DamagedError:
    """Return the error for a file of the state whose content is not what was written; ``do``: what the user can do."""
    return DamagedError(f"{path} is damaged: it is not what was written there", do)


@dataclass(frozen=True, slots=True)
class Running:
    """The unit that is under way, or was when its run was killed.

    ``unit``: its label.
    ``outputs``: the outputs that it writes to.
    """

    unit: str
    outputs: tuple[WrittenOutput, ...]


def read_running(root: Path) -> Running | None:
    """Return the unit that is under way or was killed; None where there is none.

    Raises `DamagedError`, which loses nothing but the knowledge of where a killed run left staging folders.
    """
    do = "the next run to the same outputs removes what is left beside them"
    running = read_json(root / RUNNING, {"unit", "outputs"}, do)
    try:
        return None if running is None else Running(str(running["unit"]), tuple(map(_written, running["outputs"])))
    except (TypeError, ValueError) as error:
        raise not_as_written(root / RUNNING, do) from error


def _written(value: dict[str, str]) -> WrittenOutput:
    output = WrittenOutput(**value)
    if not isinstance(output.path, str):
        raise TypeError("a path is no text")
    return output


def read_last_error(root: Path) -> dict[str, Any] | None:
    """Return ``when``, ``unit`` and ``message`` of the last failure, or None. Raises `DamagedError`."""
    return read_json(root / LAST_ERROR, {"when", "unit", "message"}, "the next run that fails writes it anew")


def staged(root: Path, token: str) -> Path:
    """Return the folder in which the run with the id ``token`` writes its unit."""
    return root / f".new-{token}"


def former(root: Path, token: str) -> Path:
    """Return the folder to which a swap without exchange renames the unit that it replaces."""
    return root / f".old-{token}"


def refuse_content(root: Path, shown: str) -> None:
    """Raise `ConfigError` for a folder that is not empty and no state, and for a state of a newer wincli."""
    if root.exists() and not root.is_dir():
        raise ConfigError(f"the state {shown} is not a folder", "name a folder")
    marker = read_json(root / MARKER, {"format"}, f'write {{"format": {FORMAT}}} into it')
    if marker is not None:
        if marker["format"] != FORMAT:
            raise newer(f"the state {shown}", marker["format"], FORMAT)
    elif root.exists() and any(path.name not in _BEFORE_MARKER for path in root.iterdir()):
        what = f"{shown} is not empty and is not a state of wincli; nothing was touched"
        raise ConfigError(what, "choose another folder for the state, or empty that one yourself")


def check_name(name: str, what: str) -> None:
    """Raise `ConfigError` where the name of a unit or stage cannot be that of a visible folder.

    ``what``: the words for the thing in the message, such as ``the unit``.
    """
    if not name or name.startswith(".") or "/" in name or "\0" in name or len(os.fsencode(name)) > _LONGEST_NAME:
        raise ConfigError(f"{what} {name!r} cannot be a folder of the state", "use letters, digits, - and _")
    if name == RECORD:
        raise ConfigError(f"{what} {name!r} is a name that the state keeps for itself", "choose another")


def read_records(root: Path) -> dict[str, UnitRecord]:
    """Return the records of all finished units by label. Raises `DamagedError` where one cannot be read."""
    folders = sorted(path for path in root.iterdir() if not path.name.startswith(".") and path.is_dir())
    return {record.label: record for folder in folders if (record := _read_record(folder))}


def _read_record(folder: Path) -> UnitRecord | None:
    """Return a record, None for a unit that another run replaces while this reader, without the lock, looks."""
    path = folder / RECORD
    try:
        record = UnitRecord.from_json(path.read_bytes(), str(path))
    except FileNotFoundError as error:
        if not folder.exists():
            return None
        what = f"{folder} has no {RECORD}, and so is no unit of the state"
        raise DamagedError(what, "restore that file, or move the folder away if it is not from wincli") from error
    if record.label != folder.name:
        raise DamagedError(f"{path} is the record of {record.label}", f"move {folder} out of the state")
    return record


def has_data(root: Path, record: UnitRecord) -> bool:
    """Whether the window state of a unit is still there; only the last units keep it, and all stages go together."""
    return any((root / record.label / stage.name).is_dir() for stage in record.stages)


def prune(root: Path, records: Iterable[UnitRecord], keep: int, newest: str) -> None:
    """Delete the window state of all units except the last ``keep`` by ordinal; their records stay.

    The unit ``newest``, the last that was committed, keeps its window state whatever its ordinal: a correction restores
    it.
    """
    last = sorted(records, key=lambda record: record.ordinal)[-keep:]
    kept = {newest, *(record.label for record in last)}
    for record in records:
        for stage in record.stages if record.label not in kept else ():
            remove(root, root / record.label / stage.name)


def remove(root: Path, path: Path) -> None:
    """Delete a folder of the state atomically, if it exists.

    The rename before that stops tasks of a killed run that still write to the folder by its name.
    """
    if path.exists():
        gone = root / f".gone-{new_token()}"
        path.rename(gone)
        shutil.rmtree(gone)


def remove_state_leftovers(root: Path) -> None:
    """Delete what killed runs left in a state. The caller must hold its lock, and there must be no journal."""
    for path in list(root.iterdir()):
        if re.fullmatch(r"\.(new|old|gone)-[0-9a-f]{12}", path.name):
            remove(root, path)
        elif path in map(_half, (root / name for name in (MARKER, JOURNAL, RUNNING, LAST_ERROR))):
            path.unlink()


def _half(path: Path) -> Path:
    """Return the temporary name under which `put` writes a file."""
    return path.with_name(f"{path.name}.half")


_BEFORE_MARKER = (LOCK, f"{MARKER}.half")
