"""Files on any file system: listed, written so that readers see all of a file or none of it, and mapped into memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeAlias

import pyarrow as pa
from pyarrow import fs

from . import atomic_swap
from .atomic_file import attempt_at, writing
from .place import has_no_folders, is_local

Writable: TypeAlias = "IO[bytes] | pa.NativeFile"


def list_files(system: fs.FileSystem, folder: str) -> list[str]:
    """Return the paths of all files below a folder; an empty list where the folder does not exist."""
    found = system.get_file_info(fs.FileSelector(folder, recursive=True, allow_not_found=True))
    return [info.path for info in found if info.type == fs.FileType.File]


def is_file(system: fs.FileSystem, path: str) -> bool:
    """Whether there is a file at a path."""
    return system.get_file_info(path).type == fs.FileType.File


@contextmanager
def open_file(system: fs.FileSystem, path: str, is_kept: bool = True) -> Iterator[Writable]:
    """Open a file for writing; a file that is killed half way is never at ``path``. Raises `OSError`.

    ``is_kept``: whether the file is written to disk, where there is one, before this returns. Tasks call this: so they
    sync in parallel, and on the machine that has the pages.
    """
    if not is_local(system):
        with system.open_output_stream(path) as file:  # an object becomes visible, complete, when it is closed
            yield file
        return
    target = Path(path)
    with writing(target, attempt_at(target), is_kept) as attempt, pa.OSFile(str(attempt), "wb") as file:
        yield file


def put_file(system: fs.FileSystem, path: str, content: bytes) -> None:
    """Write a small file to a folder that nobody reads yet, and make that folder; to disk before this returns.

    Raises `OSError`.
    """
    if not has_no_folders(system):
        system.create_dir(path.rpartition("/")[0], recursive=True)
    with system.open_output_stream(path) as file:
        file.write(content)
    if is_local(system):
        atomic_swap.sync(Path(path))


def map_file(system: fs.FileSystem, path: str) -> pa.NativeFile:
    """Open a file that is to be read whole, mapped into memory where that is possible. Raises `OSError`."""
    if is_local(system):
        return pa.memory_map(path)
    with system.open_input_file(path) as file:  # one request; a reader of any offset, and a stream, make several
        return pa.BufferReader(file.read_buffer(file.size()))
