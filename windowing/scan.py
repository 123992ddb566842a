"""The scan: sequences in, result rows out. Everything else moves bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowing.columns import Ints, combined, measures
from windowing.marks import Marks, unoccupied
from windowing.panes import Panes, reason
from windowing.plan import Plan
from windowing.result import mark_rows, mark_stamps, result_table
from windowing.sequence import Sequences
from windowing.spec import Time
from windowing.tumbling import Setting, clock_values, empty_ticks, time_grid, tumbling_panes


@dataclass(frozen=True, slots=True)
class Scanned:
    """What a scan found: the ``table`` of results, and the account of its rows.

    ``windowed``: rows in panes that came out; ``dropped``: open at the end under ``--at-end drop``. ``falls``: how
    often a watched attribute went down; ``by_mark``: for each pane that a mark brought out, which mark it was.
    """

    table: pa.Table
    windows: int
    windowed: int
    dropped: int
    falls: int
    by_mark: Ints


def scan(plan: Plan, sequences: Sequences, marks: Marks, clock: int | float | None = None) -> Scanned:
    """Compute all panes of some sequences and aggregate them.

    ``marks`` stand in order. ``clock``: where the one clock stands, in measures of the first order column; None: at
    the largest value here. Mark-only rows are left to `empty_mark_rows` and `empty_tick_rows`, for whether a mark or
    tick is empty is known only of all keys together.
    """
    panes = tumbling_panes(plan.spec, sequences, marks, Setting(clock, plan.origin, plan.empty))
    dropped = 0
    if plan.at_end == "drop":
        panes, dropped = _without_open(panes)
    table = result_table(plan, sequences, marks, panes)
    by_mark = panes.cause[panes.cause >= len(sequences)] - len(sequences)
    windowed = int((panes.hi - panes.lo).sum())
    return Scanned(table, len(panes), windowed, dropped, _falls(plan, sequences), by_mark)


def empty_mark_rows(plan: Plan, marks: Marks, by_mark: Ints) -> pa.Table:
    """Return mark-only rows for marks that found no key with rows (``punct()``)."""
    return mark_rows(plan, mark_stamps(plan, marks.take(unoccupied(by_mark, len(marks)))))


def empty_tick_rows(plan: Plan, sequences: Sequences, clock: int | float | None) -> pa.Table:
    """Return mark-only rows for ticks that found no key with rows (``--empty mark``)."""
    assert isinstance(plan.spec.policy, Time)
    column = combined(sequences.rows.column(plan.sort[0]))
    grid = time_grid(column.type, plan.spec.policy.seconds, plan.origin)
    ticks = empty_ticks(grid, clock_values(column, plan.sort[0]), clock)
    return mark_rows(plan, [ticks, pa.array(np.full(len(ticks), -1, np.int64))])


def _without_open(panes: Panes) -> tuple[Panes, int]:
    is_open = panes.closed_by == reason("end")
    dropped = int((panes.hi - panes.lo)[is_open].sum())
    return panes.take(np.flatnonzero(~is_open)), dropped


def _falls(plan: Plan, sequences: Sequences) -> int:
    """How often the watched attribute is smaller than in the row before it of the same key."""
    name = plan.watches_falls
    if name is None or len(sequences) < 2:
        return 0
    values = measures(combined(sequences.rows.column(name)))
    falls = values[1:] < values[:-1]
    starts = sequences.bounds[1:-1]
    falls[starts - 1] = False
    return int(np.count_nonzero(falls))
