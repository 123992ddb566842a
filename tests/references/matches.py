"""Row patterns by backtracking, row at a time (semantics section 15), written from there and not from the kernels.

What a start finds is asked again behind each row that comes, and behind its limit: a way that needs a row which has
not come is neither taken nor given up. So which row or limit decides a start is what is seen, and not computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from references.tumbling import Key, Row, in_order
from wincli.windowing.kinds.matches import found as form
from wincli.windowing.language.patterns import (
    Alternation,
    Concatenation,
    FollowedBy,
    Pattern,
    Repetition,
    RowPattern,
    Symbol,
)

Taken = tuple[tuple[int, str | None], ...]
"""Rows with the symbols that they are taken as; None: any row."""
Holds = Callable[[str, int, Taken], bool]
"""Whether the condition of a symbol is true for a row, given the rows that were taken before."""


@dataclass(frozen=True)
class Way:
    """How far a way has come. ``row``: the next row. ``is_bound``: whether that row may not be passed over: it is the
    first of the match, or has ended a ``->``."""

    row: int
    taken: Taken
    is_bound: bool


Go = Callable[[Way], Taken | None]


class _NotYetError(Exception):
    """A row that has not come decides."""


@dataclass(frozen=True)
class Match:
    """A match: its rows with their symbols. ``decided``: the row that decides it and all starts before it, or
    `form.BY_LIMIT` with the instant ``limit``, or `form.AT_END`."""

    taken: Taken
    decided: int
    limit: Any = None

    @property
    def first(self) -> int:
        return self.taken[0][0]

    @property
    def last(self) -> int:
        return self.taken[-1][0]


def may_be_empty(pattern: Pattern) -> bool:
    match pattern:
        case Concatenation(parts):
            return all(map(may_be_empty, parts))
        case Alternation(parts):
            return any(map(may_be_empty, parts))
        case Repetition(of, least):
            return least == 0 or may_be_empty(of)
    return False  # a symbol takes a row, and -> at least one


def begins_with(pattern: Pattern) -> set[str | None]:
    """The symbols with which a pattern may begin."""
    match pattern:
        case Symbol(name):
            return {name}
        case Alternation(parts):
            return set().union(*map(begins_with, parts))
        case Concatenation((first, *rest)):
            found = begins_with(first)
            for part in rest:
                if not may_be_empty(first):
                    break
                first = part
                found |= begins_with(part)
            return found
        case Repetition(of) | FollowedBy(of):
            return begins_with(of)
    raise AssertionError(pattern)


def symbols_of(pattern: Pattern) -> set[str | None]:
    """The symbols of a pattern; None: it has ``.``."""
    match pattern:
        case Symbol(name):
            return {name}
        case Alternation(parts) | Concatenation(parts):
            return set().union(*map(symbols_of, parts))
        case Repetition(of) | FollowedBy(of):
            return symbols_of(of)
    raise AssertionError(pattern)


def prefers_no_row(pattern: Pattern) -> bool:
    """Whether the first choice at every start is to take no row: such a pattern is an error."""
    match pattern:
        case Concatenation(parts):
            return all(map(prefers_no_row, parts))
        case Alternation(parts):
            return prefers_no_row(parts[0])
        case Repetition(of, least, _, is_reluctant):
            return (least == 0 and is_reluctant) or prefers_no_row(of)
    return False


@dataclass(frozen=True)
class Attempt:
    """A search from one start, when the rows before ``seen`` have come.

    ``is_over``: whether no more rows come in time, as the limit has passed, or the data has ended.
    """

    holds: Holds
    first: int
    seen: int
    is_over: bool
    is_in_time: Callable[[int], bool]

    def has(self, row: int) -> bool:
        """Whether there is a row to take. Raises where only rows to come can tell."""
        if row >= self.seen and not self.is_over:
            raise _NotYetError
        return row < self.seen and self.is_in_time(row)

    def fits(self, symbol: str | None, at: Way) -> bool:
        return symbol is None or self.holds(symbol, at.row, at.taken)

    def find(self, pattern: Pattern, at: Way, go: Go) -> Taken | None:
        """What is taken by the preferred way through a pattern, and on by ``go``; None: there is none."""
        match pattern:
            case Symbol(name):
                fits = self.has(at.row) and self.fits(name, at)
                return go(Way(at.row + 1, (*at.taken, (at.row, name)), False)) if fits else None
            case Concatenation((head, *rest)):
                if not rest:
                    return self.find(head, at, go)
                behind = Concatenation(tuple(rest))
                return self.find(head, at, lambda now: self.find(behind, now, go))
            case Alternation(parts):
                ways = (self.find(part, at, go) for part in parts)
                return next((way for way in ways if way is not None), None)
            case FollowedBy():
                return self.wait(pattern, at, go)
        return self.rounds(pattern, at, go)

    def wait(self, pattern: FollowedBy, at: Way, go: Go) -> Taken | None:
        begins = begins_with(pattern.of)
        while not at.is_bound and self.has(at.row) and not any(self.fits(name, at) for name in begins):
            at = replace(at, row=at.row + 1)
        bound = replace(at, is_bound=True)
        return self.find(pattern.of, bound, lambda now: go(now) if len(now.taken) > len(bound.taken) else None)

    def rounds(self, pattern: Repetition, at: Way, go: Go) -> Taken | None:
        least, most = pattern.least, pattern.most
        if most == 0:
            return go(at)
        after = replace(pattern, least=max(0, least - 1), most=None if most is None else most - 1)

        def more(now: Way) -> Taken | None:
            is_last = least == 0 and most is None and len(now.taken) == len(at.taken)
            return go(now) if is_last else self.find(after, now, go)

        ways: list[Callable[[], Taken | None]] = [lambda: self.find(pattern.of, at, more)]
        if least == 0:
            ways.insert(0 if pattern.is_reluctant else 1, lambda: go(at))
        return next((found for found in (way() for way in ways) if found is not None), None)


@dataclass(frozen=True)
class KeyRows:
    """The rows of one key, 0 to ``size``, and where the clock of all keys stands behind them.

    ``clock``: the clock of each row; empty where there is no limit.
    """

    size: int
    holds: Holds
    clock: Sequence[Any] = ()
    limit: Any = None
    now: Any = None

    def attempt(self, pattern: Pattern, first: int, seen: int, is_over: bool) -> Taken | None:
        def is_in_time(row: int) -> bool:
            return self.limit is None or self.clock[row] < self.clock[first] + self.limit

        found = Attempt(self.holds, first, seen, is_over, is_in_time)
        return found.find(pattern, Way(first, (), True), lambda way: way.taken)

    def decide(self, pattern: Pattern, first: int) -> tuple[Taken | None, tuple[Any, ...] | None]:
        """What a start finds, and when it is decided: ``(row, 1)``, or ``(row behind the limit, 0, limit)``."""
        over = None if self.limit is None else self.clock[first] + self.limit
        for row in range(first, self.size):
            if over is not None and self.clock[row] >= over:
                return self.attempt(pattern, first, row, True), (row, 0, over)
            try:
                return self.attempt(pattern, first, row + 1, False), (row, 1)
            except _NotYetError:
                pass
        found = self.attempt(pattern, first, self.size, True)
        return found, None if over is None or self.now < over else (self.size, 0, over)

    def matches(self, pattern: Pattern, is_overlapping: bool) -> tuple[list[Match], int]:
        """All matches, and the first start that is not decided; ``size`` where there is none."""
        found: list[Match] = []
        undecided, latest, first = self.size, (0, 0), 0
        while first < self.size:
            taken, event = self.decide(pattern, first)
            if event is None:
                undecided = min(undecided, first)
            else:
                latest = max(latest, event)
            if taken and undecided < self.size:
                found.append(Match(taken, form.AT_END))
            elif taken:
                is_row = latest[1] == 1
                found.append(Match(taken, latest[0] if is_row else form.BY_LIMIT, None if is_row else latest[2]))
            first = found[-1].last + 1 if taken and not is_overlapping else first + 1
        return found, undecided


def bits_hold(pattern: RowPattern, bits: Sequence[int]) -> Holds:
    """Conditions as bits of the rows: that of symbol s is bit s."""
    number = {name: s for s, (name, _) in enumerate(pattern.conditions)}
    return lambda name, row, _: bool(int(bits[row]) >> number[name] & 1)


def find_matches(pattern: RowPattern, rows: form.Rows) -> form.Matches:
    """What `windowing.kinds.matches` shall find, in its form, where all conditions are known."""
    return find_by(pattern, rows, lambda first, stop: bits_hold(pattern, rows.symbols[first:stop]))


def find_by(pattern: RowPattern, rows: form.Rows, holds_of: Callable[[int, int], Holds]) -> form.Matches:
    """The same, where ``holds_of`` says what holds of the rows of a key from their first to their end."""
    number = {None: form.ANY_ROW} | {name: s for s, (name, _) in enumerate(pattern.conditions)}
    keys, entries, symbols, decided, limits, undecided, bounds = [], [], [], [], [], [], [0]
    for key in range(len(rows.bounds) - 1):
        first, stop = map(int, rows.bounds[key : key + 2])
        of_key = KeyRows(stop - first, holds_of(first, stop))
        if rows.limit:
            clock = [each.item() for each in rows.clock[first:stop]]
            of_key = replace(of_key, clock=clock, limit=rows.limit, now=rows.now)
        found, start = of_key.matches(pattern.pattern, pattern.is_overlapping)
        undecided.append(first + start)
        for match in found:
            keys.append(key)
            entries += [first + row for row, _ in match.taken]
            symbols += [number[name] for _, name in match.taken]
            bounds.append(len(entries))
            decided.append(match.decided if match.decided < 0 else first + match.decided)
            limits.append(0 if match.limit is None else match.limit)
    ints = (np.array(each, np.int64) for each in (keys, bounds, entries, decided, undecided))
    key_of, bound_of, row_of, decided_by, starts = ints
    limit_of = np.array(limits, rows.clock.dtype if rows.limit else np.int64)
    return form.Matches(key_of, bound_of, row_of, np.array(symbols, np.int16), decided_by, limit_of, starts)


Condition = Callable[[Sequence[Row], int, Taken], bool]
"""Whether a condition is true for a row of a key, given all its rows, and which were taken, with the row itself."""


@dataclass(frozen=True)
class Pane:
    """A match as a result. ``rows``: their positions. ``at``: the order values, or the instant of the limit."""

    key: Key
    window: int
    rows: tuple[int, ...]
    symbols: tuple[str | None, ...]
    closed_by: str
    at: Any
    pos: int | None

    @property
    def turn(self) -> tuple[Any, ...]:
        """Sorts results: a limit passes before the rows of its instant, and the end of the data comes last."""
        if self.at is None:
            return (1,)
        return (0, self.at[:1], self.closed_by == "match", self.at[1:], self.pos)


@dataclass(frozen=True)
class Night:
    """What one run of several writes, and where the rows stand behind it, all since the first run together."""

    panes: list[Pane]
    account: dict[str, int]


@dataclass(frozen=True)
class PatternJob:
    """A pattern over rows, by their positions. ``reads``: the symbols whose conditions read matched rows.

    ``unit``: seconds of a measure of the clock, the first order column.
    """

    pattern: RowPattern
    conditions: Mapping[str, Condition]
    reads: frozenset[str] = frozenset()
    key: Sequence[str] = ()
    order: Sequence[str] = ()
    unit: Fraction = field(default=Fraction(1))

    def nights(self, nights: Sequence[Mapping[int, Row]], at_end: Literal["flush", "hold", "drop"]) -> list[Night]:
        """Each night goes on from the one before; ``at_end`` is that of the last, and ``hold`` that of the others."""
        found: list[Night] = []
        shown: dict[Key, int] = {}
        rows: dict[int, Row] = {}
        for number, more in enumerate(nights):
            rows |= more
            found.append(self.night(rows, shown, at_end if number + 1 == len(nights) else "hold"))
        return found

    def night(self, rows: Mapping[int, Row], shown: dict[Key, int], at_end: str) -> Night:
        keys: dict[Key, list[int]] = {}
        for pos in in_order(rows, self.order):
            keys.setdefault(tuple(rows[pos][name] for name in self.key), []).append(pos)
        within = self.pattern.within
        limit = None if within is None else within / self.unit
        now = max((rows[pos][self.order[0]] for pos in rows), default=None) if limit is not None else None
        panes, account = [], dict.fromkeys(("windowed", "held", "dropped_at_end"), 0)
        for key, places in keys.items():
            found, start = self.of_key([rows[pos] for pos in places], limit, now)
            out = [match for match in found if match.decided != form.AT_END or at_end == "flush"]
            taken = {row for match in out for row, _ in match.taken}
            others = {row for match in found for row, _ in match.taken} - taken
            account["windowed"] += len(taken)
            if at_end == "hold":
                is_possible = self.possible([rows[pos] for pos in places])
                account["held"] += sum(is_possible[row] for row in range(start, len(places)) if row not in taken)
            if at_end == "drop":
                account["dropped_at_end"] += len(others)
            before = shown.get(key, 0)
            panes += [self.pane(key, before + n, match, places, rows) for n, match in enumerate(out[before:])]
            shown[key] = len(out)
        panes.sort(key=lambda pane: (*pane.turn, pane.window, pane.key))
        return Night(panes, {**account, "filtered": len(rows) - sum(account.values())})

    def of_key(self, rows: Sequence[Row], limit: Any, now: Any) -> tuple[list[Match], int]:
        def holds(name: str, row: int, taken: Taken) -> bool:
            return self.conditions[name](rows, row, (*taken, (row, name)))

        clock = [] if limit is None else [row[self.order[0]] for row in rows]
        return KeyRows(len(rows), holds, clock, limit, now).matches(self.pattern.pattern, self.pattern.is_overlapping)

    def possible(self, rows: Sequence[Row]) -> list[bool]:
        """For each row of a key: whether a symbol is true for it or may be so, or any row may be taken."""
        if self.reads or None in symbols_of(self.pattern.pattern):
            return [True] * len(rows)
        return [
            any(holds(rows, row, ((row, name),)) for name, holds in self.conditions.items()) for row in range(len(rows))
        ]

    def pane(self, key: Key, window: int, match: Match, places: Sequence[int], rows: Mapping[int, Row]) -> Pane:
        shown = tuple(places[row] for row, _ in match.taken), tuple(name for _, name in match.taken)
        if match.decided == form.AT_END:
            return Pane(key, window, *shown, "end", None, None)
        if match.decided == form.BY_LIMIT:
            return Pane(key, window, *shown, "within", (match.limit,), -1)
        pos = places[match.decided]
        return Pane(key, window, *shown, "match", tuple(rows[pos][name] for name in self.order), pos)
