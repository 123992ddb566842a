"""The Parquet files with the window state of a stage: tasks of one unit write them, tasks of the next read them."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs, parquet

from ...windowing.columns.arrays import combined
from ...windowing.columns.row_hashes import hasher_of
from ...windowing.errors import DamagedError, InputError
from ...windowing.ports import Part
from ...windowing.state.state_tables import POS, DecidingNumbers, window_numbers
from ...windowing.state.state_types import exactly
from ...windowing.support.checksum import Checked, checksum
from ...windowing.support.file_systems import file_system_of, read_file
from ...windowing.support.store_errors import store_trouble
from ..formats.encoder import is_bytes, plain
from ..places.atomic_files import Writable, open_file
from ..places.os_errors import output_errors, reason

# Where the files of one stage of a unit are: a local folder, or a folder of an object store. Tasks are handed one.


SUFFIX = ".parquet"


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
    """A `StageFolder` on a local file system."""

    path: str

    def sizes(self) -> dict[str, int]:
        there = [path for path in Path(self.path).glob(f"[!.]*{SUFFIX}") if path.is_file()]
        return {path.name: path.stat().st_size for path in there}

    def read(self, name: str) -> pa.Buffer:
        return pa.py_buffer(read_file(Path(self.path, name)))

    def write(self, name: str) -> AbstractContextManager[Writable]:
        return open_file(fs.LocalFileSystem(), f"{self.path}/{name}")


@dataclass(frozen=True, slots=True)
class StoreStage:
    """A `StageFolder` in an object store. Tasks reach it through pyarrow, whose clients outlive a fork.

    ``uri``: the URI of the state, with the secrets that it has.
    """

    uri: str = field(repr=False)
    below: str

    def sizes(self) -> dict[str, int]:
        system, folder = self._open()
        found = system.get_file_info(fs.FileSelector(folder, allow_not_found=True))
        return {info.base_name: int(info.size) for info in found if info.base_name.endswith(SUFFIX)}

    def read(self, name: str) -> pa.Buffer:
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


_ENRICH = "table-"
_COMPRESSION = "zstd"  # small files: they stay for many units and are read once
_RESTORE = (
    "restore it; a unit of a range may be run again with --redo, "
    "the last plain run with --mode overwrite after wincli state forget"
)


@dataclass(frozen=True, slots=True)
class ParquetStateFiles:
    """A `windowing.ports.StateFiles` over the folder of one stage in a unit of a state. It pickles.

    Tables are read back with the same values and types, except that dictionaries of anything but text become plain
    columns. Writing raises `OutputError` naming the file. Reading raises `DamagedError`, also where a file is gone or
    differs from the record, and `InputError` where a store refuses.

    ``shown``: the folder as the user knows it, for messages.
    ``recorded``: the files in the record of the unit; None for a unit that is being written.
    """

    folder: StageFolder
    shown: str
    recorded: tuple[Part, ...] | None = None

    def write_rows(self, index: int, table: pa.Table) -> Part:
        return self.write_table(f"rows-{index:05d}", table)

    def write_keys(self, index: int, table: pa.Table) -> Part:
        return self.write_table(f"keys-{index:05d}", table)

    def write_table(self, name: str, table: pa.Table) -> Part:
        name = f"{name}.parquet"
        with self._open(name) as file:
            encode(table, file)
        return Part(name, table.num_rows, file.nbytes, file.checksum, digest_of(table))

    def write_encoded(self, name: str, table: EncodedTable) -> Part:
        """Write what `write_table` writes."""
        name = f"{name}.parquet"
        with self._open(name) as file:
            file.write(table.content.to_pybytes())
        return Part(name, table.rows, file.nbytes, file.checksum, table.digest)

    def read_table(self, name: str) -> pa.Table | None:
        part = next((part for part in self._files() if part.name == f"{name}.parquet"), None)
        return None if part is None else self.read_part(part)

    def tables(self, beginning: str) -> tuple[Part, ...]:
        found = (part for part in self._files() if not is_part(part.name) and part.name.startswith(beginning))
        return tuple(sorted(found, key=lambda part: part.name))

    def parts(self, kind: Literal["rows", "keys"]) -> tuple[Part, ...]:
        found = (part for part in self._files() if is_part(part.name) and part.name.startswith(f"{kind}-"))
        return tuple(sorted(found, key=lambda part: (len(part.name), part.name)))

    def read_part(self, part: Part) -> pa.Table:
        shown = f"{self.shown}/{part.name}"
        with _reading(shown):
            data = self.folder.read(part.name)
            if data.size != part.nbytes:
                raise damaged(shown, f"it has {data.size:,} bytes, not the {part.nbytes:,} of its record")
            if part.checksum is not None and (found := checksum(data)) != part.checksum:
                raise damaged(shown, f"its checksum is {found}, not the {part.checksum} of its record")
            with parquet.ParquetFile(pa.BufferReader(data)) as file:
                written = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(file.metadata.metadata[b"ARROW:schema"])))
                table = _in_types(file.read(), written)  # Parquet has no seconds, for one
        if table.num_rows != part.rows:
            raise damaged(shown, f"it has {table.num_rows:,} rows, not the {part.rows:,} that were written")
        return table

    def check(self) -> None:
        """Check names and sizes of the files against the record. Raises `DamagedError` naming a file that differs."""
        there = self._there()
        recorded = {part.name: part.nbytes for part in self.recorded or ()}
        for name, nbytes in recorded.items():
            if name not in there:
                raise damaged(f"{self.shown}/{name}", "it is gone")
            if there[name] != nbytes:
                raise damaged(f"{self.shown}/{name}", f"it has {there[name]:,} bytes, not the {nbytes:,} of its record")
        if stray := sorted(there.keys() - recorded.keys()):
            raise damaged(f"{self.shown}/{stray[0]}", "no run has written it there")

    def _files(self) -> tuple[Part, ...]:
        if self.recorded is not None:
            self.check()
            return self.recorded
        found = []
        for name in self._there():
            with _reading(f"{self.shown}/{name}"):
                data = self.folder.read(name)
                found.append(Part(name, parquet.read_metadata(pa.BufferReader(data)).num_rows, data.size))
        return tuple(found)

    def _there(self) -> dict[str, int]:
        with _reading(self.shown):
            return self.folder.sizes()

    @contextmanager
    def _open(self, name: str) -> Iterator[Checked]:
        with output_errors(f"{self.shown}/{name}"), self.folder.write(name) as file:
            yield Checked(file)


@dataclass(frozen=True, slots=True)
class EncodedTable:
    """A table of a state as its file will be. It pickles.

    ``content``: the bytes of the file.
    ``rows``, ``digest``: as `Part` has them.
    """

    content: pa.Buffer
    rows: int
    digest: str | None

    @classmethod
    def of(cls, table: pa.Table) -> EncodedTable:
        sink = pa.BufferOutputStream()
        encode(table, sink)
        return cls(sink.getvalue(), table.num_rows, digest_of(table))


def digest_of(table: pa.Table) -> str | None:
    """Return the digest of the rows of a table of a state; None where a column has a type without a hash."""
    hasher = hasher_of(plain(table.schema))
    return None if hasher is None else str(hasher.digest(table))


def encode(table: pa.Table, file: Any) -> None:
    """Write a table of a state to a file, which nothing but the table decides."""
    types = pa.schema([field.with_type(_plain(field.type)) for field in table.schema])
    parquet.write_table(_in_types(table, types), file, compression=_COMPRESSION)


@dataclass(frozen=True, slots=True)
class Sameness:
    """How far two window states of a stage are the same.

    ``decides``: they are equal in all that decides what comes of them.
    ``numbers``: the next windows of their keys have equal numbers, too.
    """

    decides: bool
    numbers: bool


def same_tables(former: ParquetStateFiles, now: ParquetStateFiles, deciding: DecidingNumbers) -> Sameness:
    """Return how far two stages have the same window state, however it is divided into parts.

    ``deciding``: which numbers count. Of arrival positions only the order does. Files with equal checksums are the
    same, even if the former files are gone by now; a damaged former state is never the same. Call this in a task,
    because it reads both states completely.
    """
    parts = [*(former.recorded or ()), *(now.recorded or ())]
    is_known = None not in (former.recorded, now.recorded) and all(part.checksum is not None for part in parts)
    if is_known and set(former.recorded or ()) == set(now.recorded or ()):
        return Sameness(decides=True, numbers=True)
    try:
        one = _tables_of(former)
    except DamagedError:
        return Sameness(decides=False, numbers=False)
    other = _tables_of(now)
    divided: dict[str, Callable[[pa.Table], pa.Table]] = {"keys": deciding.of_keys}
    divided |= dict.fromkeys(("rows", "advances"), deciding.of_rows)

    def are_same(name: str, part: Callable[[pa.Table], pa.Table]) -> bool:
        known = (None if table is None else part(table) for table in (one[name], other[name]))
        return same_table(*(table if table is not None and table.num_rows else None for table in known))

    return Sameness(
        one.keys() == other.keys()
        and all(same_table(one[name], other[name]) for name in one if name not in divided)
        and all(are_same(name, part) for name, part in divided.items())
        and _ranks(one) == _ranks(other),
        are_same("keys", window_numbers),
    )


def _tables_of(files: ParquetStateFiles) -> dict[str, pa.Table | None]:
    """Return the window state of a stage by name, one table for all tasks; None for one without rows or without a file.

    These are its ``rows``, ``keys``, ``position``, ``advances`` and ``windows``, and the last rows of enrich tables by
    their files.
    """
    found = {part.name: files.read_part(part) for part in files.tables(_ENRICH)}
    found |= {name: files.read_table(name) for name in ("position", "advances", "windows")}
    return found | {"rows": _read_all(files, "rows"), "keys": _read_all(files, "keys")}


def _read_all(files: ParquetStateFiles, kind: Literal["rows", "keys"]) -> pa.Table | None:
    tables = [table for table in map(files.read_part, files.parts(kind)) if table.num_rows]
    return pa.concat_tables(tables) if tables else None


def same_table(one: pa.Table | None, other: pa.Table | None) -> bool:
    """Whether two tables have the same columns and values; NaN is the same as NaN."""
    if one is None or other is None:
        return one is other
    if one.schema != other.schema or one.num_rows != other.num_rows:
        return False
    pairs = ((a.combine_chunks(), b.combine_chunks()) for a, b in zip(one.columns, other.columns, strict=True))
    return all(
        a.equals(b) or repr(a.to_pylist()) == repr(b.to_pylist()) for a, b in pairs
    )  # NaN is not equal to itself


def _ranks(tables: Mapping[str, pa.Table | None]) -> list[int]:
    held = (tables["rows"], tables["advances"])
    pos = [table.column(POS).combine_chunks() for table in held if table is not None]
    ranks: list[int] = pc.rank(pa.concat_arrays(pos), tiebreaker="dense").to_pylist() if pos else []
    return ranks


def is_part(name: str) -> bool:
    """Whether a file holds rows or keys."""
    return re.fullmatch(r"(rows|keys)-\d{5,}\.parquet", name) is not None


def _in_types(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        column if column.type == kind else exactly(combined(column), kind)
        for column, kind in zip(table.columns, schema.types, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) and not is_bytes(kind.value_type) else kind


def damaged(shown: str, why: str) -> DamagedError:
    """Return the error for a file of a unit that differs from what was written."""
    return DamagedError(f"{shown} is damaged: {why}", _RESTORE)


@contextmanager
def _reading(shown: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise damaged(shown, "it is gone") from error
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
        if isinstance(error, OSError) and not error.errno and (trouble := store_trouble(str(error))):
            raise InputError(f"cannot read {shown}: {trouble.words}", trouble.do) from error
        why = reason(error) if isinstance(error, OSError) else "it is not the Parquet file that was written there"
        raise damaged(shown, why) from error
