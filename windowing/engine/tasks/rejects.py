"""Rows that were turned away: written whole, with a reason, and counted by it (semantics section 8)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ...columns.arrays import Ints
from ...ports import REJECT_FIELDS, Batch, ChunkAccount, Counts, Split
from ...scan.row_validation import Reasons, split_by_reason
from .sizing import Chunk
from .task import TaskContext

_REASON_COLUMNS = ("reason", "file", "line", "detail", "text")
_ROW = "row"


def reject(
    work: TaskContext, chunk: Chunk, batches: Sequence[Batch], pos: Ints, reasons: Reasons | None
) -> ChunkAccount:
    """Write the rows that the readers or the screen turned away, whole; account for them by reason."""
    tables = [_unread(work, batch.rejects) for batch in batches if batch.rejects is not None]
    if reasons is not None:
        _, bad = split_by_reason(reasons)
        tables += _invalid_rows(work, chunk, pos[bad], reasons[bad])
    if not tables:
        return ChunkAccount()
    rejects = pa.concat_tables(tables)
    part = work.sink.write_rejects(chunk.index, rejects)
    by_reason = {entry["values"]: entry["counts"] for entry in rejects.column("reason").value_counts().to_pylist()}
    return ChunkAccount(Counts(rejected=by_reason), (part,))


def reject_schema(schema: pa.Schema) -> pa.Schema:
    """Schema of the rejects: what `REJECT_FIELDS` say, by other names, and the row as one column of its own.

    So the columns of an input may have any names. ``row`` is null where a line could not be read.
    """
    told = [field.with_name(name) for name, field in zip(_REASON_COLUMNS, REJECT_FIELDS, strict=True)]
    return pa.schema([*told, pa.field(_ROW, pa.struct(list(schema)))])


def _unread(work: TaskContext, rejects: pa.Table) -> pa.Table:
    """Rows that could not be read: their text, and no columns."""
    schema = reject_schema(work.source.schema)
    nulls = pa.nulls(rejects.num_rows, schema.field(_ROW).type)
    return pa.Table.from_arrays([*rejects.columns, nulls], schema=schema)


def _invalid_rows(work: TaskContext, chunk: Chunk, pos: Ints, reasons: Reasons) -> Iterator[pa.Table]:
    """Read the rows at ``pos`` again, with all their columns, split by split."""
    for split in chunk.splits:
        mine = (pos >= split.base) & (pos < split.base + split.rows)
        if mine.any():
            batch = work.source.read(split, work.source.schema.names)
            whole = batch.rows.take(pa.array(np.searchsorted(batch.pos, pos[mine])))
            yield _with_reasons(work, split, whole, pos[mine], reasons[mine])


def _with_reasons(work: TaskContext, split: Split, whole: pa.Table, pos: Ints, reasons: Reasons) -> pa.Table:
    size = len(pos)
    lines = pa.array(work.source.line_numbers(split, pos))
    files = pa.array([work.source.files[split.file].path] * size)
    nulls = pa.nulls(size, pa.string())
    told: list[Any] = [pa.array(list(reasons), pa.string()), files, lines, nulls, nulls]
    return pa.Table.from_arrays([*told, whole.to_struct_array()], schema=reject_schema(work.source.schema))
