"""Rows of one batch, made ready for a scan: expressions, validity, lateness, marks (semantics 1, 2, 5 and 11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa

from ..clock.values import clock_values
from ..clock.watermark import Watermarks
from ..columns.arrays import ClockValue, Ints, Mask, combined
from ..columns.sort_keys import last_in_order, sorts_before
from ..errors import ConfigError, DataError
from ..kinds.signals import Signals, watermark_signals, window_marks
from ..planning.plan import Plan
from ..projection.projection import ARRIVAL, project
from ..scan.lateness import LatenessResult, assess, merged_watermarks
from ..scan.row_validation import add_late, split_by_reason, validate_rows
from ..sequences.marks import NO_FILE, Marks, in_order, no_marks, with_place
from ..sequences.sequence import Sequences, build, one_batch
from ..support.suggest import did_you_mean

Rejected = Literal["error", "drop"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far batches have come, over all keys.

    ``rows``: number of rows so far, which is the arrival position of the next one.
    ``clock``: the largest value of the clock, in measures of the clock column; None: no row yet, or no clock.
    ``watermark``: the watermark, as a reading; None: no row yet, or no event time.
    ``position``: one row with the largest order values; None: no row yet, or no order column.
    ``advances``: the watermark advances that panes to come may still need; None: no row yet, or no event time.
    """

    rows: int = 0
    clock: ClockValue | None = None
    watermark: ClockValue | None = None
    position: pa.Table | None = None
    advances: Watermarks | None = None


@dataclass(frozen=True, slots=True)
class BatchRows:
    """A batch that is ready for a scan.

    ``sequences``: the rows that the window sees, with `Plan.read_values`.
    ``signals``: marks, or watermark advances with those of ``Progress.advances``.
    ``progress``: after the batch; its ``advances`` are those before it.
    """

    sequences: Sequences
    signals: Signals
    progress: Progress


def read_batch(
    plan: Plan, progress: Progress, table: pa.Table, pos: Ints, mark: str | None, rejected: Rejected
) -> BatchRows:
    """Return the rows of a batch in sequences, with what signals they bring.

    ``table``: rows in the order in which they arrive. ``pos``: int64 (n,), their arrival positions. ``mark``: a boolean
    column; there is a mark after each true row. Raises `DataError` for a row that no window can place, or an expression
    fails for, unless such rows are dropped; `ConfigError` where ``mark`` is no boolean column.
    """
    rows, marks, kept = _seen_rows(plan, table, pos, mark, rejected)
    pos = pos if kept is None else pos[kept]
    late = _behind(rows, progress)
    assessed = _assess(plan, progress, rows, pos)
    if assessed is not None:
        late |= assessed.late
    rows, pos = _valid_rows(plan, rows, pos, late, rejected)
    sequences = build(rows, pos, plan.key, plan.sort, plan.read_values)
    after = replace(
        progress,
        rows=progress.rows + table.num_rows,
        clock=_clock(plan, sequences.rows, progress.clock),
        watermark=progress.watermark if assessed is None else assessed.watermark,
        position=_position(plan, sequences, progress.position),
    )
    return BatchRows(sequences, _signals(plan, progress, marks, assessed), after)


def project_batch(
    plan: Plan, table: pa.Table, pos: Ints, names: Sequence[str], rejected: Rejected
) -> tuple[pa.Table, Ints | None]:
    """Return all rows with some columns of the plan, and which rows the window sees, int64; None: all.

    Raises `DataError` where an expression fails for a row, unless such rows are dropped.
    """
    if plan.projection.is_trivial:
        return table, None
    if ARRIVAL in plan.projection.virtual:
        table = table.append_column(ARRIVAL, pa.array(pos))
    found = project(plan.projection, table.select(list(plan.projection.needs(names))), names)
    if found.failures is not None and rejected == "error":
        row, detail = pos[found.failures.row[0]], found.failures.detail[0].as_py()
        raise DataError(f"an expression fails for {len(found.failures.row)} rows: row {row}: {detail}", "mend them")
    return found.rows, None if found.kept is None else np.flatnonzero(found.kept)


