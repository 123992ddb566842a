"""Rows of one batch, made ready for a scan: expressions, validity, lateness, marks (semantics 1, 2, 5 and 11)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np
import pyarrow as pa

from ..clock.interval_grid import make_intervals
from ..clock.watermark import Belief, explicit
from ..columns.arrays import ClockValue, Ints, Mask, combined, is_condition, is_true, latest_clock
from ..columns.sort_keys import last_in_order
from ..errors import ConfigError, did_you_mean
from ..kinds.context import Signals, watermark_signals, window_marks
from ..language.spec import TimeInterval
from ..planning.plan import Plan
from ..planning.result_schema import MARK
from ..ports import Batch, Failures
from ..rows.marks import NO_FILE, Marks, in_order, no_marks, with_place
from ..rows.projection import ARRIVAL, project
from ..rows.sequence import Sequences, build, one_batch, order_of, take_rows
from ..scan.row_validation import (
    FAILED,
    LatenessResult,
    Reasons,
    RowSelection,
    assess,
    event_times,
    judge_rows,
    latest_valid,
    marks_behind,
    merged_watermarks,
    select_rows,
    split_by_reason,
)
from ..scan.rows_ahead import cut_of
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
    given: GivenSignals,
    plan: Plan,
    announced: ClockValue | None,
    belief: Belief | None,
    rows: pa.RecordBatch,
    pos: Ints,
) -> LatenessResult:
    """Return the watermark advances of a batch, and which rows are late beyond repair.

    ``announced``: the watermark before it, as a reading; ``belief``: as in `Registers`. Watermarks that a caller gives
    are for one batch alone.
    """
    if given.watermarks is None:
        return assess(plan, announced, rows, pos, belief)
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
    ``waiting``: int64, the positions of rows that are ahead of their time so far: the next batch is to have them, too.
    """

    sequences: Sequences
    signals: Signals
    after: Registers
    waiting: Ints


def read_batch(
    plan: Plan,
    before: Registers,
    table: pa.Table,
    pos: Ints,
    given: GivenSignals,
    rejects: RowRejects,
    is_last: bool = True,
) -> BatchRows:
    """Return the rows of a batch in sequences, with what signals they bring.

    ``table``: rows in the order in which they arrive. ``pos``: int64 (n,), their arrival positions. ``is_last``:
    whether no batch follows, so that rows ahead of their time are rejected. Raises `DataError` for a row that no window
    can place, or an expression fails for, as ``rejects`` say; and as `marks_of`.
    """
    rows, pos, marks, failed = _seen_rows(plan, table, pos, given, rejects)
    cut = None
    if plan.options.max_ahead is not None and plan.order.columns:
        valid = (rows, pos) if failed is None else RowSelection(np.flatnonzero(~failed)).take(rows, pos)
        cut = cut_of(plan, before.position, latest_valid(plan, *valid, before.position))
    marks = marks_behind(plan, marks, before.position, cut)
    if plan.kind.needs.watermark and plan.reads_result:
        # Rows of a result as they came out, which is how they arrive: a watermark follows them in this order.
        order = order_of([combined(rows.column(name)) for name in plan.sort])
        rows, pos, failed = take_rows(rows, order), pos[order], None if failed is None else failed[order]
    assess = partial(lateness, given, plan, before.watermark, before.belief) if plan.kind.needs.watermark else None
    reasons, assessed = judge_rows(plan, rows, pos, failed, before.position, assess, cut)
    waiting = pos[:0]
    if cut is not None and not is_last:
        assert reasons is not None
        waiting, others = pos[reasons == "ahead"], np.flatnonzero(reasons != "ahead")
        rows, pos, reasons = take_rows(rows, others), pos[others], reasons[others]
    rows, pos = _valid_rows(rows, pos, reasons, rejects)
    sequences = build(rows, pos, plan.key, plan.sort, plan.read_values)
    ordering = list(plan.order.columns or plan.sort)  # a result has an order also where the user names none
    after = replace(
        before,
        rows=before.rows + table.num_rows - len(waiting),
        clock=latest_clock((before.clock, latest(plan, sequences.rows))),
        watermark=before.watermark if assessed is None else assessed.watermark,
        belief=before.belief if assessed is None else assessed.belief,
        position=last_in_order(pa.Table.from_batches([sequences.rows.select(ordering)]), before.position),
    )
    if assessed is None:
        return BatchRows(sequences, window_marks(in_order(marks)), after, waiting)
    earlier = [] if before.advances is None else [before.advances]
    signals = watermark_signals(merged_watermarks(plan, [*earlier, assessed.watermarks]))
    return BatchRows(sequences, signals, after, waiting)


def project_batch(
    plan: Plan, table: pa.Table, pos: Ints, names: Sequence[str], rejects: RowRejects
) -> tuple[pa.Table, RowSelection]:
    """Return all rows with some columns of the plan, and which rows are selected.

    Raises `DataError` where an expression fails for a row, as ``rejects`` say.
    """
    is_stream = plan.reads_result and MARK in table.schema.names
    batch, marks_only = Batch(table, pos, failures=failed_before(table)), table
    if not plan.projection.is_trivial:
        if ARRIVAL in plan.projection.virtual:
            table = table.append_column(ARRIVAL, pa.array(pos))
        found, kept, failures = project(plan.projection, table.select(list(plan.projection.needs(names))), names)
        batch = Batch(found, pos, kept=kept, failures=batch.failures or failures)
    selection = select_rows([batch], marks_only, is_stream)
    if batch.failures is not None and selection.failed is not None:
        own = np.arange(len(pos)) if selection.picks is None else selection.picks
        picks = np.flatnonzero(np.isin(batch.failures.row, own[selection.failed]))  # of rows that are more than marks
        failures = Failures(batch.failures.row[picks], batch.failures.detail.take(pa.array(picks)))
        rejects.add_failures(failures, pos)
    return batch.rows, selection


def clock_after(plan: Plan, table: pa.Table) -> ClockValue | None:
    """Return the largest value of the clock among the rows that the window places; None: there is none."""
    rejects = RowRejects("drop")
    rows, pos, _, failed = _seen_rows(plan, table, np.arange(table.num_rows), GivenSignals(), rejects)
    reasons, _ = judge_rows(plan, rows, pos, failed, None, None)
    return latest(plan, _valid_rows(rows, pos, reasons, rejects)[0])


def _seen_rows(
    plan: Plan, table: pa.Table, pos: Ints, given: GivenSignals, rejects: RowRejects
) -> tuple[pa.RecordBatch, Ints, Marks, Mask | None]:
    """Return the rows that are selected, their positions, the marks of all rows, and which of the first have failed."""
    given = given.of(plan)
    extra = [name for name in plan.projection.schema.names if name == given.mark_column]
    table, selection = project_batch(plan, table, pos, list(dict.fromkeys([*plan.columns, *extra])), rejects)
    rows = one_batch(table.select(list(plan.columns)))
    marks = marks_of(given, plan, table, rows, pos)
    return *selection.take(rows, pos), marks, selection.failed


def _valid_rows(
    rows: pa.RecordBatch, pos: Ints, reasons: Reasons | None, rejects: RowRejects
) -> tuple[pa.RecordBatch, Ints]:
    if reasons is None:
        return rows, pos
    kept, bad = split_by_reason(reasons)
    invalid = bad[reasons[bad] != FAILED]  # others were added before
    if len(invalid):
        rejects.add_invalid(rows, pos, reasons, invalid)
    return rows.take(pa.array(kept)), pos[kept]


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
