"""Where the files of one stage of a unit are: a local folder, or a folder of an object store. Tasks are handed one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol, TypeAlias

import pyarrow as pa
from pyarrow import fs

from ...windowing.support.addresses.file_systems import file_system_of, read_file
from ..folders.atomic_file import attempt_at, writing

SUFFIX = ".parquet"
Writable: TypeAlias = "IO[bytes] | pa.NativeFile"


class StageFolder(Protocol):
    """A folder of Parquet files. It pickles. All methods raise `OSError`."""

    def sizes(self) -> dict[str, int]:
        """Return the sizes of the files in bytes by name, without what killed attempts left."""

    def read(self, name: str) -> pa.Buffer:
        """Return the content of a file. Raises `FileNotFoundError` where it is gone."""

    def write(self, name: str) -> AbstractContextManager[Writable]:
        """Open a file for writing, which is seen whole and durable, or not at all; it replaces one of that name."""


@dataclass(frozen=True, slots=True)
class LocalStage:
    """A `StageFolder` on a local file system.

    ``path``: the folder.
    """

    path: str

    def sizes(self) -> dict[str, int]:
        """Return the sizes of the visible files."""
        there = [path for path in Path(self.path).glob(f"[!.]*{SUFFIX}") if path.is_file()]
        return {path.name: path.stat().st_size for path in there}

    def read(self, name: str) -> pa.Buffer:
        """Return the content of a file."""
        return pa.py_buffer(read_file(Path(self.path, name)))

    @contextmanager
    def write(self, name: str) -> Iterator[Writable]:
        """Write under a hidden name, sync to disk, and rename."""
        path = Path(self.path, name)
        with writing(path, attempt_at(path)) as attempt, attempt.open("wb") as file:
            yield file


@dataclass(frozen=True, slots=True)
class StoreStage:
    """A `StageFolder` in an object store. Tasks reach it through pyarrow, whose clients outlive a fork.

    ``uri``: the URI of the state, with the secrets that it has.
    ``below``: the folder below it.
    """

    uri: str = field(repr=False)
    below: str

    def sizes(self) -> dict[str, int]:
        """Return the sizes of the objects."""
        system, folder = self._open()
        found = system.get_file_info(fs.FileSelector(folder, allow_not_found=True))
        return {info.base_name: int(info.size) for info in found if info.base_name.endswith(SUFFIX)}

    def read(self, name: str) -> pa.Buffer:
        """Return the content of an object."""
        system, folder = self._open()
        with system.open_input_file(f"{folder}/{name}") as file:
            return file.read_buffer()

    @contextmanager
    def write(self, name: str) -> Iterator[Writable]:
        """Put an object once all of it is known: an upload that an error ends would be complete, but truncated.

        All attempts at a task write one name, and the same bytes, so that it does not matter which of them comes last.
        """
        system, folder = self._open()
        whole = pa.BufferOutputStream()
        yield whole
        with system.open_output_stream(f"{folder}/{name}") as file:
            file.write(whole.getvalue())

    def _open(self) -> tuple[fs.FileSystem, str]:
        system, path = file_system_of(self.uri)
        return system, f"{path}/{self.below}"
