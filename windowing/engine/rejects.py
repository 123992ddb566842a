"""Rejects: rows are written in full with a reason, and counted by reason (semantics section 8)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import ClockValue, Ints, combined, decoded, scale_of
from ..expressions.binding import BoundExpression
from ..language.joins import SIDE
from ..planning.plan import Plan
from ..planning.result_schema import FIXED, MARK
from ..planning.sides import side_names, with_side_names
from ..ports import REJECT_FIELDS, Batch, CheckedPart, ChunkAccount, Counts, Executor, Part, RowCheck, Source
from ..rows.panes import ScanRejects, concatenate, rejects_from
from ..scan.row_validation import Reasons, split_by_reason
from ..scan.rows_ahead import RowsAhead
from .task import Chunk, TaskContext

_REASON_COLUMNS = ("reason", "file", "line", "detail", "text")
_ROW = "row"


def reject(
    work: TaskContext, chunk: Chunk, batches: Sequence[Batch], pos: Ints, reasons: Reasons | None
) -> ChunkAccount:
    """Write the rows that the readers or the row validation rejected, in full; return their counts by reason."""
    schema = reject_schema(reject_columns(work.plan, work.source.schema))
    unread = [batch.rejects for batch in batches if batch.rejects is not None]
    # they have a text, and a null instead of a row
    nulls = [pa.nulls(found.num_rows, schema.field(_ROW).type) for found in unread]
    tables = [
        pa.Table.from_arrays([*found.columns, row], schema=schema) for found, row in zip(unread, nulls, strict=True)
    ]
    if reasons is not None:
        _, rejected = split_by_reason(reasons)
        tables += _invalid_rows(work, chunk, pos[rejected], reasons[rejected], _details(batches, pos[rejected]))
    if not tables:
        return ChunkAccount()
    rejects = pa.concat_tables(tables)
    part = work.sink.write_rejects(chunk.index, rejects)
    by_reason = {entry["values"]: entry["counts"] for entry in rejects.column("reason").value_counts().to_pylist()}
    return ChunkAccount(Counts(rejected=by_reason), (part,))


def reject_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of the rejects: `REJECT_FIELDS` under their public names, then the row as one struct column.

    The struct keeps columns of the input apart from ours, so that they may have any names. ``row`` is null where a
    line could not be read.
    """
    reason_columns = [field.with_name(name) for name, field in zip(_REASON_COLUMNS, REJECT_FIELDS, strict=True)]
    return pa.schema([*reason_columns, pa.field(_ROW, pa.struct(list(schema)))])


def reject_columns(plan: Plan, schema: pa.Schema) -> pa.Schema:
    """Return the columns of the row in a reject: all of the input that are not hidden; of a join the side as a name."""
    shown = pa.schema([field for field in schema if field.name not in plan.projection.hidden])
    return with_side_names(shown, plan.options.join)


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
    columns = reject_columns(work.plan, work.source.schema)
    for split in chunk.splits:
        in_split = (pos >= split.base) & (pos < split.base + split.rows)
        own, count = pos[in_split], int(np.count_nonzero(in_split))
        if count:
            batch = work.source.read(split, columns.names)
            rows = batch.rows.take(pa.array(np.searchsorted(batch.pos, own)))
            if work.plan.options.join is not None and SIDE in columns.names:
                rows = rows.set_column(columns.names.index(SIDE), columns.field(SIDE), side_names(rows[SIDE]))
            found: list[Any] = [
                pa.array(list(reasons[in_split]), pa.string()),
                pa.array([work.source.files[split.file].path] * count),
                pa.array(work.source.line_numbers(split, own)),
                details.filter(pa.array(in_split)),
                pa.nulls(count, pa.string()),
                rows.to_struct_array(),
            ]
            yield pa.Table.from_arrays(found, schema=reject_schema(columns))


# Rows that scan tasks have rejected: they store which, and tasks that read the input again write them in full.
#
# A scan has only the columns that its window needs, and its rows may come from the whole input. So each chunk with
# such rows is read once more, whatever the number of slices that have found some.


