"""A file as a task opens it, and the translation of what can go wrong into an error that names it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePosixPath

import pyarrow as pa
from pyarrow import fs

from ...windowing.errors import InputError

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
_THREADS = 8
_SECOND = 10**9
_FEW = 8  # files of a folder in a store that are asked for one by one


@dataclass(frozen=True, slots=True)
class Located:
    """A file on a filesystem: ``path`` there, and ``shown``, the path as the user would write it.

    ``size`` in bytes and ``mtime_ns`` as they were when it was listed: it is opened only as long as it has them. None
    for what nobody else changes.
    """

    fs: fs.FileSystem
    path: str
    shown: str
    size: int | None = None
    mtime_ns: int | None = None

    @property
    def compression(self) -> str | None:
        """The codec that its name promises."""
        return COMPRESSIONS.get(PurePosixPath(self.path).suffix.lower())

    @property
    def is_local(self) -> bool:
        """Whether reads have no latency worth hiding."""
        return isinstance(self.fs, fs.LocalFileSystem)

    def open_file(self) -> pa.NativeFile:
        """Open it for random access, as its bytes are. Raises `InputError` where it is not what was listed."""
        return self._checked(self.fs.open_input_file(self._address))

    def open_stream(self) -> pa.NativeFile:
        """Open it for reading from start to end, decompressed. Raises as `open_file` does."""
        return self._checked(self.fs.open_input_stream(self._address, compression=self.compression))

    def check(self) -> None:
        """Raise `InputError` where size or time of the file are not those that were listed, or it is gone."""
        if self.size is not None:
            with input_errors(self.shown):
                self._compare(*self._version())

    @property
    def _address(self) -> str | bytes:
        """What Arrow opens it by: of local names the bytes, which need not be UTF-8."""
        return os.fsencode(self.path) if self.is_local else self.path

    def _checked(self, file: pa.NativeFile) -> pa.NativeFile:
        """Return a file once it is open: what stands in its place from now on is no longer what is read."""
        try:
            if self.size is not None:
                self._compare(*self._version())
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
        unit = 1 if self.is_local else _SECOND  # all that some ways to ask a store tell
        if size != self.size or (
            mtime_ns is not None and self.mtime_ns is not None and mtime_ns // unit != self.mtime_ns // unit
        ):
            raise has_changed(self.shown)


def version_of(info: fs.FileInfo) -> tuple[int, int | None]:
    """Return size and time of a file in a store. Raises `FileNotFoundError` where there is none."""
    if info.type == fs.FileType.NotFound:
        raise FileNotFoundError(info.path)
    return info.size or 0, info.mtime_ns


def has_changed(shown: str) -> InputError:
    """Return the error for a file that was written to or replaced while a run reads it."""
    return InputError(f"{shown} has changed since the run began", "run it again when nothing writes to it")


def check_all(files: Iterable[Located]) -> None:
    """Check that all files are what was listed, many at a time. Raises `InputError` naming the first that is not."""
    known = [file for file in files if file.size is not None]
    here = [file for file in known if file.is_local]
    step = max(1, -(-len(here) // _THREADS))
    groups = [here[at : at + step] for at in range(0, len(here), step)]
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(_check_each, groups))
        list(pool.map(_check_folder, _by_folder(file for file in known if not file.is_local)))


def _check_each(files: Sequence[Located]) -> None:
    for file in files:
        file.check()


def _by_folder(files: Iterable[Located]) -> list[list[Located]]:
    """Return the files of stores by folder, for a store tells of a thousand in one answer."""

    def folder(file: Located) -> str:
        return file.path.rpartition("/")[0]

    return [list(group) for _, group in groupby(sorted(files, key=folder), folder)]


def _check_folder(files: Sequence[Located]) -> None:
    first = files[0]
    if len(files) <= _FEW or any(file.fs != first.fs for file in files):
        _check_each(files)
        return
    with input_errors(first.shown):
        selector = fs.FileSelector(first.path.rpartition("/")[0], allow_not_found=True)
        there = {info.path: info for info in first.fs.get_file_info(selector)}
    for file in files:
        with input_errors(file.shown):
            if file.path not in there:
                raise FileNotFoundError(file.path)
            file._compare(*version_of(there[file.path]))


class BadContentError(Exception):
    """What is wrong inside a file, said without its name: `naming` makes it an `InputError`."""

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
    except (OSError, pa.ArrowException) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(
            f"{file} cannot be read{what}: {reason.rstrip('.')}", "it may be cut short or of another format"
        ) from error
