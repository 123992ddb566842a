"""Encode CSV parts: a header, commas, quotes around text.

Null is an empty field and the empty text is two quotes, so they differ. Timestamps are ISO 8601 with a space, with the
digits of the column's unit; timestamps with a zone are in UTC with a Z. Numbers are the shortest text that reads back
as the same number (whole floats have no point: 2), decimals are exact. Lists and structs are JSON text, binary is
hexadecimal, durations are counts of their unit.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyarrow as pa
from pyarrow import csv

from .encoder import Encoder, Write, concatenate, plain
from .text import batches, check_years, hexadecimal, in_utc, is_binary, json_text

_HEADER = 1 << 24  # bytes: more than any header has


@contextmanager
def begin(schema: pa.Schema, file: IO[bytes] | pa.NativeFile) -> Iterator[Write]:
    """Write the header to ``file``, then rows. Raises `DataError` for a time outside the years -32767 to 32767."""
    target = plain(schema)
    cells = pa.schema([pa.field(field.name, _cells(pa.array([], field.type), field.name).type) for field in target])
    with csv.CSVWriter(file, cells) as writer:

        def write(table: pa.Table) -> None:
            for batch in batches(table):
                columns = list(map(_cells, batch.cast(target).columns, target.names))
                writer.write_batch(pa.record_batch(columns, schema=cells))

        yield write


def _cells(array: pa.Array, name: str) -> pa.Array:
    if pa.types.is_nested(array.type):
        return json_text(array, name)
    if is_binary(array.type):
        return hexadecimal(array)
    check_years(array, name)
    return in_utc(array)


def _join(parts: Sequence[Path], file: IO[bytes]) -> None:
    concatenate(parts[:1], file)
    for part in parts[1:]:
        with part.open("rb") as content:
            data = content.read(_HEADER)
            at = data.find(b"\n")
            while data.count(b'"', 0, at) % 2:
                at = data.find(b"\n", at + 1)
            content.seek(at + 1)
            shutil.copyfileobj(content, file, 1 << 20)


ENCODER = Encoder(begin, _join)
