"""Marks and watermarks of a batch: those that a caller gives, or those of its rows (semantics sections 2 and 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pyarrow as pa

from ..clock.interval_grid import make_intervals
from ..clock.watermark import explicit
from ..columns.arrays import ClockValue, Ints, combined
from ..columns.conditions import is_condition, is_true
from ..errors import ConfigError
from ..language.spec import TimeInterval
from ..planning.plan import Plan
from ..planning.result_schema import MARK
from ..scan.lateness import LatenessResult, assess, event_times
from ..sequences.marks import NO_FILE, Marks, no_marks, with_place
from ..support.suggest import did_you_mean


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
        """The column of marks, if they are in one."""
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
