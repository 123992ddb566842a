"""Files on any file system: listed, written so that readers see all of a file or none of it, and mapped into memory."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeAlias

import pyarrow as pa
from pyarrow import fs

from .place import is_local, new_token

# Replace a folder by another on a local file system, atomically, and write to disk what was written.
#
# If the folder is absent or empty, one rename does it; else one exchange of two names (Linux). Where the system
# cannot exchange names, the old folder is renamed first, and the next run has to complete a swap that a kill
# interrupted.


_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP}


def replace(out: Path, new: Path, old: Path) -> None:
    """Put the folder ``new`` at the path ``out``; the former content of ``out`` is afterwards at ``new`` or ``old``.

    All three paths are in one file system. If this raises `OSError`, ``out`` is unchanged, unless only the sync of its
    parent failed.
    """
    if is_vacant(out):
        new.rename(out)
    elif not exchange(new, out):
        out.rename(old)
        try:
            new.rename(out)
        except OSError:
            old.rename(out)
            raise
    sync(out.parent)


def is_vacant(out: Path) -> bool:
    """Whether a rename to ``out`` loses nothing: ``out`` is absent or an empty folder."""
    try:
        with os.scandir(out) as entries:
            return next(entries, None) is None
    except FileNotFoundError:
        return True


def exchange(one: Path, other: Path) -> bool:
    """Exchange two names atomically; return False, with nothing changed, where the system or file system cannot."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if sys.platform == "linux" else None
    if rename is None:
        return False
    if rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), ctypes.c_uint(_RENAME_EXCHANGE)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), str(other))


def sync(path: Path) -> None:
    """Write a file or folder to disk before returning (fsync), where its file system supports that."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    finally:
        os.close(fd)


# Write a local file under another name and rename it: readers see all of the file or none of it.


@contextmanager
def writing(path: Path, attempt: Path, is_kept: bool = True) -> Iterator[Path]:
    """Yield ``attempt``, a path in the same folder to write to, and rename it to ``path``; after an error, delete it.

    ``is_kept``: whether the file is written to disk before it is renamed.
    """
    try:
        yield attempt
        if is_kept:
            sync(attempt)
        attempt.replace(path)
    except BaseException:
        attempt.unlink(missing_ok=True)
        raise


def is_attempt(name: str) -> bool:
    """Whether a file is the leftover of a killed attempt."""
    return name.rpartition("/")[2].startswith(".")


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
    hidden = target.with_name(f".{target.name}.{new_token()}")  # attempts of a task may run at once, or be killed
    with writing(target, hidden, is_kept) as attempt, pa.OSFile(str(attempt), "wb") as file:
        yield file


def put_file(system: fs.FileSystem, path: str, content: bytes) -> None:
    """Write a small file to a folder that nobody reads yet, and make that folder; to disk before this returns.

    Raises `OSError`.
    """
    if is_local(system):
        system.create_dir(path.rpartition("/")[0], recursive=True)
    with system.open_output_stream(path) as file:
        file.write(content)
    if is_local(system):
        sync(Path(path))


def map_file(system: fs.FileSystem, path: str) -> pa.NativeFile:
    """Open a file that is to be read whole, mapped into memory where that is possible. Raises `OSError`."""
    if is_local(system):
        return pa.memory_map(path)
    with system.open_input_file(path) as file:  # one request; a reader of any offset, and a stream, make several
        return pa.BufferReader(file.read_buffer(file.size()))
