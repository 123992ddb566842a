"""The Parquet files in which a stage keeps what it holds: written by tasks, read by those of the next unit."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from windowing.carry_tables import POS
from windowing.engine.ports import Part
from windowing.errors import InputError
from writers import swap
from writers.faults import reason, writing
from writers.place import new_token
from writers.schema import is_bytes

_COMPRESSION = "zstd"  # kept for many nights and read once


@dataclass(frozen=True, slots=True)
class StageFiles:
    """The ``folder`` of one stage in a unit of a state; ``shown``: that folder as the user knows it. It pickles.

    What it writes it reads back with the same values and types, but that dictionaries of other things than text come
    back as plain columns. Writing raises `OutputError` naming the file, reading `InputError`.
    """

    folder: str
    shown: str

    def write_rows(self, index: int, table: pa.Table) -> Part:
        """Write the held rows of task ``index``. Writing them again replaces them (a retried task)."""
        return self._write(f"rows-{index:05d}.parquet", table)

    def write_keys(self, index: int, table: pa.Table) -> Part:
        """Write the keys of task ``index`` and their registers, as `write_rows` does."""
        return self._write(f"keys-{index:05d}.parquet", table)

    def write_table(self, name: str, table: pa.Table) -> Part:
        """Write a table that is no part of many, such as ``advances`` or ``position``."""
        return self._write(f"{name}.parquet", table)

    def read_table(self, name: str) -> pa.Table | None:
        """Return what `write_table` has written, None where it has written nothing."""
        return self._read(f"{name}.parquet") if Path(self.folder, f"{name}.parquet").exists() else None

    def parts(self, kind: Literal["rows", "keys"]) -> tuple[Part, ...]:
        """Return the parts of rows or of keys by index, their rows counted from the footers."""
        there = (path.name for path in Path(self.folder).glob(f"{kind}-*.parquet"))
        return tuple(map(self._part, sorted(filter(is_part, there), key=lambda name: (len(name), name))))

    def read_part(self, part: Part) -> pa.Table:
        """Return the rows or keys of a part."""
        return self._read(part.name)

    def _part(self, name: str) -> Part:
        path = Path(self.folder, name)
        with _reading(f"{self.shown}/{name}"):
            return Part(name, parquet.read_metadata(path).num_rows, path.stat().st_size)

    def _read(self, name: str) -> pa.Table:
        with _reading(f"{self.shown}/{name}"), parquet.ParquetFile(Path(self.folder, name)) as file:
            written = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(file.metadata.metadata[b"ARROW:schema"])))
            return file.read().cast(written)  # Parquet has no seconds, for one

    def _write(self, name: str, table: pa.Table) -> Part:
        """Write under a name of its own first: two attempts at one task may run at once, or be killed."""
        path = Path(self.folder, name)
        attempt = path.with_name(f".{name}.{new_token()}")
        with writing(f"{self.shown}/{name}"):
            try:
                parquet.write_table(_writable(table), attempt, compression=_COMPRESSION)
                swap.sync(attempt)
                attempt.replace(path)
            except BaseException:
                attempt.unlink(missing_ok=True)
                raise
            return Part(name, table.num_rows, path.stat().st_size)


def same_tables(one: StageFiles, other: StageFiles) -> bool:
    """Whether two stages hold the same, however it is cut into parts; of arrival positions only their order counts.

    Reads both whole: for a task.
    """
    rows, others = (_together(files, "rows") for files in (one, other))
    before, then = (files.read_table("advances") for files in (one, other))
    return (
        _same(one.read_table("position"), other.read_table("position"))
        and _same(_together(one, "keys"), _together(other, "keys"))
        and _same(*map(_without_pos, (rows, others)))
        and _same(*map(_without_pos, (before, then)))
        and _ranks(rows, before) == _ranks(others, then)
    )


def _together(files: StageFiles, kind: Literal["rows", "keys"]) -> pa.Table | None:
    tables = [table for table in map(files.read_part, files.parts(kind)) if table.num_rows]
    return pa.concat_tables(tables) if tables else None


def _same(one: pa.Table | None, other: pa.Table | None) -> bool:
    if one is None or other is None:
        return one is other
    if one.schema != other.schema or one.num_rows != other.num_rows:
        return False
    pairs = ((a.combine_chunks(), b.combine_chunks()) for a, b in zip(one.columns, other.columns, strict=True))
    return all(
        a.equals(b) or repr(a.to_pylist()) == repr(b.to_pylist()) for a, b in pairs
    )  # NaN is not equal to itself


def _without_pos(table: pa.Table | None) -> pa.Table | None:
    return None if table is None else table.drop_columns([POS])


def _ranks(rows: pa.Table | None, advances: pa.Table | None) -> list[int]:
    """The place of each row, and of each advance of the watermark, in the order of arrival of all of them."""
    pos = [table.column(POS).combine_chunks() for table in (rows, advances) if table is not None]
    ranks: list[int] = pc.rank(pa.concat_arrays(pos), tiebreaker="dense").to_pylist() if pos else []
    return ranks


def is_part(name: str) -> bool:
    """Whether a file holds rows or keys."""
    return re.fullmatch(r"(rows|keys)-\d{5,}\.parquet", name) is not None


def _writable(table: pa.Table) -> pa.Table:
    """Return the table without dictionaries that Parquet does not give back."""
    fields = [field.with_type(_plain(field.type)) for field in table.schema]
    return table.cast(pa.schema(fields))


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) and not is_bytes(kind.value_type) else kind


@contextmanager
def _reading(shown: str) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        why = reason(error) if isinstance(error, OSError) else "it is not the Parquet file that was written there"
        raise InputError(f"cannot read {shown}: {why}", "restore it, or go on from an older unit") from error
