"""Rows as files take them: types that a format can hold, those of a table, and the one batch of a scratch file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import IO

import pyarrow as pa

from ...windowing.errors import NO_TYPE_YET, ConfigError, DataError
from ...windowing.support.formats import Format
from ..formats.encoder import encoder_of

_LONGEST_TYPE = 60


def encode_arrow(tables: Iterable[pa.Table], schema: pa.Schema, file: IO[bytes] | pa.NativeFile) -> None:
    """Write tables as an Arrow file of exactly one batch, also where there is no row."""
    (batch,) = pa.concat_tables(tables).combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], schema)]
    with pa.ipc.new_file(file, schema) as writer:
        writer.write_batch(batch)


def encode_arrow_at_once(tables: Iterable[pa.Table], schema: pa.Schema, file: IO[bytes] | pa.NativeFile) -> None:
    """Write tables as `encode_arrow` does, in one piece: an attempt that is ended leaves the file of another whole."""
    content = pa.BufferOutputStream()
    encode_arrow(tables, schema, content)
    file.write(content.getvalue())


def with_types(rows: pa.Table, schema: pa.Schema, shown: str) -> pa.Table:
    """Return rows with the types of a table. Raises `DataError` for a value that a type does not hold."""
    for at, field in enumerate(schema):
        column = rows.column(at)
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if kind == field.type:
            continue
        try:
            rows = rows.set_column(at, field.name, column.cast(field.type))
        except pa.ArrowInvalid as error:
            why = str(error).strip().splitlines()[0]
            what = f"a value of {field.name!r} is no {field.type}, which {shown} has for that column: {why}"
            raise DataError(what, "round it, or cast it") from error
    return rows


def with_constants(rows: pa.Table, constants: Mapping[str, pa.Scalar]) -> pa.Table:
    """Return rows with more columns, each of one value."""
    for name, value in constants.items():
        rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
    return rows


def check_types(format: Format, schema: pa.Schema) -> None:
    """Raise `ConfigError` where two columns have one name or the format cannot hold the type of a column."""
    encoder, names = encoder_of(format), schema.names
    if twice := next((name for name, count in Counter(names).items() if count > 1), None):
        raise ConfigError(f"the output has two columns named {twice!r}", "give one of them another name")
    known = set[object]()
    for field in schema:
        kind_of = field.type if field.name.isidentifier() else field  # a name may be what a format refuses
        if kind_of in known:
            continue
        known.add(kind_of)
        row = pa.table({field.name: pa.nulls(1, field.type)})  # Arrow refuses some types only when it writes a row
        written = pa.BufferOutputStream()
        try:
            encoder.encode([row], row.schema, written)
            if pa.types.is_nested(field.type):
                encoder.check(written.getvalue())
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
            kind = str(field.type)
            kind = kind if len(kind) <= _LONGEST_TYPE else f"{kind[:_LONGEST_TYPE]}.."
            what = f"{format} cannot hold column {field.name!r} of type {kind}"
            do = NO_TYPE_YET if pa.types.is_null(field.type) else "leave it out"
            raise ConfigError(what, f"{do}, or choose another --output-format") from error