@dataclass(frozen=True, slots=True)
class StoredRejects:
    """Rejects of one scan task in scratch rows.

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
    work: TaskContext, chunks: Sequence[Chunk], stored: Sequence[StoredRejects], executor: Executor
) -> tuple[Part, ...]:
    """Write all rows that scan tasks have rejected, each chunk in a task. ``chunks``: all chunks of the input."""
    splits = {split for each in stored for split in each.splits}
    concerned = [chunk for chunk in chunks if not splits.isdisjoint(split.index for split in chunk.splits)]
    if not concerned:
        return ()
    names = tuple(each.name for each in stored)
    return tuple(executor.map("rejects", partial(_write_chunk, work, names, len(chunks)), concerned))


def _write_chunk(work: TaskContext, names: Sequence[str], chunks: int, chunk: Chunk) -> Part:
    """Write the rows of a chunk that scans have rejected; their splits are among those that have such rows."""
    rejects = concatenate([rejects_from(work.sink.read_scratch(name)) for name in names])
    picks = np.argsort(rejects.pos)
    inside = np.zeros(len(picks), np.bool_)
    for split in chunk.splits:
        inside |= (rejects.pos >= split.base) & (rejects.pos < split.base + split.rows)
    own = rejects.take(picks[inside[picks]])
    reasons = np.array(own.reason.to_pylist(), np.object_)
    return work.sink.write_rejects(
        chunks + chunk.index, pa.concat_tables(_invalid_rows(work, chunk, own.pos, reasons, own.detail))
    )


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
            rows = table
            if MARK in table.column_names:
                mark_only = pc.equal(combined(table[MARK]).cast(pa.string()), "only")
                rows = table.filter(pc.invert(mark_only.fill_null(False)))
            found = [_check(self._plan, condition, rows) for condition in self._conditions]
            self.checks = tuple(before + now for before, now in zip(self.checks, found, strict=True))
            yield table

    def on(self, parts: Sequence[Part]) -> tuple[Part, ...]:
        """Return the parts that hold all of the tables; the first of them says what was found."""
        first, *others = parts
        return CheckedPart(**{one.name: getattr(first, one.name) for one in fields(first)}, checks=self.checks), *others


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


def value_of_reading(reading: ClockValue, dtype: pa.DataType) -> pa.Array:
    """Return a reading of a clock as a value of a column, (1,): where that has ticks, it is so many."""
    if not pa.types.is_temporal(dtype):
        return pa.array([reading]).cast(dtype)
    return pa.array([reading], pa.int32() if dtype.bit_width == 32 else pa.int64()).cast(dtype)


def clock_text(plan: Plan, name: str, value: ClockValue) -> str:
    """Return a measure of a clock column as text."""
    dtype = plan.projection.schema.field(name).type
    if pa.types.is_temporal(dtype):
        return str(value_of_reading(value, dtype)[0])
    if pa.types.is_decimal(dtype):
        return str(Decimal(int(value)).scaleb(-dtype.scale))
    shifted = pa.types.is_uint64(dtype) and bool(plan.order.columns)
    return f"{value + 2**63 if shifted else value}"


def place_of(source: Source, pos: int) -> tuple[str, int]:
    """Return the file of the row at an arrival position, and its line there, from 1."""
    split = source.splits[bisect_right([each.base for each in source.splits], pos) - 1]
    return source.files[split.file].path, int(source.line_numbers(split, np.array([pos]))[0])


def told_ahead(plan: Plan, source: Source, ahead: RowsAhead) -> dict[str, Any] | None:
    """Return what manifests say of rows ahead of their time; None where nothing looked for them."""
    if plan.options.max_ahead is None:
        return None
    if ahead.pos is None or ahead.value is None:
        return {"rows": ahead.rows, "first": None}
    file, line = place_of(source, ahead.pos)
    value = clock_text(plan, str(order_column(plan)), ahead.value)
    return {"rows": ahead.rows, "first": {"file": file, "line": line, "value": value}}


def order_column(plan: Plan) -> str | None:
    """Return the first order column of the user, or the event time; None in arrival order."""
    return next(iter((*plan.order.columns, *([plan.options.event_time] if plan.options.event_time else ()))), None)


def _check(plan: Plan, condition: BoundExpression, rows: pa.Table) -> RowCheck:
    needed = pa.table({name: decoded(rows[name]) for name in condition.columns}) if condition.columns else rows
    found = condition.evaluate(needed)
    true = combined(found.values).fill_null(False).to_numpy(zero_copy_only=False).astype(np.bool_)
    if true.all():
        return RowCheck(len(true), len(true), None)
    at, cells = int(np.argmin(true)), list[str]()
    for name in dict.fromkeys([*plan.key, *FIXED[:1], *condition.columns]):
        if name in rows.column_names:
            cell = decoded(rows[name].slice(at, 1))[0]
            value = str(cell) if pa.types.is_temporal(cell.type) else repr(cell.as_py())
            cells.append(f"{name}={value if len(value) <= _MOST else f'{value[:_MOST]}..'}")
    return RowCheck(len(true), int(true.sum()), ", ".join(cells))
