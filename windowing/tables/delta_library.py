"""The library ``deltalake``, an extra: loaded when a table is opened, and its errors in one line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np
from pyarrow import fs

from ..errors import ConfigError, DamagedError, InputError, install_extra
from ..support.address import Address
from ..support.file_systems import (
    FILE,
    StoreAddress,
    endpoint,
    file_system_of,
    kind_of_mode,
    reach,
    read_file,
    region,
)
from ..support.redaction import redacted_path
from ..support.store_errors import first_line, store_trouble
from .address import version_time

if TYPE_CHECKING:
    from deltalake import DeltaTable


LOG = "_delta_log"
"""The folder of a table that has its log."""
_DEEPEST = 500  # levels of JSON; the parser of the library ends the process at some ten thousand
_CHECKED: dict[str, tuple[int, int]] = {}
"""By path, size and time of each file of a log that was looked at: a run opens its table some ten times."""
_RESTORE = "restore it from a copy, or from the program that wrote it"


def open_table(root: str, version: str | None = None) -> DeltaTable:
    """Open a table at a version; None: the newest.

    Raises `InputError` where there is no table or no such version, `ConfigError` where the library is missing or
    ``version`` is neither a number nor a time.
    """
    deltalake = import_library()
    shown = redacted_path(root)
    if Path(root).is_file():
        raise InputError(f"{shown} is a file, and a Delta table is a folder", "name a folder")
    if Address.of(root).is_path:
        _check_log(Path(os.path.realpath(root), LOG), shown)
    with input_errors(shown):
        reach(root)
        try:
            table: DeltaTable = deltalake.DeltaTable(uri_of(root), storage_options=storage_options(root))
        except deltalake.exceptions.TableNotFoundError as error:
            raise InputError(f"{shown} is no Delta table: it has no {LOG}", "check the path") from error
        if version is not None:
            _load(table, version, root)
    return table


def _check_log(log: Path, shown: str) -> None:
    if not log.is_dir():
        return
    with os.scandir(log) as entries:
        for entry in entries:
            # Who commits at this moment gives a file its name in two steps, and another one may clean the log.
            with suppress(FileNotFoundError):
                _check_entry(entry, f"{shown}/{LOG}/{entry.name}")


def _check_entry(entry: os.DirEntry[str], place: str) -> None:
    known = entry.stat()
    version = (known.st_size, known.st_mtime_ns)
    if entry.name.startswith(("_", ".")) and entry.is_dir():  # of sidecars and commits in staging
        return
    if (kind := kind_of_mode(known.st_mode)) != FILE:
        raise DamagedError(f"{place} cannot be read: {kind} stands there, and no file", _RESTORE)
    if entry.name.endswith(".json") and _CHECKED.get(entry.path) != version:
        if any(map(_is_deep, read_file(entry.path).splitlines())):
            raise DamagedError(f"{place} cannot be read: it nests more than {_DEEPEST} levels", _RESTORE)
        _CHECKED[entry.path] = version


def _is_deep(line: bytes) -> bool:
    """Whether more brackets are open in a line than any log has; brackets in texts count as well."""
    if line.count(b"[") + line.count(b"{") <= _DEEPEST:
        return False
    letters = np.frombuffer(line, np.uint8) & ~np.uint8(0x20)  # "{" and "[" differ in one bit, as "}" and "]" do
    return bool((np.cumsum(letters == ord("["), dtype=np.int64) - np.cumsum(letters == ord("]"))).max() > _DEEPEST)


def import_library() -> Any:
    """Return the module ``deltalake``. Raises `ConfigError` where it is not installed."""
    try:
        import deltalake  # noqa: PLC0415 - heavy, and few runs need it
        import deltalake.exceptions  # noqa: PLC0415
    except ImportError as error:
        what = "Delta tables need the package deltalake, which is not installed"
        raise ConfigError(what, install_extra("delta")) from error
    return deltalake


def storage_options(root: str) -> dict[str, str] | None:
    """Return what the library has to know of a store besides what it finds in the environment."""
    address = StoreAddress.parse(root)
    if address is None or address.scheme != "s3":
        return None
    at = address.option("endpoint_override")
    scheme = address.option("scheme") or "https"
    named = endpoint() if at is None else at if "://" in at else f"{scheme}://{at}"
    known = {
        "AWS_ACCESS_KEY_ID": address.user,
        "AWS_SECRET_ACCESS_KEY": address.password,
        "AWS_REGION": address.option("region") or region(),
        "AWS_ENDPOINT_URL": named,
        "AWS_ALLOW_HTTP": "true" if named and named.startswith("http://") else None,
    }
    return {name: value for name, value in known.items() if value}


@contextmanager
def input_errors(shown: str) -> Iterator[None]:
    """Turn errors of the library into an `InputError` that names the table, in one line."""
    try:
        yield
    except import_library().exceptions.DeltaError as error:
        raise _error(shown, "cannot be read as a Delta table", error) from error
    except OSError as error:
        raise _error(shown, "cannot be reached", error) from error


def _error(shown: str, what: str, error: Exception) -> InputError:
    if (trouble := store_trouble(str(error))) is not None:
        return InputError(f"{shown} cannot be read: {trouble.words}", trouble.do)
    return InputError(f"{shown} {what}: {first_line(error)}")


def uri_of(root: str) -> str:
    """Return a path or URI as the library takes it: without credentials and parameters.

    Raises `ConfigError` for a path in which the library would take ``%2e`` for a dot, and so read another folder.
    """
    if Address.of(root).is_path:
        whole = os.path.realpath(root)
        if unquote(whole) != whole:
            what = f"{redacted_path(root)} cannot be a Delta table: its path has a % before two hex digits"
            raise ConfigError(what, "choose a path without these")
        return whole
    address = StoreAddress.parse(root)
    if address is None or address.scheme == "abfs":
        return Address.of(root).plain.rstrip("/")
    return f"{address.scheme}://{address.bucket}/{address.path}".rstrip("/")


def _load(table: DeltaTable, version: str, root: str) -> None:
    newest, shown = table.version(), redacted_path(root)
    if version.isascii() and version.isdigit():
        if int(version) > newest:
            raise InputError(f"{shown} has no version {version}", f"its newest is {newest}")
        table.load_as_version(int(version))
        return
    time = version_time(version, f"no version of {shown}", "its number, or a time such as 2026-11-01T06:00")
    # The oldest version in the log is of the time of its file, as the library takes it.
    system, inner = file_system_of(root)
    infos = system.get_file_info(fs.FileSelector(f"{inner}/{LOG}"))
    times = [info.mtime for info in infos if info.extension == "json" and info.mtime is not None]
    if times and time < (first := min(times)):
        raise InputError(f"{shown} has no version at {version}", f"its first is of {first.isoformat()}")
    table.load_as_version(time)
