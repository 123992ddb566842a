"""The scan: sequences in, result rows out. Everything else moves bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowing.columns import Ints, combined, measures
from windowing.contents import Contents, Ranges, shown
from windowing.kinds import panes_of
from windowing.marks import Marks, unoccupied
from windowing.panes import reason
from windowing.plan import Plan
from windowing.result import mark_rows, result_tables, tick_rows, told_panes
from windowing.sequence import Sequences
from windowing.setting import Clock, Setting
from windowing.signals import Signals
from windowing.spec import Calendar, Time, Tumbling
from windowing.timed import empty_ticks


@dataclass(frozen=True, slots=True)
class Scanned:
    """What a scan found: the ``tables`` of the result, to be gone through once, and the account of its rows.

    ``windowed``: rows that some pane shows; ``dropped``: that only the end would have shown, under ``--at-end drop``;
    ``filtered``: all others. ``falls``: how often a watched attribute went down; ``by_mark``: for each pane that a
    mark brought out, which mark it was.
    """

    tables: Iterator[pa.Table]
    windows: int
    windowed: int
    dropped: int
    filtered: int
    falls: int
    by_mark: Ints


def scan(
    plan: Plan, sequences: Sequences, signals: Signals, clock: Clock | None = None, since: Clock | None = None
) -> Scanned:
    """Compute all panes of some sequences and what comes out of them.

    ``clock``: where the one clock stands, in measures of the clock column; None: at the
    largest value here. ``since``: where it stood before the first row. Mark-only rows of ``punct()`` and ``--empty
    mark`` are left to `empty_mark_rows` and `empty_tick_rows`, for whether a mark or tick is empty is known only of
    all keys together.
    """
    options = plan.options
    setting = Setting(
        clock, since, options.origin, options.empty, options.partial, options.event_time, options.emit_evicted
    )
    panes, marks = panes_of(plan.spec, sequences, signals, setting)
    rows = len(sequences)
    placed = _shown(panes.contents, rows)
    if options.at_end == "drop":
        panes = panes.take(np.flatnonzero(panes.closed_by != reason("end")))
    windowed = _shown(panes.contents, rows) if options.at_end == "drop" else placed
    panes = told_panes(plan, sequences, panes)
    tables = result_tables(plan, sequences, marks, panes)
    by_mark = panes.cause[panes.cause >= rows] - rows
    by_mark = by_mark[by_mark < len(signals)]
    account = (windowed, placed - windowed, rows - placed)
    return Scanned(tables, len(panes), *account, _falls(plan, sequences), by_mark)


def empty_mark_rows(plan: Plan, marks: Marks, by_mark: Ints) -> pa.Table:
    """Return mark-only rows for marks that found no key with rows (``punct()``)."""
    return mark_rows(plan, marks, unoccupied(by_mark, len(marks)))


def empty_tick_rows(plan: Plan, sequences: Sequences, clock: Clock | None) -> pa.Table:
    """Return mark-only rows for ticks that found no key with rows (``--empty mark``)."""
    assert isinstance(plan.spec, Tumbling)
    assert isinstance(plan.spec.policy, Time | Calendar)
    return tick_rows(plan, empty_ticks(plan.spec.policy, sequences, Setting(clock, origin=plan.options.origin)))


def _shown(contents: Contents, rows: int) -> int:
    """How many rows some pane shows."""
    if isinstance(contents, Ranges) and contents.apart:
        return int((contents.hi - contents.lo).sum())
    return int(np.count_nonzero(shown(contents, rows)))


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
