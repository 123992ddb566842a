"""The layout of a state: one folder for each unit, hidden names for work in progress, and small storage.

``LABEL/unit.json`` is the record of a finished unit and stays forever. ``LABEL/STAGE/`` holds the window state of the
stage at the end of the unit. ``.wincli-state`` marks the folder as a state, ``.wincli-lock`` is its lock,
``.journal.json`` a commit under way, ``.running.json`` a unit under way, ``.last-error.json`` the last failure,
``.forgotten.json`` which units were taken out of the state. What else is there while units are written depends on where
the state is kept (`storage`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...windowing.errors import ConfigError, DamagedError
from ...windowing.support.address import Address
from ...windowing.support.checksum import read_object, sealed_text, unseal
from ...windowing.support.file_systems import file_system_of, reach
from ..places.atomic_files import is_file
from ..places.os_errors import reason
from .unit_record import UnitRecord, WrittenOutput

if TYPE_CHECKING:  # states are recognised by commands that load no tables
    from .storage import StateStorage

FORMAT = 1
"""The format of the folder; goes up when its layout changes."""
MARKER = ".wincli-state"
LOCK = ".wincli-lock"
JOURNAL = ".journal.json"
RUNNING = ".running.json"
LAST_ERROR = ".last-error.json"
FORGOTTEN = ".forgotten.json"
RECORD = "unit.json"
_LONGEST_NAME = 255  # bytes: the limit of common file systems


def is_state(path: str) -> bool:
    """Whether a path or URI is that of a folder that holds a state of any format; false where it cannot be reached."""
    if not Address.of(path).is_in_store:
        return (Path(path.removeprefix("file://")) / MARKER).is_file()
    try:
        reach(path)
        system, folder = file_system_of(path)
        return is_file(system, f"{folder}/{MARKER}")
    except (OSError, ValueError):
        return False


def put_json(storage: StateStorage, name: str, value: Mapping[str, Any]) -> None:
    """Write a value as indented JSON with its checksum. Raises `OSError`."""
    storage.put(name, sealed_text(value))


def read_json(storage: StateStorage, name: str, keys: Set[str], do: str) -> dict[str, Any] | None:
    """Return the value that `put_json` has written, None where the document does not exist.

    Raises `DamagedError` where the content is not what was written, or its keys are not ``keys``, and
    `NotADirectoryError` where a folder of the path is a file. ``do``: what the user can do about damage.
    """
    try:
        content = storage.read(name)
        if content is None:
            return None
        value = unseal(read_object(content))
        if value.keys() != keys:
            raise ValueError("its keys are others")
    except NotADirectoryError:  # a folder above the state is a file: there is no state that could be damaged
        raise
    except OSError as error:
        raise DamagedError(f"cannot read {storage.path_of(name)}: {reason(error)}", do) from error
    except ValueError as error:
        raise not_as_written(storage, name, do) from error
    return value


def not_as_written(storage: StateStorage, name: str, do: str) -> DamagedError:
    """Return the error for a document whose content is not what was written; ``do``: what the user can do."""
    return DamagedError(f"{storage.path_of(name)} is damaged: it is not what was written there", do)


def read_running(storage: StateStorage) -> tuple[str, tuple[WrittenOutput, ...]] | None:
    """Return the unit that is under way, or was when its run was killed, and its outputs; None where there is none.

    Raises `DamagedError`, which loses nothing but the knowledge of where a killed run left staging folders.
    """
    do = "the next run to the same outputs removes what is left beside them"
    value = read_json(storage, RUNNING, {"unit", "outputs"}, do)
    if value is None:
        return None
    try:
        outputs = tuple(WrittenOutput(**output) for output in value["outputs"])
        if not all(isinstance(output.path, str) for output in outputs):
            raise TypeError("a path is no text")
    except (TypeError, ValueError) as error:
        raise not_as_written(storage, RUNNING, do) from error
    return str(value["unit"]), outputs


def read_last_error(storage: StateStorage) -> dict[str, Any] | None:
    """Return ``when``, ``unit`` and ``message`` of the last failure, or None. Raises `DamagedError`."""
    return read_json(storage, LAST_ERROR, {"when", "unit", "message"}, "the next run that fails writes it anew")


def read_forgotten(storage: StateStorage) -> dict[str, str]:
    """Return the units that were taken out of a state: label to the id of the run that was forgotten.

    A unit that has been run again since then has another run. Raises `DamagedError`.
    """
    do = "delete it: then a unit that was being forgotten when the command was killed is in the state again"
    found = read_json(storage, FORGOTTEN, {"units"}, do)
    return {} if found is None else dict(found["units"])


def note_forgotten(storage: StateStorage, gone: Iterable[UnitRecord]) -> None:
    """Write that units are taken out of a state, beside those that are known and have not been run since."""
    kept = storage.records()
    still = {label: run for label, run in read_forgotten(storage).items() if label not in kept}
    put_json(storage, FORGOTTEN, {"units": {**still, **{record.label: record.run for record in gone}}})


def check_name(name: str, what: str) -> None:
    """Raise `ConfigError` where the name of a unit or stage cannot be that of a visible folder.

    ``what``: the words for the thing in the message, such as ``the unit``.
    """
    if not name or name.startswith(".") or "/" in name or "\0" in name or len(os.fsencode(name)) > _LONGEST_NAME:
        raise ConfigError(f"{what} {name!r} cannot be a folder of the state", "use letters, digits, - and _")
    if name == RECORD:
        raise ConfigError(f"{what} {name!r} is a name that the state keeps for itself", "choose another")
