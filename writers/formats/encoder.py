"""The contract of an output format: how it encodes tables, and how its part files become one stream."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pyarrow as pa

from ...windowing.support.formats import FORMATS, Format, load

Write = Callable[[pa.Table], None]
"""Writes the next rows to a file that is open."""

Open = Callable[[pa.Schema, "IO[bytes] | pa.NativeFile"], AbstractContextManager[Write]]
"""Begins a file with the columns of a schema; its context takes tables with these, in their order, some dictionary
encoded, and ends the file."""

_STEP = 1 << 20


def concatenate(parts: Sequence[Path], file: IO[bytes]) -> None:
    """Write part files one after the other."""
    for part in parts:
        with part.open("rb") as content:
            shutil.copyfileobj(content, file, _STEP)


@dataclass(frozen=True, slots=True)
class Encoder:
    """The encoder of one output format.

    ``open``: begins a part file that takes tables as they come. Raises `DataError` for a value that has no form in the
        format, and an error of Arrow for a type that has none.
    ``join``: writes part files, in their order, as one stream. Raises `OSError`.
    ``check``: raises an error of Arrow where a written file cannot be read; None where all can.
    """

    open: Open
    join: Callable[[Sequence[Path], IO[bytes]], None] = concatenate
    check: Callable[[pa.Buffer], object] | None = None

    def encode(self, tables: Iterable[pa.Table], schema: pa.Schema, file: IO[bytes] | pa.NativeFile) -> None:
        """Write tables as one part file. Raises as ``open`` does."""
        with self.open(schema, file) as write:
            for table in tables:
                write(table)


def encoder_of(format: Format) -> Encoder:
    """Return the encoder of a format; its module is imported here."""
    encoder: Encoder = load(FORMATS[format].encoder).ENCODER
    return encoder


def join_tables(open: Open, read: Callable[[Path], tuple[pa.Schema, Iterable[pa.Table]]]) -> Callable[..., None]:
    """Return a `join` for formats with a footer: it reads the parts with ``read`` and writes them as one file.

    Concatenation would not do, because the footer holds offsets in the file.
    """

    def join(parts: Sequence[Path], file: IO[bytes]) -> None:
        if len(parts) < 2:
            concatenate(parts, file)
            return
        whole = parts[0].parent / f"_whole{parts[0].suffix}"
        with pa.OSFile(str(whole), "wb") as target, open(read(parts[0])[0], target) as write:
            for part in parts:
                for table in read(part)[1]:
                    write(table)
        concatenate([whole], file)

    return join


# The column types of a result on disk.


def plain(schema: pa.Schema) -> pa.Schema:
    """Return a schema as readers of a part see it: no dictionaries, no views, no metadata."""
    return pa.schema([pa.field(field.name, _plain(field.type), field.nullable) for field in schema])


def is_bytes(kind: pa.DataType) -> bool:
    """Whether a type holds text or bytes of variable length."""
    return kind in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())


def is_list(kind: pa.DataType) -> bool:
    """Whether a type is a list of any kind."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_integral(kind: pa.DataType) -> bool:
    """Whether a type is stored as integers: integers, dates, times, timestamps, durations."""
    kinds = (pa.types.is_integer, pa.types.is_date, pa.types.is_time, pa.types.is_timestamp, pa.types.is_duration)
    return any(is_kind(kind) for is_kind in kinds)


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_large_list(kind):
        return pa.large_list(_plain(kind.value_type))
    return {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(kind, kind)
