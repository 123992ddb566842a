"""A file as a task opens it, and the translation of what can go wrong into an error that names it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

import pyarrow as pa
from pyarrow import fs

from windowing.errors import InputError

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}


@dataclass(frozen=True, slots=True)
class Located:
    """A file on a filesystem: ``path`` there, and ``shown``, the path as the user would write it."""

    fs: fs.FileSystem
    path: str
    shown: str

    @property
    def compression(self) -> str | None:
        """The codec that its name promises."""
        return COMPRESSIONS.get(PurePosixPath(self.path).suffix.lower())

    @property
    def is_local(self) -> bool:
        """Whether reads have no latency worth hiding."""
        return isinstance(self.fs, fs.LocalFileSystem)

    def open_file(self) -> pa.NativeFile:
        """Open it for random access, as its bytes are."""
        return self.fs.open_input_file(self.path)

    def open_stream(self) -> pa.NativeFile:
        """Open it for reading from start to end, decompressed."""
        return self.fs.open_input_stream(self.path, compression=self.compression)


class BadContentError(Exception):
    """What is wrong inside a file, said without its name: `naming` makes it an `InputError`."""

    def __init__(self, what: str, do: str) -> None:
        super().__init__(what, do)
        self.what = what
        self.do = do


@contextmanager
def naming(file: str, what: str = "") -> Iterator[None]:
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
