"""Rejects: rows are written in full with a reason, and counted by reason (semantics section 8)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ...columns.arrays import Ints, combined
from ...panes.rejects import ScanRejects
from ...ports import REJECT_FIELDS, Batch, ChunkAccount, Counts, Part, Split
from ...scan.row_validation import Reasons, split_by_reason
from .sizing import Chunk
from .task import TaskContext

_REASON_COLUMNS = ("reason", "file", "line", "detail", "text")
_ROW = "row"


def reject(
    work: TaskContext, chunk: Chunk, batches: Sequence[Batch], pos: Ints, reasons: Reasons | None
) -> ChunkAccount:
    """Write the rows that the readers or the row validation rejected, in full; return their counts by reason."""
    tables = [_unread(work, batch.rejects) for batch in batches if batch.rejects is not None]
    if reasons is not None:
        _, rejected = split_by_reason(reasons)
        tables += _invalid_rows(work, chunk, pos[rejected], reasons[rejected], _details(batches, pos[rejected]))
    if not tables:
        return ChunkAccount()
    rejects = pa.concat_tables(tables)
    part = work.sink.write_rejects(chunk.index, rejects)
    by_reason = {entry["values"]: entry["counts"] for entry in rejects.column("reason").value_counts().to_pylist()}
    return ChunkAccount(Counts(rejected=by_reason), (part,))


def write_scan_rejects(work: TaskContext, index: int, chunk: Chunk, rejects: ScanRejects) -> tuple[Part, ...]:
    """Write the rows of a chunk that scans have rejected, in full, as the rejects of task ``index``."""
    picks = np.argsort(rejects.pos)
    stops = [split.base + split.rows for split in chunk.splits]
    inside = np.zeros(len(picks), np.bool_)
    for split, stop in zip(chunk.splits, stops, strict=True):
        inside |= (rejects.pos >= split.base) & (rejects.pos < stop)
    own = rejects.take(picks[inside[picks]])
    if not len(own):
        return ()
    reasons = np.array(own.reason.to_pylist(), np.object_)
    return (work.sink.write_rejects(index, pa.concat_tables(_invalid_rows(work, chunk, own.pos, reasons, own.detail))),)


def reject_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of the rejects: `REJECT_FIELDS` under their public names, then the row as one struct column.

    The struct keeps columns of the input apart from ours, so that they may have any names. ``row`` is null where a
    line could not be read.
    """
    reason_columns = [field.with_name(name) for name, field in zip(_REASON_COLUMNS, REJECT_FIELDS, strict=True)]
    return pa.schema([*reason_columns, pa.field(_ROW, pa.struct(list(schema)))])


def _unread(work: TaskContext, rejects: pa.Table) -> pa.Table:
    """Return the rejects that readers could not parse: they have a text, and a null instead of a row."""
    schema = reject_schema(_row_schema(work))
    nulls = pa.nulls(rejects.num_rows, schema.field(_ROW).type)
    return pa.Table.from_arrays([*rejects.columns, nulls], schema=schema)


def _details(batches: Sequence[Batch], pos: Ints) -> pa.Array:
    """Return why expressions failed for the rows at positions ``pos``, string (k,); null where none did."""
    failures = [(batch.pos, batch.failures) for batch in batches if batch.failures is not None]
    if not failures:
        return pa.nulls(len(pos), pa.string())
    places = np.concatenate([own[each.row] for own, each in failures])
    at = np.searchsorted(places, pos)
    found = (at < len(places)) & (places[np.minimum(at, len(places) - 1)] == pos)
    return combined(pa.chunked_array([each.detail for _, each in failures])).take(pa.array(at, mask=~found))


def _invalid_rows(
    work: TaskContext, chunk: Chunk, pos: Ints, reasons: Reasons, details: pa.Array
) -> Iterator[pa.Table]:
    """Read the rows at positions ``pos`` once more with all their columns, and yield them split by split."""
    for split in chunk.splits:
        in_split = (pos >= split.base) & (pos < split.base + split.rows)
        if in_split.any():
            batch = work.source.read(split, _row_schema(work).names)
            split_rows = batch.rows.take(pa.array(np.searchsorted(batch.pos, pos[in_split])))
            yield _with_reasons(
                work, split, split_rows, pos[in_split], reasons[in_split], details.filter(pa.array(in_split))
            )


def _with_reasons(
    work: TaskContext, split: Split, split_rows: pa.Table, pos: Ints, reasons: Reasons, details: pa.Array
) -> pa.Table:
    count = len(pos)
    lines = pa.array(work.source.line_numbers(split, pos))
    files = pa.array([work.source.files[split.file].path] * count)
    nulls = pa.nulls(count, pa.string())
    reason_columns: list[Any] = [pa.array(list(reasons), pa.string()), files, lines, details, nulls]
    return pa.Table.from_arrays(
        [*reason_columns, split_rows.to_struct_array()], schema=reject_schema(_row_schema(work))
    )


def _row_schema(work: TaskContext) -> pa.Schema:
    """Return the columns of the row in a reject: all columns of the input that are not hidden."""
    return pa.schema([field for field in work.source.schema if field.name not in work.plan.projection.hidden])
