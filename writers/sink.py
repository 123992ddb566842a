"""Where tasks write: part files into the staging folder of an output, from any process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

import pyarrow as pa
from pyarrow import fs

from windowing.engine.ports import Part
from windowing.errors import ConfigError
from writers import csv, jsonl, parquet, swap
from writers.faults import writing
from writers.place import REJECTED, new_token
from writers.schema import plain

Format = Literal["parquet", "csv", "jsonl"]
Encoder = Callable[[pa.Table, pa.Schema, "IO[bytes] | pa.NativeFile"], None]
ENCODERS: dict[Format, Encoder] = {"parquet": parquet.encode, "csv": csv.encode, "jsonl": jsonl.encode}
"""How a table becomes a file. A table has the columns of the schema, in its order, possibly dictionary encoded."""


@dataclass(frozen=True, slots=True)
class FileSink:
    """A `Sink` into the folder ``staging`` of the file system ``fs``; ``shown`` is the output as the user wrote it.

    Its two methods raise `OutputError` naming the file where it cannot be written, `DataError` where a value
    has no form in the format.
    """

    fs: fs.FileSystem
    staging: str
    shown: str
    format: Format
    schema: pa.Schema
    reject_schema: pa.Schema

    def write_part(self, index: int, batches: Sequence[pa.RecordBatch] | pa.Table) -> Part:
        """Write ``part-<index>``; no batches at all make a part with no rows."""
        table = as_table(batches, self.schema)
        return self._write(f"part-{index:05d}.{self.format}", self.format, table, self.schema)

    def write_rejects(self, index: int, rows: pa.Table) -> Part:
        """Write the rejected rows of task ``index`` as Parquet; columns that ``rows`` lacks are null."""
        columns = [
            rows[field.name] if field.name in rows.schema.names else pa.nulls(rows.num_rows, field.type)
            for field in self.reject_schema
        ]
        table = pa.table(columns, names=self.reject_schema.names)
        with writing(f"{self.shown}/{REJECTED}"):
            self.fs.create_dir(f"{self.staging}/{REJECTED}", recursive=False)
        return self._write(f"{REJECTED}/part-{index:05d}.parquet", "parquet", table, self.reject_schema)

    def _write(self, name: str, format: Format, table: pa.Table, schema: pa.Schema) -> Part:
        path = f"{self.staging}/{name}"
        with writing(f"{self.shown}/{name}"):
            if isinstance(self.fs, fs.LocalFileSystem):
                self._write_local(Path(path), format, table, schema)
            else:  # an object appears whole when it is closed
                with self.fs.open_output_stream(path) as file:
                    ENCODERS[format](table, schema, file)
            return Part(name, table.num_rows, self.fs.get_file_info(path).size)

    def _write_local(self, path: Path, format: Format, table: pa.Table, schema: pa.Schema) -> None:
        """Write under a name of its own first: two attempts at one task may run at once, or be killed."""
        attempt = path.parent / f".{path.name}.{new_token()}"
        try:
            with pa.OSFile(str(attempt), "wb") as file:
                ENCODERS[format](table, schema, file)
            swap.sync(attempt)  # here, where it runs beside other tasks, and on the machine that wrote it
            attempt.replace(path)
        except BaseException:
            attempt.unlink(missing_ok=True)
            raise


def is_attempt(name: str) -> bool:
    """Whether a file in the staging folder is what a killed attempt at a part left."""
    return name.rpartition("/")[2].startswith(".")


def as_table(batches: Sequence[pa.RecordBatch] | pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the batches as one table with the columns of ``schema`` in its order, dictionaries kept where all agree.

    Raises `KeyError` for a column that is not there.
    """
    if isinstance(batches, pa.Table):
        return batches.select(schema.names)
    if not batches:
        return schema.empty_table()
    chosen = [batch.select(schema.names) for batch in batches]
    if any(batch.schema != chosen[0].schema for batch in chosen):
        chosen = [batch.cast(plain(schema)) for batch in chosen]
    return pa.Table.from_batches(chosen)


def check_types(format: Format, schema: pa.Schema) -> None:
    """Raise `ConfigError` where two columns have one name or the format cannot hold the type of a column."""
    names: list[str] = schema.names
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"the output has two columns named {twice!r}", "give one of them another name")
    for field in schema:
        row = pa.table({field.name: pa.nulls(1, field.type)})  # some types are refused only when a row comes
        try:
            ENCODERS[format](row, row.schema, pa.BufferOutputStream())
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
            what = f"{format} cannot hold column {field.name!r} of type {field.type}"
            raise ConfigError(what, "leave it out, or choose another --output-format") from error
