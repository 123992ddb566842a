"""The layout of a state: a local folder with one folder a unit, and hidden names beside these for what is under way.

``LABEL/unit.json`` is the record of a finished unit and stays for ever; ``LABEL/STAGE/`` holds what the stage held at
its end. ``.wincli-state`` marks the folder as a state, ``.wincli-lock`` is its lock, ``.journal.json`` a commit that is
under way, ``.running.json`` a unit that is, ``.last-error.json`` why the last run failed. With an id of 12 hex digits,
``.new-ID`` is a unit being written, ``.old-ID`` a former one during a swap, ``.gone-ID`` what is being deleted.
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
from ..folders.os_errors import reason
from ..folders.place import new_token
from .unit_record import UnitRecord, WrittenOutput, newer

FORMAT = 1
"""Of the folder; goes up when its layout changes."""
MARKER = ".wincli-state"
LOCK = ".wincli-lock"
JOURNAL = ".journal.json"
RUNNING = ".running.json"
LAST_ERROR = ".last-error.json"
RECORD = "unit.json"
_LONGEST_NAME = 255  # bytes, of the file systems there are


def put(path: Path, content: str) -> None:
    """Write a file that is seen whole or not at all, and on disk before this returns. Raises `OSError`."""
    half = _half(path)
    try:
        half.write_text(content, encoding="utf-8")
        atomic_swap.sync(half)
        half.replace(path)
    except BaseException:
        half.unlink(missing_ok=True)
        raise
    atomic_swap.sync(path.parent)


def put_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a value as JSON that people can read, with its checksum, as `put` does."""
    put(path, json.dumps(seal(value), indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path, keys: Set[str], do: str) -> dict[str, Any] | None:
    """Return what `put_json` has written, None where there is none.

    Raises `DamagedError` where it is not what was written, or has not exactly these ``keys``; ``do``: what to do then.
    """
    try:
        value = unseal(read_object(path.read_bytes()))
        if value.keys() != keys:
            raise ValueError("its keys are others")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DamagedError(f"cannot read {path}: {reason(error)}", do) from error
    except ValueError as error:
        raise DamagedError(f"{path} is damaged: it is not what was written there", do) from error
    return value


@dataclass(frozen=True, slots=True)
class Running:
    """The ``unit`` that was begun last and has not ended, and the outputs that it writes to."""

    unit: str
    outputs: tuple[WrittenOutput, ...]


def read_running(root: Path) -> Running | None:
    """Return what is under way, or was killed; None where nothing is.

    Raises `DamagedError`: all that is lost with it is where a killed run left folders.
    """
    do = "the next run to the same outputs removes what is left beside them"
    running = read_json(root / RUNNING, {"unit", "outputs"}, do)
    try:
        return None if running is None else Running(str(running["unit"]), tuple(map(_written, running["outputs"])))
    except (TypeError, ValueError) as error:
        raise DamagedError(f"{root / RUNNING} is damaged: it is not what was written there", do) from error


def _written(value: dict[str, str]) -> WrittenOutput:
    output = WrittenOutput(**value)
    if not isinstance(output.path, str):
        raise TypeError("a path is no text")
    return output


def read_last_error(root: Path) -> dict[str, Any] | None:
    """Return ``when``, ``unit`` and ``message`` of the last run that failed, or None. Raises `DamagedError`."""
    return read_json(root / LAST_ERROR, {"when", "unit", "message"}, "the next run that fails writes it anew")


def staged(root: Path, token: str) -> Path:
    """Return the folder of the unit that is being written by the run with the id ``token``."""
    return root / f".new-{token}"


def former(root: Path, token: str) -> Path:
    """Return where a unit that is being replaced steps aside, if need be."""
    return root / f".old-{token}"


def refuse_content(root: Path, shown: str) -> None:
    """Raise `ConfigError` where a folder is neither absent, nor empty, nor a state, or a state of a newer wincli."""
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
    """Raise `ConfigError` where a unit or stage has a name that cannot be that of a folder which stands out."""
    if not name or name.startswith(".") or "/" in name or "\0" in name or len(os.fsencode(name)) > _LONGEST_NAME:
        raise ConfigError(f"{what} {name!r} cannot be a folder of the state", "use letters, digits, - and _")
    if name == RECORD:
        raise ConfigError(f"{what} {name!r} is a name that the state keeps for itself", "choose another")


def read_records(root: Path) -> dict[str, UnitRecord]:
    """Return the records of all finished units by label. Raises `InputError` where one cannot be read."""
    folders = sorted(path for path in root.iterdir() if not path.name.startswith(".") and path.is_dir())
    return {record.label: record for folder in folders if (record := _read_record(folder))}


def _read_record(folder: Path) -> UnitRecord | None:
    """Return a record, None for a unit that is being replaced while a reader without the lock looks on."""
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
    """Whether what a unit held is kept, as it is for the last units only: all of its stages go together."""
    return any((root / record.label / stage.name).is_dir() for stage in record.stages)


def prune(root: Path, records: Iterable[UnitRecord], keep: int, newest: str) -> None:
    """Delete what all but the last ``keep`` units held, by ordinal; their records stay.

    The unit ``newest``, the last that was committed, keeps its data whatever its ordinal: a correction goes on from it.
    """
    last = sorted(records, key=lambda record: record.ordinal)[-keep:]
    kept = {newest, *(record.label for record in last)}
    for record in records:
        for stage in record.stages if record.label not in kept else ():
            remove(root, root / record.label / stage.name)


def remove(root: Path, path: Path) -> None:
    """Delete a folder of the state, if it is there, so that it is gone at once or not at all.

    Tasks of a killed run may still be writing into it: under a new name they lose it.
    """
    if path.exists():
        gone = root / f".gone-{new_token()}"
        path.rename(gone)
        shutil.rmtree(gone)


def remove_state_leftovers(root: Path) -> None:
    """Delete what killed runs left in a state. Only for who holds its lock, and where there is no journal."""
    for path in list(root.iterdir()):
        if re.fullmatch(r"\.(new|old|gone)-[0-9a-f]{12}", path.name):
            remove(root, path)
        elif path in map(_half, (root / name for name in (MARKER, JOURNAL, RUNNING, LAST_ERROR))):
            path.unlink()


def _half(path: Path) -> Path:
    """Return under what name a file is written."""
    return path.with_name(f"{path.name}.half")


_BEFORE_MARKER = (LOCK, f"{MARKER}.half")
