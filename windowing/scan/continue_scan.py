"""The scan behind a cut: what the rows before it left, and new rows, give result rows and what goes on behind these.

Slices, segments of a heavy key, chunks of a sorted log, batches and partitions of Spark all go on in this way. What
differs among them is where rows come from and where the carry goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa

from ..clock.watermark import NO_LEVEL
from ..columns.arrays import ClockValue, latest_clock
from ..emit.result_tables import finishing_tables
from ..kinds.context import Signals
from ..planning.plan import Plan
from ..rows.sequence import Sequences
from ..state.carry import Carry, Registers
from ..state.window_state import RestoredState, WindowState, merge, restore
from .lag_rows import OrderedRows, keep_lookback
from .operator_scan import Emission, ScanResult, snapshot
from .row_validation import last_closed, relevant_advances
from .scan import latest, mark_only_rows, scan


@dataclass(frozen=True, slots=True)
class End:
    """The end of the rows of a scan.

    ``clock``: the clock there, in measures of the clock column, over the rows of all tasks; None: the largest value of
        the rows of this scan.
    ``given``: what of that no row says; None: nothing.
    ``watermark``: the watermark after all rows, as a reading; None: no row yet, or signals alone say it.
    ``is_continued``: whether another scan goes on from the carry.
    ``of_all_keys``: whether the scan has the rows of all keys, so that it knows which marks and ticks found none.
    """

    clock: ClockValue | None = None
    given: ClockValue | None = None
    watermark: ClockValue | None = None
    is_continued: bool = False
    of_all_keys: bool = False


@dataclass(frozen=True, slots=True)
class Continuation:
    """A scan behind a cut.

    ``plan``: as it was asked for.
    ``new``: the new rows as windows see them, and those of them that have no place.
    ``sequences``: the rows that were scanned: those of the carry, then new ones.
    ``registers``: the clock behind them, and the advances where another scan goes on.
    ``tables``: what comes out, an iterator that can be read once: rows of panes, the last rows of operators whose keys
        have no rows, mark-only rows.
    ``scanned``: the result of the scan; `settle` has what its operators decide.
    ``idle``: the state of keys that have no rows; None: there is none.
    """

    plan: Plan
    new: OrderedRows
    sequences: Sequences
    registers: Registers
    tables: Iterator[pa.Table]
    scanned: ScanResult
    idle: WindowState | None

    def settle(self) -> tuple[ScanResult, Carry]:
        """Return the account of the rows, and what goes on behind them: only after ``tables`` have been read.

        Of the registers it has the clock and, as the window state, the advances where ``is_continued`` says so.
        """
        scanned, idle = keep_lookback(self.plan, self.scanned.settled(), self.idle, self.new, self.registers.clock)
        state = scanned.state
        if state is not None and idle is not None:
            state = merge(state, idle)
        return scanned, Carry(self.registers, state)


def continue_scan(plan: Plan, new: OrderedRows, signals: Signals, carry: Carry, end: End) -> Continuation:
    """Scan new rows behind those that left ``carry``.

    ``new``: the rows, as `with_lag_columns` returns them for the state of ``carry``. ``signals``: all that came so far
    and that windows may still need.
    """
    before = carry.registers
    sequences, restored, idle = restore_rows(plan, new.sequences, signals, carry)
    clock = end.clock
    marks_ticks = plan.options.empty == "mark"
    left_out = len(new.rejects) or (new.duplicates and marks_ticks)
    if end.of_all_keys and left_out and (marks_ticks or not plan.key):
        # the cell of a row that is left out would seem to have rows
        clock = latest_clock([latest(plan, new.sequences.rows), before.clock, end.given])
    closed = last_closed(plan, sequences, signals, end.watermark) if end.is_continued else NO_LEVEL
    context = replace(plan.context, clock=clock, since=before.clock, last_closed=closed, restored=restored)
    scanned = scan(plan, sequences, signals, context, end.is_continued)
    finishing: Iterable[pa.Table] = ()
    if idle is not None and plan.options.operator is not None and plan.options.at_end != "hold":
        # windows do not go on: the last rows of operators whose keys have no rows, and these keys without
        nothing = pa.nulls(len(idle.key_state.rows), pa.string())
        if plan.options.at_end == "flush":
            finishing = finishing_tables(plan, idle, scanned.hidden)
        idle = replace(idle, key_state=replace(idle.key_state, operator=nothing))
    if idle is not None and plan.options.at_end != "hold":  # these windows begin anew, too
        idle = replace(idle, key_state=replace(idle.key_state, newest=None, ongoing=None))
    marks_only = mark_only_rows(plan, scanned, sequences, signals.marks, context) if end.of_all_keys else ()
    advances = None
    if end.is_continued and signals.watermarks is not None:
        advances = relevant_advances(signals.watermarks, closed)
    registers = Registers(clock=clock, advances=advances)
    return Continuation(plan, new, sequences, registers, chain(scanned.tables, finishing, marks_only), scanned, idle)


def retain(plan: Plan, new: Sequences, signals: Signals, carry: Carry) -> Carry:
    """Return what goes on behind new rows under windows that overlap, but for what panes show: that takes a scan.

    ``new``: rows of one key, at least one. ``signals``: those before the row that comes next.
    """
    sequences, restored, _ = restore_rows(plan, new, signals, carry)
    before, rows = carry.registers, len(sequences)
    clock = latest_clock([latest(plan, sequences.rows), before.clock])
    closed = last_closed(plan, sequences, signals, None)
    context = replace(
        plan.context, clock=clock, since=before.clock, last_closed=closed, at_end="hold", restored=restored
    )
    nothing = np.zeros(rows, np.bool_)
    emission = Emission(nothing, nothing, np.zeros(1, np.int64), pa.nulls(1))
    # ranks say from which segment a retained row is
    state = snapshot(plan.kind, sequences, signals, context, None, emission, has_ranks=True)
    return Carry(Registers(clock=clock, advances=signals.watermarks), state)


# Rows that a state retains before new rows of the same keys, and keys that have no rows any more.


def restore_rows(
    plan: Plan, new: Sequences, signals: Signals, carry: Carry
) -> tuple[Sequences, RestoredState | None, WindowState | None]:
    """Put the rows of a carry before new rows of the same keys; also return the state of keys that have no rows.

    ``signals``: those of the carry are among them.
    """
    if carry.state is None:
        return new, None, None
    sequences, restored, idle = restore(plan.kind.needs.baseline, carry.state, new)
    before, earlier_signals = carry.registers, 0
    if signals.watermarks is not None and before.advances is not None:
        earlier_signals = int(np.count_nonzero(np.isin(signals.marks.pos, before.advances.marks.pos)))
    return sequences, replace(restored, signals=earlier_signals, continued=carry.continued), idle
