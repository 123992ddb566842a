"""Nights without Spark: a log cut into runs, each going on from what the one before held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from windowing.carry import Carry, joined, key_table, merged, read_carry, row_table
from windowing.columns import combined
from windowing.judgement import is_ordered_by_time, judge, lateness_of, watermarks_of
from windowing.clock import clock_values
from windowing.marks import NO_FILE, Marks, in_order, no_marks
from windowing.plan import Plan
from windowing.scan import Bounds, empty_mark_rows, empty_tick_rows, scan
from windowing.screen import kept_and_rejected, screen, with_late
from windowing.sequence import build, one_batch
from windowing.signals import advances, window_marks
from windowing.spec import TimeInterval, needs_clock
from windowing.watermark import NO_LEVEL, Watermarks


class Nights:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.carry = None
        self.clock = None
        self.stands = None
        self.old = None
        self.base = 0

    def night(self, table: pa.Table, at_end: str, marks: Sequence[int] = ()) -> pa.Table:
        plan = replace(self.plan, options=replace(self.plan.options, at_end=at_end))
        rows = one_batch(table.select(list(plan.columns)))
        pos = np.arange(len(table)) + self.base
        reasons, signals, dead = screen(plan, rows), None, NO_LEVEL
        if isinstance(plan.spec, TimeInterval):
            judged = judge(plan, self.stands, rows, pos)
            reasons = with_late(reasons, judged.late)
            marked = watermarks_of(plan, [*([self.old] if self.old else []), judged.watermarks])
            signals = advances(marked)
            if is_ordered_by_time(plan):
                dead = int(marked.level[-1]) if len(marked) else NO_LEVEL
            else:
                self.stands = judged.stands
                dead = NO_LEVEL if self.stands is None else lateness_of(plan, rows).dead(self.stands)
        else:
            after = np.asarray(marks, np.int64) - 1 + self.base
            places = after - self.base
            order = rows.select(list(plan.sort))
            at = order.take(pa.array(places, mask=places < 0)) if plan.sort else order
            signals = window_marks(in_order(Marks(at, after, np.full(len(after), NO_FILE))) if len(after) else no_marks(rows, plan.sort))
        if reasons is not None:
            kept, _ = kept_and_rejected(reasons)
            rows, pos = rows.take(pa.array(kept)), pos[kept]
        sequences = build(rows, pos, plan.key, plan.sort, plan.values)
        since, clock = self.clock, self.clock
        if needs_clock(plan.spec) and len(sequences):
            top = clock_values(combined(sequences.rows.column(plan.sort[0])), plan.sort[0]).max().item()
            clock = top if clock is None else max(top, clock)
        past, idle = None, None
        if self.carry is not None:
            kt, rt = key_table(self.carry), row_table(self.carry)
            sequences, past, idle = joined(plan.spec, read_carry(kt, rt, plan.key, plan.sort, plan.values), sequences)
            past = replace(past, since=since, signals=int((signals.marks.pos < self.base).sum()) if signals.watermarks is not None else 0)
        bounds = Bounds(clock, since if past is not None else None, dead, True)
        scanned = scan(plan, sequences, signals, bounds, past)
        tables = list(scanned.tables)
        if plan.takes_marks:
            tables.append(empty_mark_rows(plan, signals.marks, scanned.by_mark))
        if plan.options.empty == "mark":
            tables.append(empty_tick_rows(plan, sequences, bounds))
        self.counts = (scanned.windowed, scanned.filtered, scanned.dropped, scanned.held)
        self.carry = scanned.carry if idle is None else merged(scanned.carry, idle)
        self.clock = clock
        if signals.watermarks is not None:
            w = signals.watermarks
            live = np.flatnonzero(w.level > dead)
            first = live[0] - 1 if len(live) else len(w) - 1
            picks = np.arange(max(first, 0), len(w))
            self.old = Watermarks(w.marks.take(picks), w.level[picks])
        self.base += len(table)
        return pa.concat_tables([plan.schema.empty_table(), *(part.cast(plan.schema) for part in tables)])
