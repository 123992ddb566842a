"""A place for inputs and outputs: whether files can be listed, written, read, moved and deleted there."""

from __future__ import annotations

import posixpath
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from pathlib import Path

from pyarrow import fs

from ...readers.files.file import Located
from ...readers.files.result_folders import read_manifest
from ...windowing.errors import ConfigError, WincliError
from ...windowing.support.address import Address
from ...windowing.support.amounts import ahead_words
from ...windowing.support.file_systems import reach
from ...windowing.support.redaction import redacted, redacted_path
from ...writers.places.conditional import ConditionalStore, refuses_stale_puts
from ...writers.places.open import open_store
from ...writers.places.os_errors import reason
from ...writers.places.place import MANIFEST, is_local, new_token, resolve

_LONGEST = 300  # characters of what a store says
_CONTENT = b"wincli doctor\n" * 64
_HELP = {
    "s3": "give credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or a role of the machine; to a "
    "store that is not Amazon's say where it is: s3://BUCKET/PATH?endpoint_override=HOST:PORT",
    "gs": "give credentials: GOOGLE_APPLICATION_CREDENTIALS, or gcloud auth application-default login",
    "abfs": "give credentials: AZURE_STORAGE_ACCOUNT_KEY, or az login",
    "hdfs": "set HADOOP_HOME, and CLASSPATH to what hadoop classpath --glob prints",
}


def check_store(uri: str) -> str:
    """Check a place step by step, with a small file that is deleted again; return what was done, in words.

    Raises `WincliError` at the first step that fails.
    """
    shown, done = redacted_path(uri), list[str]()
    began, word = time.perf_counter(), "reached"
    try:
        with closing(_steps(uri)) as steps:
            for word, act in steps:
                act()
                done.append(word)
    except WincliError as error:
        raise ConfigError(f"{shown}: {redacted(error.what)}", error.do) from error
    except (OSError, ValueError) as error:
        words = " ".join((reason(error) if isinstance(error, OSError) else str(error)).split())[:_LONGEST]
        do = _HELP.get(Address.of(uri).scheme, "check the path and its permissions")
        raise ConfigError(f"{shown} cannot be {word}: {redacted(words)}", do) from error
    return f"{shown}: {', '.join(done)}, in {time.perf_counter() - began:.1f} s"


def rows_ahead_in(uri: str) -> Iterator[str]:
    """Yield the rows that results in a place, or in folders there, have found ahead of their time, in words."""
    system, folder = resolve(uri)
    found = system.get_file_info(fs.FileSelector(folder, allow_not_found=True))
    folders = [folder, *sorted(each.path for each in found if each.type == fs.FileType.Directory)]
    for place in (Located(system, f"{each}/{MANIFEST}", each) for each in folders):
        with suppress(OSError, ValueError, WincliError):  # most folders are no results
            told = read_manifest(place).get("ahead")
            if told and told["rows"]:
                below = f"{posixpath.basename(place.shown)}: " if place.shown != folder else ""
                yield below + ahead_words(told)


def _steps(uri: str) -> Generator[tuple[str, Callable[[], None]]]:
    """Yield the steps in turn; whatever happens between them, the small files of the check are deleted."""
    yield "reached", lambda: reach(uri)
    system, folder = resolve(uri)
    is_store = Address.of(uri).is_in_store
    if not is_store and is_local(system) and not Path(folder).is_dir():
        raise ConfigError("there is no such folder", "make it, or name another")
    yield "listed", lambda: _list(system, folder)
    store, name = open_store(uri) if is_store else None, f".wincli-doctor-{new_token()}"
    probe = f"{folder}/{name}"
    moved = f"{probe}-moved"
    try:
        yield "written", lambda: _put(system, probe)
        yield "read", lambda: _read(system, probe)
        if store is None:
            yield "renamed in", lambda: system.move(probe, moved)
            yield "cleaned", lambda: system.delete_file(moved)
    finally:
        for path in (probe, moved) if store is None else ():
            with suppress(OSError):  # the step that failed is reported; a place that cannot delete keeps the small file
                if system.get_file_info(path).type == fs.FileType.File:
                    system.delete_file(path)
        with suppress(OSError):
            if store is not None:
                store.delete([name])
    if store is not None:
        yield "used for commits", lambda: _compare(store, name)


def _compare(store: ConditionalStore, name: str) -> None:
    if not refuses_stale_puts(store, name):
        what = "it does not compare versions, so two runs could both commit there"
        raise ConfigError(what, "write to another store")


def _list(system: fs.FileSystem, folder: str) -> None:
    system.get_file_info(fs.FileSelector(folder, allow_not_found=True))


def _put(system: fs.FileSystem, path: str) -> None:
    with system.open_output_stream(path) as file:
        file.write(_CONTENT)


def _read(system: fs.FileSystem, path: str) -> None:
    with system.open_input_stream(path) as file:
        if file.read() != _CONTENT:
            raise OSError("what is read is not what was written")
