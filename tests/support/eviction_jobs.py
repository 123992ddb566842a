"""Windows over tables whose keys are evicted, and their panes by the kernels, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from references import tumbling as reference
from support import spl_cases as conformance
from wincli.windowing.kinds.context import Signals, WindowContext
from wincli.windowing.kinds.evictions import Evictions
from wincli.windowing.kinds.key_lifetimes import Lifetimes, lifetimes
from wincli.windowing.kinds.registry import kind_of
from wincli.windowing.language import spec
from wincli.windowing.rows.marks import NO_FILE, Marks, in_order
from wincli.windowing.rows.membership import gathered
from wincli.windowing.rows.panes import AT_END, BY_TICK, CLOSED_BY, Panes
from wincli.windowing.rows.sequence import Sequences, build, one_batch

Evicting = spec.Tumbling | spec.Sliding

QUARTER = Fraction(1, 4)


@dataclass(frozen=True, slots=True)
class Out:
    """A pane as both sides tell it: ``tick`` where the clock brought it out, ``pos`` where a row or mark did."""

    key: tuple[Any, ...]
    number: int
    rows: tuple[int, ...]
    closed_by: str
    tick: Any
    pos: int | None


@dataclass(frozen=True, slots=True)
class Job:
    """A table in arrival order, and how to read it. A mark at p stands before row p."""

    table: pa.Table
    window: Evicting
    key: tuple[str, ...] = ("key",)
    order: tuple[str, ...] = ()
    marks: tuple[int, ...] = ()
    emit_evicted: bool = False
    partial: bool = False
    origin: Fraction = Fraction(0)
    ahead: int = 0  # by how many steps the clock goes on after the last row

    @property
    def clock(self) -> Any:
        """Where the clock stands, in its column's own terms."""
        if not (self.order and len(self.table)):
            return None
        kind = self.table["at"].type
        steps = self.ahead * unit_of(kind) / reference.seconds_per_unit(kind)
        latest = max(reference.ticks_of(self.table["at"]))
        return (
            latest + type(latest)(steps.numerator) / steps.denominator if steps.denominator > 1 else latest + int(steps)
        )

    @property
    def sequences(self) -> Sequences:
        rows = one_batch(self.table)
        return build(rows, np.arange(len(self.table)), self.key, self.order, rows.schema.names)

    @property
    def placed(self) -> Marks:
        after = np.array(self.marks, np.int64) - 1
        order = self.table.select(list(self.order)).combine_chunks()
        rows = one_batch(order.take(pa.array(np.maximum(after, 0)))) if len(order) else one_batch(order)
        return in_order(Marks(rows, after, np.full(len(after), NO_FILE)))

    @property
    def setting(self) -> WindowContext:
        clock = self.clock
        if isinstance(clock, Decimal):
            clock = int(clock.scaleb(self.table["at"].type.scale))
        return WindowContext(clock=clock, origin=self.origin, partial=self.partial, emit_evicted=self.emit_evicted)


def is_evicting(case: conformance.Case) -> bool:
    return isinstance(case.spec, Evicting) and case.spec.eviction is not None


def by_library(job: Job) -> list[Out]:
    sequences, marks = job.sequences, job.placed
    found = kind_of(job.window).evictions(sequences, marks, job.setting)
    return panes_of(job, sequences, marks, found)


def panes_of(job: Job, sequences: Sequences, marks: Marks, found: Evictions) -> list[Out]:
    cut = lifetimes(found, sequences)
    panes, both = kind_of(job.window).panes(sequences, Signals(marks, None, found), job.setting)
    assert both.pos.tolist() == [*marks.pos.tolist(), *cut.evictions.causes.pos.tolist()]
    check_causes(job, cut)
    return told(sequences, panes, np.concatenate([sequences.pos, both.pos]))


def check_causes(job: Job, cut: Lifetimes) -> None:
    """What evictions say of the rows that caused them is what these rows hold."""
    causes = cut.evictions.causes
    behind = np.flatnonzero(causes.pos >= 0)
    rows = one_batch(job.table.select(list(job.order)))
    if job.order:
        assert causes.take(behind).rows.equals(rows.take(pa.array(causes.pos[behind])))


def told(sequences: Sequences, panes: Panes, pos: Any) -> list[Out]:
    assert sequences.keys is not None
    keys = list(zip(*(reference.ticks_of(column) for column in sequences.keys.columns), strict=True))
    ticks = [None] * len(panes) if panes.at is None else reference.ticks_of(pa.chunked_array([panes.at]))
    rows, bounds = gathered(panes.membership, 0, len(panes))
    return [
        Out(
            keys[panes.key[p]],
            int(panes.number[p]),
            tuple(sequences.pos[rows[bounds[p] : bounds[p + 1]]].tolist()),
            CLOSED_BY[panes.closed_by[p]],
            ticks[p] if panes.cause[p] == BY_TICK else None,
            None if panes.cause[p] == AT_END else -1 if panes.cause[p] == BY_TICK else int(pos[panes.cause[p]]),
        )
        for p in range(len(panes))
    ]


def unit_of(kind: pa.DataType) -> Fraction:
    """How many seconds the smallest step of `clock_of` is."""
    if kind == pa.date32():
        return Fraction(86_400)
    return Fraction(1) if pa.types.is_integer(kind) or kind == pa.timestamp("s") else QUARTER


def order_of(window: Evicting) -> tuple[str, ...]:
    return ("at",) if kind_of(window).needs.clock else ()
