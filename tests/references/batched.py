"""Batched windows once more (section 6): the content rule, asked at every moment at which the content may change.

    within 3            row at 1        row at 2          row at 4
                        enters          enters            expiry at 4: the row at 1 is out
                        [1]             [1 2]             [2]   then the row enters: [2 4]

A sequence has *moments*: an arrival, an expiry, a tick, a full lot, the end. At a moment some rows enter; what is in
the window is then worked out from nothing but the rows that have entered so far: those inside `within`, of these the
last n of each part. Of the rows in it that share part and value only the newest is visible, and who has once been
hidden stays so. What differs from the moment before is a `Lot`; no difference, no lot.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import pyarrow as pa

from references.tumbling import (
    Pane,
    Ranked,
    Row,
    Value,
    as_value,
    in_order,
    ranked,
    seconds_per_unit,
    type_of_ticks,
    values_of,
)


@dataclass(frozen=True, slots=True)
class Lot(Pane):
    """One change of the visible content: ``rows`` is the content after it.

    ``entered`` and ``left``: the rows, by arrival position and in the order of the sequence, that came into sight with
    it and those that went out of sight.
    """

    entered: tuple[int, ...] = ()
    left: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Moment:
    """When the content may change: ``pos`` is a row's, -1 the clock's doing, None the end's; ``now`` exact seconds."""

    reason: str
    pos: int | None
    now: Fraction
    entering: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock column in seconds, the grid of ``every`` on it, and how instants are told in the result."""

    kind: pa.DataType
    within: Fraction
    every: Fraction | None
    origin: Fraction

    def seconds(self, value: Value) -> Fraction:
        return Fraction(value) * seconds_per_unit(self.kind)

    def instant(self, exact: Fraction) -> Fraction:
        """Where the clock can stand: a float clock only at floats, so there it is the nearest one."""
        return Fraction(float(exact)) if pa.types.is_floating(self.kind) else exact

    def leaves(self, value: Value) -> Fraction:
        """The first instant at which a row is too old."""
        return self.instant(self.seconds(value) + self.within)

    def exact_tick(self, k: int) -> Fraction:
        assert self.every is not None
        return self.origin + k * self.every

    def first_tick(self, instant: Fraction) -> int:
        """The first tick at or after an instant."""
        assert self.every is not None
        k = math.ceil((instant - self.origin) / self.every)
        while self.instant(self.exact_tick(k)) < instant:
            k += 1
        while self.instant(self.exact_tick(k - 1)) >= instant:
            k -= 1
        return k

    def tick_after(self, instant: Fraction) -> int:
        """The first tick after an instant."""
        k = self.first_tick(instant)
        while self.instant(self.exact_tick(k)) <= instant:
            k += 1
        return k

    def result_value(self, exact: Fraction) -> Value:
        grid = () if self.every is None else (self.every, self.origin)
        return as_value(exact, type_of_ticks(self.kind, self.within, *grid))


# --- one sequence -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Window:
    """A batched window. ``ranks``: the total order of ``rows``; ``clock`` is there iff ``within`` is, ``stands``: where
    it does at the end.
    """

    rows: Mapping[int, Row]
    ranks: Mapping[int, int]
    order: Sequence[str]
    clock: Clock | None
    stands: Fraction
    every: Fraction | int | None
    retain: int | None
    unique: str | None
    partition_by: Sequence[str]
    flush: bool

    def lots(self, key: tuple[Value, ...], sequence: Sequence[int]) -> Iterator[tuple[Moment, Lot]]:
        """The lots of one key's rows in their order, each with its moment."""
        entered: list[int] = []
        visible: list[int] = []
        hidden: set[int] = set()
        number = 0
        for moment in self.moments(sequence):
            entered = sorted([*entered, *moment.entering], key=self.ranks.__getitem__)
            there = self.content(entered, moment.now)
            hidden |= self.hidden(there)
            before, visible = visible, [pos for pos in there if pos not in hidden]
            came = tuple(pos for pos in visible if pos not in before)
            went = tuple(pos for pos in before if pos not in visible)
            if came or went:
                at, (start, end) = self.at(moment), self.bounds(visible, moment)
                rows, reason = tuple(visible), moment.reason
                yield moment, Lot(key, number, rows, reason, at, moment.pos, start, end, entered=came, left=went)
                number += 1

    # What is to be seen.

    def content(self, entered: Sequence[int], now: Fraction) -> list[int]:
        """Of the rows that have entered, oldest first: those inside, among the last n of their part."""
        inside = [pos for pos in entered if not self.is_out(pos, now)]
        return [pos for pos in inside if self.has_place(pos, inside)]

    def hidden(self, there: Sequence[int]) -> set[int]:
        """Of the rows in the window, oldest first: those with a newer one of their part and value among them."""
        newest = {self.k(pos): pos for pos in there}
        return {pos for pos in there if newest[self.k(pos)] != pos}

    def is_out(self, pos: int, now: Fraction) -> bool:
        return self.clock is not None and self.clock.leaves(self.time(pos)) <= self.clock.instant(now)

    def has_place(self, pos: int, inside: Sequence[int]) -> bool:
        newer = inside[inside.index(pos) + 1 :]
        return self.retain is None or sum(self.part(other) == self.part(pos) for other in newer) < self.retain

    def part(self, pos: int) -> Ranked:
        return ranked(self.rows[pos][name] for name in self.partition_by)

    def k(self, pos: int) -> Ranked | int:
        """What no newer row may share: without `unique`, the row itself."""
        return pos if self.unique is None else self.part(pos) + ranked([self.rows[pos][self.unique]])

    def time(self, pos: int) -> Value:
        return self.rows[pos][self.order[0]]

    # When it may change.

    def moments(self, sequence: Sequence[int]) -> Iterator[Moment]:
        if self.clock is None:
            yield from self.arrivals(sequence) if self.every is None else self.full_lots(sequence)
            return
        for moment in self.with_expiries(sequence) if self.every is None else self.ticks(sequence):
            if self.clock.instant(moment.now) <= self.stands:
                yield moment
            elif self.flush:
                yield replace(moment, reason="end")

    def arrivals(self, sequence: Sequence[int]) -> list[Moment]:
        nows = {pos: self.clock.seconds(self.time(pos)) if self.clock else Fraction(0) for pos in sequence}
        return [Moment("trigger", pos, nows[pos], (pos,)) for pos in sequence]

    def with_expiries(self, sequence: Sequence[int]) -> list[Moment]:
        """Arrivals and expiries; those of one instant are one moment, before the arrivals of that instant."""
        assert self.clock is not None
        instants = {self.clock.leaves(self.time(pos)) for pos in sequence}
        expiries = [Moment("expiry", -1, instant) for instant in instants]
        return sorted([*expiries, *self.arrivals(sequence)], key=lambda moment: moment.now)  # a stable sort

    def ticks(self, sequence: Sequence[int]) -> Iterator[Moment]:
        """The ticks at which rows may come or go, up to the first one after the clock."""
        assert self.clock is not None
        comes = {pos: self.clock.first_tick(self.clock.seconds(self.time(pos))) for pos in sequence}
        goes = {pos: self.clock.first_tick(self.clock.leaves(self.time(pos))) for pos in sequence}
        last = self.clock.tick_after(self.stands)
        for k in sorted(k for k in {*comes.values(), *goes.values()} if k <= last):
            entering = tuple(pos for pos in sequence if comes[pos] == k)
            yield Moment("batch", -1, self.clock.exact_tick(k), entering)

    def full_lots(self, sequence: Sequence[int]) -> Iterator[Moment]:
        """A moment with each m-th row of a part; at the end what is short of m enters, of all parts at once."""
        stored: dict[Ranked, list[int]] = defaultdict(list)
        for pos in sequence:
            stored[self.part(pos)].append(pos)
            if len(stored[self.part(pos)]) == self.every:
                yield Moment("batch", pos, Fraction(0), tuple(stored.pop(self.part(pos))))
        if self.flush:
            yield Moment("end", None, Fraction(0), tuple(pos for short in stored.values() for pos in short))

    # How it is told.

    def at(self, moment: Moment) -> tuple[Value, ...] | None:
        if moment.pos is None or not self.order:
            return None
        first = self.clock.result_value(self.clock.instant(moment.now)) if self.clock else self.time(moment.pos)
        return (first, *(None if moment.pos < 0 else self.rows[moment.pos][name] for name in self.order[1:]))

    def bounds(self, visible: Sequence[int], moment: Moment) -> tuple[Value, Value]:
        if self.clock is not None:
            return self.clock.result_value(moment.now - self.clock.within), self.clock.result_value(moment.now)
        return (self.time(visible[0]), self.time(visible[-1])) if self.order else (None, None)

    def came_out(self, moment: Moment) -> tuple[bool, Fraction, int]:
        """What moments of all keys sort by: the end last, the clock's doing before the rows of its instant."""
        if moment.pos is None:
            return True, Fraction(0), -1
        instant = self.clock.instant(moment.now) if self.clock else Fraction(0)
        return False, instant, self.ranks[moment.pos] if moment.pos >= 0 else -1


