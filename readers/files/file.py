"""One input file as a task opens it; errors of the system and of Arrow become an `InputError` that names the file."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any, Self

import pyarrow as pa
from pyarrow import fs

from ...windowing.errors import InputError
from ...windowing.support.file_systems import check_file
from ...windowing.support.store_errors import first_line, store_trouble

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
_THREADS = 8
_SECOND = 10**9
_GZIP = 16 + zlib.MAX_WBITS  # zlib reads gzip's header and trailer, too
_PACKED = 64 << 10  # compressed bytes at a time
_FEW = 8  # up to so many files of a folder in a store are checked one by one, else by one listing


@dataclass(frozen=True, slots=True)
class Located:
    """The location of a file, and its version when it was listed.

    ``path``: the path in that file system.
    ``shown``: the path as the user would write it, for messages.
    ``size``: the size in bytes when listed; None where no other process changes the file. The file opens only while it
        has this size and time.
    ``mtime_ns``: the modification time in ns since the epoch when listed; None where it is unknown.
    ``columns``: what is read of it, with field ids in the metadata of fields, where a table knows columns by these;
        None: all of its columns by their names.
    """

    fs: fs.FileSystem
    path: str
    shown: str
    size: int | None = None
    mtime_ns: int | None = None
    columns: pa.Schema | None = None

    @property
    def compression(self) -> str | None:
        return COMPRESSIONS.get(os.path.splitext(self.path)[1].lower())  # noqa: PTH122 - a Path takes far longer to make

    @property
    def is_local(self) -> bool:
        return isinstance(self.fs, fs.LocalFileSystem)

    def open_file(self) -> pa.NativeFile:
        """Open the file for random access, without decompression.

        Raises `InputError` where the file has changed since it was listed.
        """
        self._check_kind()
        return self._checked(self.fs.open_input_file(self._address))

    def open_stream(self) -> pa.NativeFile | _GzipStream:
        """Open the file, or what reads like one, for decompressed reading from start to end; raises as `open_file`."""
        self._check_kind()
        stream = self._checked(self.fs.open_input_stream(self._address, compression=self.compression))
        return _GzipStream(self, stream) if self.compression == "gzip" else stream

    def check(self) -> None:
        """Raise `InputError` where the file is gone, or its size or time has changed since it was listed."""
        if self.size is not None:
            with input_errors(self.shown):
                self._compare(*self._version())

    def _check_kind(self) -> None:
        if self.is_local:
            check_file(self.path)

    @property
    def _address(self) -> str | bytes:
        """The path that Arrow opens: bytes for a local name, which need not be UTF-8."""
        return os.fsencode(self.path) if self.is_local else self.path

    def _checked(self, file: pa.NativeFile) -> pa.NativeFile:
        """Return an open file, or close it and raise `InputError` where it is not the listed version.

        The check comes after opening: a file that replaces this one later does not change what the handle reads.
        """
        try:
            if self.size is not None:
                self._compare(*(_told_version(file, self.fs) or self._version()))
        except BaseException:
            file.close()
            raise
        return file

    def _version(self) -> tuple[int, int | None]:
        if self.is_local:
            known = os.stat(self.path)  # noqa: PTH116 - a Path takes longer to make than this to answer
            return known.st_size, known.st_mtime_ns
        return version_of(self.fs.get_file_info(self.path))

    def _compare(self, size: int, mtime_ns: int | None) -> None:
        unit = 1 if self.is_local else _SECOND  # some requests to a store return whole seconds only
        if size != self.size or (
            mtime_ns is not None and self.mtime_ns is not None and mtime_ns // unit != self.mtime_ns // unit
        ):
            raise has_changed(self.shown)


class _GzipStream:
    """A gzip file as Arrow decompresses it, except for the zeros that tapes and crashes leave behind its end.

    Arrow takes them for damage. So where it fails, the file is read once more up to that point by a loop that knows
    them, and on from there; if that fails as well the file is damaged.
    """

    def __init__(self, place: Located, stream: pa.NativeFile) -> None:
        self._place = place
        self._stream = stream
        self._given = 0
        self._rest: Iterator[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stream.close()

    def read(self, size: int | None = None) -> bytes:
        """Return some bytes, up to ``size`` as long as Arrow reads; none at the end."""
        if self._rest is not None:
            return next(self._rest, b"")
        try:
            found = self._stream.read(size)
        except OSError as error:
            self._rest = self._again(error)
            return next(self._rest, b"")
        self._given += len(found)
        return found

    def _again(self, error: OSError) -> Iterator[bytes]:
        """Yield what comes after the bytes that were read already. Raises ``error`` where that is no gzip either."""
        skip = self._given
        with self._place.open_file() as file:
            try:
                for data in _members(file):
                    if len(data) > skip:
                        yield data[skip:]
                    skip = max(skip - len(data), 0)
            except (zlib.error, EOFError):
                raise error from None


def _members(file: pa.NativeFile) -> Iterator[bytes]:
    """Yield the bytes of all members of a gzip file, behind each of which there may be zeros.

    Raises `zlib.error` for a file that is damaged, `EOFError` for one that is cut short.
    """
    member: Any = zlib.decompressobj(_GZIP)
    while data := file.read(_PACKED):
        while data:
            if member is None:
                data = data.lstrip(b"\0")
                member = zlib.decompressobj(_GZIP) if data else None
                continue
            yield member.decompress(data)
            data, member = (member.unused_data, None) if member.eof else (b"", member)
    if member is not None:
        raise EOFError


def _told_version(file: pa.NativeFile, system: fs.FileSystem) -> tuple[int, int] | None:
    """Return size in bytes and mtime in ns as S3 told them when a file was opened; None where nobody told them."""
    if system.type_name != "s3":
        return None
    told = file.metadata() or {}
    try:
        changed = datetime.fromisoformat(told["Last-Modified"].decode())
        return int(told["Content-Length"]), int(changed.timestamp()) * _SECOND
    except (KeyError, ValueError):
        return None


def version_of(info: fs.FileInfo) -> tuple[int, int | None]:
    """Return size in bytes and mtime in ns of a file in a store. Raises `FileNotFoundError` where there is no file."""
    if info.type == fs.FileType.NotFound:
        raise FileNotFoundError(info.path)
    return info.size or 0, info.mtime_ns


def has_changed(shown: str) -> InputError:
    """Return the error for a file that another process changed or replaced during the run."""
    return InputError(f"{shown} has changed since the run began", "run it again when nothing writes to it")


def check_all(files: Iterable[Located]) -> None:
    """Check in parallel that no file has changed since it was listed. Raises `InputError` naming one that has."""
    known = [file for file in files if file.size is not None]
    here = [file for file in known if file.is_local]
    step = max(1, -(-len(here) // _THREADS))
    groups = [here[at : at + step] for at in range(0, len(here), step)]
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(_check_each, groups))
        # Of stores by folder: a store lists a thousand files in one answer.
        far = sorted((file for file in known if not file.is_local), key=_folder)
        list(pool.map(_check_folder, [list(group) for _, group in groupby(far, _folder)]))


def _check_each(files: Sequence[Located]) -> None:
    for file in files:
        file.check()


def _folder(file: Located) -> str:
    return file.path.rpartition("/")[0]


def _check_folder(files: Sequence[Located]) -> None:
    first = files[0]
    if len(files) <= _FEW or any(file.fs != first.fs for file in files):
        _check_each(files)
        return
    with input_errors(first.shown):
        selector = fs.FileSelector(_folder(first), allow_not_found=True)
        there = {info.path: info for info in first.fs.get_file_info(selector)}
    for file in files:
        with input_errors(file.shown):
            if file.path not in there:
                raise FileNotFoundError(file.path)
            file._compare(*version_of(there[file.path]))


class BadContentError(Exception):
    """An error in the content of a file, without the file's name; `input_errors` turns it into an `InputError`."""

    def __init__(self, what: str, do: str) -> None:
        super().__init__(what, do)
        self.what = what
        self.do = do


@contextmanager
def input_errors(file: str, what: str = "") -> Iterator[None]:
    """Turn errors of the operating system and of Arrow into an `InputError` that names ``file``."""
    try:
        yield
    except BadContentError as error:
        raise InputError(f"{file} {error.what}", error.do) from None
    except PermissionError:
        raise InputError(f"{file} may not be read: permission denied", "check who may read it") from None
    except FileNotFoundError:
        raise InputError(f"{file} is not there any more", "run it again when nothing changes the input") from None
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:  # a damaged name of a column is no text
        if trouble := store_trouble(str(error)):
            raise InputError(f"{file} cannot be read{what}: {trouble.words}", trouble.do) from error
        do = "it may be cut short or of another format"
        raise InputError(f"{file} cannot be read{what}: {first_line(error)}", do) from error
