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
    Time,
    Value,
    as_value,
    in_order,
    nearest,
    ranked,
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
class Window:
    """A batched window. ``ranks``: the total order of ``rows``; ``ticks``: those of ``every`` next to ``within``, else
    a grid without meaning; ``stands``: where the clock does at the end.
    """

    rows: Mapping[int, Row]
    ranks: Mapping[int, int]
    order: Sequence[str]
    ticks: Time
    stands: Fraction
    within: Fraction | None
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
        inside = [pos for pos in entered if self.within is None or self.leaves(pos) > self.instant(now)]
        newer = [[self.part(other) for other in inside[at + 1 :]] for at in range(len(inside))]
        few = [self.retain is None or newer[at].count(self.part(pos)) < self.retain for at, pos in enumerate(inside)]
        return [pos for pos, has_place in zip(inside, few, strict=True) if has_place]

    def hidden(self, there: Sequence[int]) -> set[int]:
        """Of the rows in the window, oldest first: those with a newer one of their part and value among them."""
        if self.unique is None:
            return set()
        value = {pos: self.part(pos) + ranked([self.rows[pos][self.unique]]) for pos in there}
        newest = {value[pos]: pos for pos in there}
        return {pos for pos in there if newest[value[pos]] != pos}

    def part(self, pos: int) -> Ranked:
        return ranked(self.rows[pos][name] for name in self.partition_by)

    def time(self, pos: int) -> Value:
        return self.rows[pos][self.order[0]]

    def instant(self, exact: Fraction) -> Fraction:
        return nearest(exact, self.ticks.kind)

    def leaves(self, pos: int) -> Fraction:
        """The first instant at which a row is too old."""
        assert self.within is not None
        return self.instant(self.ticks.clock(self.time(pos)) + self.within)

    # When it may change.

    def moments(self, sequence: Sequence[int]) -> Iterator[Moment]:
        if self.within is None:
            yield from self.arrivals(sequence) if self.every is None else self.full_lots(sequence)
            return
        for moment in self.with_expiries(sequence) if self.every is None else self.at_ticks(sequence):
            if self.instant(moment.now) <= self.stands:
                yield moment
            elif self.flush:
                yield replace(moment, reason="end")

    def arrivals(self, sequence: Sequence[int]) -> list[Moment]:
        timed = self.within is not None
        nows = {pos: self.ticks.clock(self.time(pos)) if timed else Fraction(0) for pos in sequence}
        return [Moment("trigger", pos, nows[pos], (pos,)) for pos in sequence]

    def with_expiries(self, sequence: Sequence[int]) -> list[Moment]:
        """Arrivals and expiries; those of one instant are one moment, before the arrivals of that instant."""
        expiries = [Moment("expiry", -1, instant) for instant in {self.leaves(pos) for pos in sequence}]
        return sorted([*expiries, *self.arrivals(sequence)], key=lambda moment: moment.now)  # a stable sort

    def at_ticks(self, sequence: Sequence[int]) -> Iterator[Moment]:
        """The ticks at which rows may come or go, up to the first one after the clock."""
        comes = {pos: self.first_tick(self.ticks.clock(self.time(pos))) for pos in sequence}
        goes = {pos: self.first_tick(self.leaves(pos)) for pos in sequence}
        last = self.ticks.tick_after(self.stands)
        for k in sorted(k for k in {*comes.values(), *goes.values()} if k <= last):
            entering = tuple(pos for pos in sequence if comes[pos] == k)
            yield Moment("batch", -1, self.ticks.exact(k), entering)

    def first_tick(self, instant: Fraction) -> int:
        """The first tick at or after an instant."""
        k = self.ticks.tick_after(instant)
        return k - 1 if self.ticks.tick(k - 1) == instant else k

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

    def result_value(self, exact: Fraction) -> Value:
        assert self.within is not None
        grid = () if self.every is None else (self.ticks.length, self.ticks.origin)
        return as_value(exact, type_of_ticks(self.ticks.kind, self.within, *grid))

    def at(self, moment: Moment) -> tuple[Value, ...] | None:
        if moment.pos is None or not self.order:
            return None
        first = self.time(moment.pos) if self.within is None else self.result_value(self.instant(moment.now))
        return (first, *(None if moment.pos < 0 else self.rows[moment.pos][name] for name in self.order[1:]))

    def bounds(self, visible: Sequence[int], moment: Moment) -> tuple[Value, Value]:
        if self.within is not None:
            return self.result_value(moment.now - self.within), self.result_value(moment.now)
        return (self.time(visible[0]), self.time(visible[-1])) if self.order else (None, None)

    def came_out(self, moment: Moment) -> tuple[bool, Fraction, int]:
        """What moments of all keys sort by: the end last, the clock's doing before the rows of its instant."""
        if moment.pos is None:
            return True, Fraction(0), -1
        return False, self.instant(moment.now), self.ranks[moment.pos] if moment.pos >= 0 else -1


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
    ticks = Time(Fraction(every or 1), clock_kind or pa.int64(), origin)
    values = [] if within is None else [row[order[0]] for row in rows.values()]
    stands = max((ticks.clock(value) for value in [*values, *([] if clock is None else [clock])]), default=Fraction(0))
    ranks = {pos: rank for rank, pos in enumerate(in_order(rows, order))}
    clause = within, every, retain, unique, partition_by
    window = Window(rows, ranks, order, ticks, stands, *clause, at_end == "flush")
    sequences: dict[Ranked, list[int]] = defaultdict(list)
    for pos in ranks:
        sequences[ranked(rows[pos][name] for name in key)].append(pos)
    out = [pair for one in sorted(sequences) for pair in window.lots(values_of(one), sequences[one])]
    out.sort(key=lambda pair: (*window.came_out(pair[0]), pair[1].number))  # a stable sort: then by key
    return [lot for _, lot in out]


def batched_groups(lots: Iterable[Lot], rows: Mapping[int, Row], group_by: Sequence[str]) -> list[Lot]:
    """Cut lots by group, groups ascending: of each only the groups in which something came or went."""
    found = []
    for lot in lots:
        groups = {pos: ranked(rows[pos][name] for name in group_by) for pos in (*lot.rows, *lot.entered, *lot.left)}
        changed = sorted({groups[pos] for pos in (*lot.entered, *lot.left)})
        for group in changed:
            rows_, came, went = (
                tuple(pos for pos in some if groups[pos] == group) for some in (lot.rows, lot.entered, lot.left)
            )
            mark: Literal["window"] | None = "window" if group == changed[-1] else None
            found.append(replace(lot, rows=rows_, entered=came, left=went, group=values_of(group), mark=mark))
    return found