# --- all keys -----------------------------------------------------------------------------------------------------


def batched(
    rows: Mapping[int, Row],
    *,
    within: Fraction | None = None,
    every: Fraction | int | None = None,
    retain: int | None = None,
    retain_all: bool = False,
    unique: str | None = None,
    partition_by: Sequence[str] = (),
    key: Sequence[str] = (),
    order: Sequence[str] = (),
    clock_kind: pa.DataType | None = None,
    clock: Value | None = None,
    origin: Fraction = Fraction(0),
    at_end: Literal["flush", "drop"] = "flush",
) -> list[Lot]:
    """Return the lots of ``rows`` (by arrival position) in the order in which they come out.

    The clause as in `windowing.language.spec.Batched`. ``order``: the order columns, none for arrival; with ``within``
    the first is the clock, and ``clock_kind`` its type. ``clock``: where the clock stands at the end, in the clock
    column's own terms; default its largest value. ``origin``: of the ticks of ``within .. every``, in seconds.
    """
    assert retain_all == (within is None and retain is None)
    clock_column, stands = None, Fraction(0)
    if within is not None:
        clock_column = Clock(clock_kind, within, None if every is None else Fraction(every), origin)
        values = [*(row[order[0]] for row in rows.values()), *([] if clock is None else [clock])]
        stands = max(map(clock_column.seconds, values), default=stands)
    ranks = {pos: rank for rank, pos in enumerate(in_order(rows, order))}
    window = Window(rows, ranks, order, clock_column, stands, every, retain, unique, partition_by, at_end == "flush")
    sequences: dict[Ranked, list[int]] = defaultdict(list)
    for pos in ranks:
        sequences[ranked(rows[pos][name] for name in key)].append(pos)
    out = [pair for one in sorted(sequences) for pair in window.lots(values_of(one), sequences[one])]
    out.sort(key=lambda pair: (*window.came_out(pair[0]), pair[1].number))  # a stable sort: then by key
    return [lot for _, lot in out]


def batched_groups(lots: Iterable[Lot], rows: Mapping[int, Row], group_by: Sequence[str]) -> list[Lot]:
    """Cut lots by group, groups ascending: of each only the groups in which something came or went."""

    def group_of(pos: int) -> Ranked:
        return ranked(rows[pos][name] for name in group_by)

    def cut(lot: Lot, group: Ranked, last: bool) -> Lot:
        shown, came, went = (
            tuple(pos for pos in some if group_of(pos) == group) for some in (lot.rows, lot.entered, lot.left)
        )
        mark: Literal["window"] | None = "window" if last else None
        return replace(lot, rows=shown, entered=came, left=went, group=values_of(group), mark=mark)

    changed = [(lot, sorted({group_of(pos) for pos in (*lot.entered, *lot.left)})) for lot in lots]
    return [cut(lot, group, group == groups[-1]) for lot, groups in changed for group in groups]
