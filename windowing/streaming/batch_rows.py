"""Rows of one batch, made ready for a scan: expressions, validity, lateness, marks (semantics 1, 2, 5 and 11)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..clock.interval_grid import make_intervals
from ..clock.watermark import explicit
from ..columns.arrays import ClockValue, Ints, Mask, combined, is_condition, is_true, latest_clock
from ..columns.sort_keys import last_in_order, sorts_before
from ..errors import ConfigError, did_you_mean
from ..kinds.context import Signals, watermark_signals, window_marks
from ..language.spec import TimeInterval
from ..planning.plan import Plan
from ..planning.result_schema import MARK
from ..ports import Failures
from ..rows.marks import NO_FILE, Marks, in_order, no_marks, with_place
from ..rows.projection import ARRIVAL, project
from ..rows.sequence import Sequences, build, one_batch, order_of, take_rows
from ..scan.row_validation import (
    LatenessResult,
    add_late,
    assess,
    event_times,
    merged_watermarks,
    split_by_reason,
    validate_rows,
)
from ..scan.scan import latest
from ..state.carry import Registers
from .row_rejects import RowRejects, failed_before

# Marks and watermarks of a batch: those that a caller gives, or those of its rows (semantics sections 2 and 5).


@dataclass(frozen=True, slots=True)
class GivenSignals:
    """What a caller says of marks and watermarks.

    ``marks``: a boolean column, with a mark after each true row; or numbers p, of marks after the first p rows; None:
        no marks, or those of a result.
    ``watermarks``: pairs (p, w), w seconds after the first p rows; None: they follow from the rows.
    """

    marks: str | Sequence[int] | None = None
    watermarks: Sequence[tuple[int, Fraction]] | None = None

    def of(self, plan: Plan) -> GivenSignals:
        """Return what is said of the input of a plan: the marks of a result are its own, where no others are given."""
        return replace(self, marks=MARK) if plan.reads_result and self.marks is None else self

    @property
    def mark_column(self) -> str | None:
        return self.marks if isinstance(self.marks, str) else None


def marks_of(given: GivenSignals, plan: Plan, table: pa.Table, rows: pa.RecordBatch, pos: Ints) -> Marks:
    """Return the marks of a batch, those before the first of all rows among them.

    ``rows``: the columns of the plan of all rows of ``table``. ``pos``: int64 (n,), arrival positions. Raises
    `ConfigError` where the column is none of truth values.
    """
    if given.marks is None or not plan.takes_marks:
        return no_marks(rows, plan.sort)
    if isinstance(given.marks, str):
        after = _true_rows(table, given.marks)
    else:
        first = int(pos[0]) if len(pos) else 0
        after = np.asarray(given.marks, np.int64) - 1 - first
        after = after[(after >= (-1 if first == 0 else 0)) & (after < len(pos))]
    order = rows.select(list(plan.sort))
    at = order.take(pa.array(after, mask=after < 0)) if plan.sort else order
    places = np.where(after < 0, -1, np.append(pos, -1)[after])
    return with_place(Marks(at, places, np.full(len(after), NO_FILE)), plan.order.columns)


def lateness(
    given: GivenSignals, plan: Plan, announced: ClockValue | None, rows: pa.RecordBatch, pos: Ints
) -> LatenessResult:
    """Return the watermark advances of a batch, and which rows are late beyond repair.

    ``announced``: the watermark before it, as a reading. Watermarks that a caller gives are for one batch alone.
    """
    if given.watermarks is None:
        return assess(plan, announced, rows, pos)
    values, places = event_times(plan, rows)
    assert isinstance(plan.spec, TimeInterval)
    intervals = make_intervals(rows.schema.field(plan.clock).type, plan.spec)
    found, behind = explicit(list(given.watermarks), intervals, plan.spec.discard_age, values, pos[places])
    late = np.zeros(len(pos), np.bool_)
    late[places] = behind
    return LatenessResult(late, found)


def _true_rows(table: pa.Table, name: str) -> Ints:
    if name not in table.schema.names:
        raise ConfigError(f"marks: there is no column {name!r}", did_you_mean(name, table.schema.names))
    column = combined(table.column(name))
    if name == MARK and pa.types.is_string(column.type):
        return np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    if not is_condition(column.type):
        raise ConfigError(f"marks need a boolean column, and {name!r} is {column.type}", "use another column")
    return np.flatnonzero(is_true(column))


@dataclass(frozen=True, slots=True)
class BatchRows:
    """A batch that is ready for a scan.

    ``sequences``: the rows that the window sees, with `Plan.read_values`.
    ``signals``: marks, or watermark advances with those of `Registers.advances`.
    ``after``: the registers after the batch; their ``advances`` are those before it.
    """

    sequences: Sequences
    signals: Signals
    after: Registers


def read_batch(
    plan: Plan, before: Registers, table: pa.Table, pos: Ints, given: GivenSignals, rejects: RowRejects
) -> BatchRows:
    """Return the rows of a batch in sequences, with what signals they bring.

    ``table``: rows in the order in which they arrive. ``pos``: int64 (n,), their arrival positions. Raises `DataError`
    for a row that no window can place, or an expression fails for, as ``rejects`` say; and as `marks_of`.
    """
    rows, marks, kept = _seen_rows(plan, table, pos, given, rejects)
    pos = pos if kept is None else pos[kept]
    if plan.kind.needs.watermark and plan.reads_result:
        # Rows of a result as they came out, which is how they arrive: a watermark follows them in this order.
        order = order_of([combined(rows.column(name)) for name in plan.sort])
        rows, pos = take_rows(rows, order), pos[order]
    late = sorts_before(rows, before.position)  # by the order columns, over all keys
    assessed = lateness(given, plan, before.watermark, rows, pos) if plan.kind.needs.watermark else None
    if assessed is not None:
        late |= assessed.late
    rows, pos = _valid_rows(plan, rows, pos, late, rejects)
    sequences = build(rows, pos, plan.key, plan.sort, plan.read_values)
    clocks = (before.clock, latest(plan, sequences.rows))
    after = replace(
        before,
        rows=before.rows + table.num_rows,
        clock=latest_clock(clocks),
        watermark=before.watermark if assessed is None else assessed.watermark,
        position=_position(plan, sequences, before.position),
    )
    if assessed is None:
        return BatchRows(sequences, window_marks(in_order(marks)), after)
    earlier = [] if before.advances is None else [before.advances]
    return BatchRows(sequences, watermark_signals(merged_watermarks(plan, [*earlier, assessed.watermarks])), after)


def project_batch(
    plan: Plan, table: pa.Table, pos: Ints, names: Sequence[str], rejects: RowRejects
) -> tuple[pa.Table, Ints | None]:
    """Return all rows with some columns of the plan, and which rows the window sees, int64; None: all.

    Raises `DataError` where an expression fails for a row, as ``rejects`` say.
    """
    only, failed = _marks_only(plan, table), failed_before(table)
    kept = None
    if not plan.projection.is_trivial:
        if ARRIVAL in plan.projection.virtual:
            table = table.append_column(ARRIVAL, pa.array(pos))
        found = project(plan.projection, table.select(list(plan.projection.needs(names))), names)
        table, kept, failed = found.rows, found.kept, failed or found.failures
    failed = _without_marks(failed, only)
    rejects.add_failures(failed, pos)
    return table, _picks(len(pos), kept, only, failed)


def clock_after(plan: Plan, table: pa.Table) -> ClockValue | None:
    """Return the largest value of the clock among the rows that the window places; None: there is none."""
    pos = np.arange(table.num_rows)
    rejects = RowRejects("drop")
    rows, _, kept = _seen_rows(plan, table, pos, GivenSignals(), rejects)
    rows, _ = _valid_rows(plan, rows, pos if kept is None else pos[kept], np.zeros(rows.num_rows, np.bool_), rejects)
    return latest(plan, rows)


def _seen_rows(
    plan: Plan, table: pa.Table, pos: Ints, given: GivenSignals, rejects: RowRejects
) -> tuple[pa.RecordBatch, Marks, Ints | None]:
    """Return the rows that the condition of the window keeps, the marks, and which rows these are; None: all."""
    given = given.of(plan)
    extra = [name for name in plan.projection.schema.names if name == given.mark_column]
    table, kept = project_batch(plan, table, pos, list(dict.fromkeys([*plan.columns, *extra])), rejects)
    rows = one_batch(table.select(list(plan.columns)))
    marks = marks_of(given, plan, table, rows, pos)
    if kept is not None and rows.num_columns:
        rows = rows.take(pa.array(kept))
    return rows, marks, kept


def _marks_only(plan: Plan, table: pa.Table) -> Mask | None:
    """Return which rows of a result are marks only; None where no row is, or the input is no result."""
    if not plan.reads_result or MARK not in table.schema.names:
        return None
    only = is_true(combined(pc.equal(table.column(MARK), "only")))
    return only if only.any() else None


def _picks(rows: int, kept: Mask | None, only: Mask | None, failed: Failures | None) -> Ints | None:
    """Return the rows that are kept, are no marks alone and have not failed, int64, of ``rows``; None: all."""
    if kept is None and only is None and failed is None:
        return None
    found = np.ones(rows, np.bool_) if kept is None else kept.copy()
    if only is not None:
        found &= ~only
    if failed is not None:
        found[failed.row] = False
    return np.flatnonzero(found)


def _without_marks(failures: Failures | None, only: Mask | None) -> Failures | None:
    """Return the failures of rows that are more than marks; None where there are none."""
    if failures is None or only is None:
        return failures
    picks = np.flatnonzero(~only[failures.row])
    return Failures(failures.row[picks], failures.detail.take(pa.array(picks))) if len(picks) else None


def _valid_rows(
    plan: Plan, rows: pa.RecordBatch, pos: Ints, late: Mask, rejects: RowRejects
) -> tuple[pa.RecordBatch, Ints]:
    reasons = add_late(validate_rows(plan, rows), late)
    if reasons is None:
        return rows, pos
    kept, bad = split_by_reason(reasons)
    rejects.add_invalid(rows, pos, reasons, bad)
    return rows.take(pa.array(kept)), pos[kept]


def _position(plan: Plan, sequences: Sequences, before: pa.Table | None) -> pa.Table | None:
    names = list(plan.order.columns or plan.sort)  # a result has an order also where the user names none
    if not names or not len(sequences):
        return before
    found = last_in_order(pa.Table.from_batches([sequences.rows.select(names)]))
    return found if before is None else last_in_order(pa.concat_tables([found, before]))


# Batches put together: the scan of a batch costs as much as the open windows have rows, besides its own.


_MOST_BYTES = 64 * 2**20
_MOST_ROWS = 1 << 20


def gather(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield batches as tables of about 64 MiB, or a million rows."""
    found: list[pa.RecordBatch] = []
    nbytes, rows = 0, 0
    for batch in batches:
        found.append(batch)
        nbytes, rows = nbytes + batch.nbytes, rows + batch.num_rows
        if nbytes >= _MOST_BYTES or rows >= _MOST_ROWS:
            yield pa.Table.from_batches(found)
            found, nbytes, rows = [], 0, 0
    if found:
        yield pa.Table.from_batches(found)
