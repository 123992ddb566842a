"""Rejects: rows are written in full with a reason, and counted by reason (semantics section 8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import Ints, combined, decoded, scale_of
from ..expressions.binding import BoundExpression
from ..planning.plan import Plan
from ..planning.result_schema import FIXED, MARK
from ..ports import REJECT_FIELDS, Batch, CheckedPart, ChunkAccount, Counts, Executor, Part, ResultPart, RowCheck, Split
from ..rows.panes import ScanRejects, concatenate, rejects_from
from ..scan.row_validation import Reasons, split_by_reason
from .task import Chunk, TaskContext

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


# Rows that scan tasks have rejected: they store which, and tasks that read the input again write them in full.
#
# A scan has only the columns that its window needs, and its rows may come from the whole input. So each chunk with
# such rows is read once more, whatever the number of slices that have found some.


@dataclass(frozen=True, slots=True)
class StoredRejects:
    """Rejects of one scan task in scratch rows.

    ``name``: their name there.
    ``splits``: the numbers of the splits that have such rows, ascending.
    """

    name: str
    splits: tuple[int, ...]


def store_rejects(work: TaskContext, task: int, rejects: ScanRejects) -> StoredRejects | None:
    """Store the rejects of scan task ``task`` for `write_stored_rejects`; None where there are none."""
    if not len(rejects):
        return None
    name = f"rejects-{task:05d}"
    work.sink.write_scratch(name, rejects.to_rows())
    bases = np.array([split.base for split in work.source.splits])
    places = np.unique(np.searchsorted(bases, rejects.pos, side="right") - 1)
    return StoredRejects(name, tuple(work.source.splits[place].index for place in places.tolist()))


def write_stored_rejects(
    work: TaskContext, chunks: Sequence[Chunk], found: Iterable[StoredRejects | None], executor: Executor
) -> tuple[Part, ...]:
    """Write all rows that scan tasks have rejected, each chunk in a task. ``chunks``: all chunks of the input."""
    stored = [each for each in found if each is not None]
    splits = {split for each in stored for split in each.splits}
    concerned = [chunk for chunk in chunks if not splits.isdisjoint(split.index for split in chunk.splits)]
    if not concerned:
        return ()
    names = tuple(each.name for each in stored)
    written = executor.map("rejects", partial(_write_chunk, work, names, len(chunks)), concerned)
    return tuple(part for parts in written for part in parts)


def _write_chunk(work: TaskContext, names: Sequence[str], chunks: int, chunk: Chunk) -> tuple[Part, ...]:
    rejects = concatenate([rejects_from(work.sink.read_scratch(name)) for name in names])
    return write_scan_rejects(work, chunks + chunk.index, chunk, rejects)


# What expectations of a job ask of rows while tasks write and read them (semantics section 14).
#
# Rows of the result are checked as they are written, so a run with expectations reads and writes nothing twice.


_MOST = 60


class CheckedTables:
    """Tables of the result that are checked as they pass.

    ``checks``: what each condition has come to so far.
    """

    def __init__(self, plan: Plan, conditions: Sequence[BoundExpression], tables: Iterable[pa.Table]) -> None:
        self._plan, self._conditions, self._tables = plan, conditions, tables
        self.checks = tuple(RowCheck() for _ in conditions)

    def __iter__(self) -> Iterator[pa.Table]:
        for table in self._tables:
            rows = _without_marks(table)
            found = [_check(self._plan, condition, rows) for condition in self._conditions]
            self.checks = tuple(before + now for before, now in zip(self.checks, found, strict=True))
            yield table

    def on(self, parts: Sequence[Part]) -> tuple[Part, ...]:
        """Return the parts that hold all of the tables; the first of them says what was found."""
        first, *others = parts
        result = (
            first if isinstance(first, ResultPart) else ResultPart(first.name, first.rows, first.nbytes, first.checksum)
        )
        known = (
            result.name,
            result.rows,
            result.nbytes,
            result.checksum,
            result.digest,
            result.statistics,
            result.tail,
        )
        return CheckedPart(*known, self.checks), *others


def span_of(plan: Plan, rows: pa.RecordBatch) -> tuple[float, float] | None:
    """Return the smallest and the largest order value of rows as numbers, times in ticks; None where it has none."""
    name = order_column(plan)
    if name is None or not rows.num_rows:
        return None
    column = combined(rows.column(name))
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return None
    ends = pc.min_max(column)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    return None if low is None else (low, high)


def epoch_seconds(number: float, dtype: pa.DataType) -> float:
    """Return an order value that `span_of` gives, of a column of type ``dtype``, in seconds since the epoch.

    A plain number counts seconds since the epoch.
    """
    per_second = scale_of(dtype).per_second if pa.types.is_temporal(dtype) else None
    return float(Fraction(number) / per_second) if per_second is not None else float(number)


def order_column(plan: Plan) -> str | None:
    """Return the first order column of the user, or the event time; None in arrival order."""
    return next(iter((*plan.order.columns, *([plan.options.event_time] if plan.options.event_time else ()))), None)


def _without_marks(table: pa.Table) -> pa.Table:
    if MARK not in table.column_names:
        return table
    only = pc.equal(combined(table[MARK]).cast(pa.string()), "only")
    return table.filter(pc.invert(only.fill_null(False)))


def _check(plan: Plan, condition: BoundExpression, rows: pa.Table) -> RowCheck:
    needed = pa.table({name: decoded(rows[name]) for name in condition.columns}) if condition.columns else rows
    found = condition.evaluate(needed)
    true = combined(found.values).fill_null(False).to_numpy(zero_copy_only=False).astype(np.bool_)
    failing = np.flatnonzero(~true)
    example = _shown(plan, condition, rows, int(failing[0])) if len(failing) else None
    return RowCheck(len(true), int(true.sum()), example)


def _shown(plan: Plan, condition: BoundExpression, rows: pa.Table, at: int) -> str:
    named = dict.fromkeys([*plan.key, *FIXED[:1], *condition.columns])
    cells = {name: decoded(rows[name].slice(at, 1)) for name in named if name in rows.column_names}
    return ", ".join(f"{name}={_text(column)}" for name, column in cells.items())


def _text(column: pa.ChunkedArray) -> str:
    value = str(column[0]) if pa.types.is_temporal(column.type) else repr(column[0].as_py())
    return value if len(value) <= _MOST else f"{value[:_MOST]}.."