def clock_after(plan: Plan, table: pa.Table) -> ClockValue | None:
    """Return the largest value of the clock among the rows that the window places; None: there is none."""
    pos = np.arange(table.num_rows)
    rows, _, kept = _seen_rows(plan, table, pos, None, "drop")
    rows, _ = _valid_rows(plan, rows, pos if kept is None else pos[kept], np.zeros(rows.num_rows, np.bool_), "drop")
    return _clock(plan, rows, None)


def _seen_rows(
    plan: Plan, table: pa.Table, pos: Ints, mark: str | None, rejected: Rejected
) -> tuple[pa.RecordBatch, Marks, Ints | None]:
    """Return the rows that the condition of the window keeps, the marks, and which rows these are; None: all."""
    extra = [mark] if mark is not None and mark in plan.projection.schema.names else []
    table, kept = project_batch(plan, table, pos, list(dict.fromkeys([*plan.columns, *extra])), rejected)
    rows = one_batch(table.select(list(plan.columns)))
    marks = _marks(plan, table, rows, pos, mark)
    if kept is not None and rows.num_columns:
        rows = rows.take(pa.array(kept))
    return rows, marks, kept


def _marks(plan: Plan, table: pa.Table, rows: pa.RecordBatch, pos: Ints, mark: str | None) -> Marks:
    if mark is None or not plan.takes_marks:
        return no_marks(rows, plan.sort)
    after = _true_rows(table, mark)
    order = rows.select(list(plan.sort))
    at = order.take(pa.array(after)) if plan.sort else order
    return with_place(Marks(at, pos[after], np.full(len(after), NO_FILE)), plan.order.columns)


def _true_rows(table: pa.Table, name: str) -> Ints:
    if name not in table.schema.names:
        raise ConfigError(f"marks: there is no column {name!r}", did_you_mean(name, table.schema.names))
    column = combined(table.column(name))
    if not pa.types.is_boolean(column.type):
        raise ConfigError(f"marks need a boolean column, and {name!r} is {column.type}", "use another column")
    return np.flatnonzero(column.fill_null(False).to_numpy(zero_copy_only=False))


def _behind(rows: pa.RecordBatch, progress: Progress) -> Mask:
    """Return which rows sort before the last row of earlier batches, bool (n,): by the order columns, over all keys."""
    if progress.position is None:
        return np.zeros(rows.num_rows, np.bool_)
    return sorts_before(rows, progress.position)


def _assess(plan: Plan, progress: Progress, rows: pa.RecordBatch, pos: Ints) -> LatenessResult | None:
    return assess(plan, progress.watermark, rows, pos) if plan.kind.has_watermark else None


def _signals(plan: Plan, progress: Progress, marks: Marks, assessed: LatenessResult | None) -> Signals:
    if assessed is None:
        return window_marks(in_order(marks))
    earlier = [] if progress.advances is None else [progress.advances]
    return watermark_signals(merged_watermarks(plan, [*earlier, assessed.watermarks]))


def _valid_rows(
    plan: Plan, rows: pa.RecordBatch, pos: Ints, late: Mask, rejected: Rejected
) -> tuple[pa.RecordBatch, Ints]:
    reasons = add_late(validate_rows(plan, rows), late)
    if reasons is None:
        return rows, pos
    kept, bad = split_by_reason(reasons)
    if rejected == "error":
        what = f"{len(bad)} rows have no place in the window: row {pos[bad[0]]} is {reasons[bad[0]]}"
        raise DataError(what, "mend them")
    return rows.take(pa.array(kept)), pos[kept]


def _clock(plan: Plan, rows: pa.RecordBatch, before: ClockValue | None) -> ClockValue | None:
    """Return the largest value of the clock so far, for windows that use one."""
    if not plan.kind.needs_clock or not rows.num_rows:
        return before
    found = clock_values(combined(rows.column(plan.sort[0])), plan.sort[0]).max().item()
    return found if before is None else max(found, before)


def _position(plan: Plan, sequences: Sequences, before: pa.Table | None) -> pa.Table | None:
    names = list(plan.order.columns)
    if not names or not len(sequences):
        return before
    found = last_in_order(pa.Table.from_batches([sequences.rows.select(names)]))
    return found if before is None else last_in_order(pa.concat_tables([found, before]))
