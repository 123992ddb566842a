"""Joins over windows once more, row at a time (semantics section 16): every pair is looked at, one after the other.

    right  1 2 3   5       9        around(2, 1): l at 4 meets 2 3 5; complete when the clock is past 5
    left   1     4       8          count(1) join count(1): l at 4 meets 3, the row at 5 meets 4

Rows of both sides are `Event`s of one order. A window gives `Lot`s: pairs of events, where one of both may be missing,
and why and when they come out. Numbers are per key, in the order in which lots come out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from references import batched
from references.tumbling import (
    Count,
    Delta,
    Pane,
    Row,
    Time,
    Value,
    is_nan,
    nearest,
    ranked,
    rises_by_more,
    seconds_per_unit,
)

Night: TypeAlias = tuple[Sequence[Row], Sequence[Row] | None]
"""The rows of both inputs of a unit; None: the right side is the left input itself."""
Emit = Literal["entered", "left", "rows", "aggregates"]


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """A row of the one order, with its columns on each side that it is on. ``at``: its clock, exact seconds."""

    pos: int
    key: tuple[Value, ...]
    order: tuple[Value, ...]
    at: Fraction
    left: Row | None
    right: Row | None

    def __lt__(self, other: Event) -> bool:
        return (self.order, self.pos) < (other.order, other.pos)

    @property
    def meets_nobody(self) -> bool:
        return any(value is None or is_nan(value) for value in self.key)


Paired: TypeAlias = tuple[Event | None, Event | None]


@dataclass(frozen=True, slots=True)
class Lot:
    """What comes out at once for a key. ``tags``: under ``at`` the offset of each pair, else empty.

    ``at``: the instant, exact seconds; None at the end. ``turn``: 0 before the rows of the instant, 1 with its row, 2
    behind them. ``start``, ``end``: exact seconds, None where nothing is left to have bounds.
    """

    key: tuple[Value, ...]
    pairs: tuple[Paired, ...]
    closed_by: str
    at: Fraction | None
    turn: int | None
    start: Fraction | None
    end: Fraction | None
    number: int = -1
    tags: tuple[Fraction, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Join:
    """The request. ``keys``, ``orders``: names on the left and on the right. Conditions are true or not.

    ``left_columns``, ``right_columns``: those of the inputs.
    ``kind``: the type of the clock. ``by_arrival``: whether rows stand as they arrive, though they have a clock.
    """

    name: str
    orders: Sequence[tuple[str, str]]
    keys: Sequence[tuple[str, str]] = ()
    how: str = "inner"
    strict: bool = False
    left_where: Callable[[Row], Any] = lambda _: True
    right_where: Callable[[Row], Any] = lambda _: True
    match: Callable[[Row], Any] = lambda _: True
    left_columns: Sequence[str] = ()
    right_columns: Sequence[str] = ()
    kind: pa.DataType = field(default_factory=pa.int64)
    by_arrival: bool = False
    at_end: str = "flush"

    @property
    def shows_left(self) -> bool:
        return self.how in {"left", "full", "anti"}

    @property
    def shows_right(self) -> bool:
        return self.how in {"right", "full"}

    def may_be_alone(self, left: Row | None, right: Row | None) -> bool:
        """Whether a row that is on these sides comes out if it has no partner."""
        return (self.shows_left and left is not None) or (self.shows_right and right is not None)

    def row(self, pair: Paired) -> Row:
        """A pair as a row of the result; keys are those of the side that is there, for ``union`` orders, too."""
        left, right = pair
        one = {name: left.left[name] if left and left.left else None for name in self.left_columns}
        other = {
            f"{self.name}_{name}": right.right[name] if right and right.right else None for name in self.right_columns
        }
        there = left or right
        assert there is not None
        shared = dict(zip([name for name, _ in self.keys], there.key, strict=True))
        if self.how == "union":
            shared |= dict(zip([name for name, _ in self.orders], there.order, strict=True))
            shared["_side"] = "left" if left else "right"
        return one | other | shared

    def instant(self, exact: Fraction) -> Fraction:
        return nearest(exact, self.kind)


@dataclass(frozen=True)
class Sides:
    """The one order of both sides. ``rejected``: why rows are in none, by position; ``filtered``: positions.

    ``of_no_key``: rows that are rejected for their key, which move the watermark of event time.
    """

    join: Join
    events: Sequence[Event]
    stands: Fraction
    rejected: Mapping[int, str]
    filtered: Sequence[int]
    of_no_key: Sequence[Event]

    def of_key(self) -> Iterator[tuple[list[Event], list[Event]]]:
        """The left and the right rows of each key. A key that equals nothing has rows one by one."""
        keys: dict[Any, list[Event]] = defaultdict(list)
        for event in self.events:
            keys[(event.pos,) if event.meets_nobody else (-1, *ranked(event.key))].append(event)
        for events in keys.values():
            yield [e for e in events if e.left is not None], [e for e in events if e.right is not None]

    def is_pair(self, left: Event, right: Event) -> bool:
        return not left.meets_nobody and self.join.match(self.join.row((left, right))) is True

    def numbered(
        self, lots: Iterable[tuple[Any, Lot]], of_all: Callable[[Any, Lot], Any] = lambda cause, _: cause
    ) -> list[Lot]:
        """The lots in the order in which they come out, with their numbers.

        The first of each two says the order of a key. ``of_all``: what counts among keys; then numbers and keys do.
        """
        numbers: Counter[Any] = Counter()
        found = []
        for cause, lot in sorted(lots, key=lambda one: one[0]):
            if self.join.at_end == "flush" or lot.closed_by != "end":
                key = ranked(lot.key)
                found.append(((of_all(cause, lot), numbers[key], key), replace(lot, number=numbers[key])))
                numbers[key] += 1
        return [lot for _, lot in sorted(found, key=lambda one: one[0])]


def sides(nights: Sequence[Night], join: Join, late: Literal["reject", "redo"] = "reject") -> Sides:
    """The one order. Rows of a night arrive right before left (``strict``: left first), or in one log."""
    events, rejected, filtered, of_no_key = list[Event](), dict[int, str](), list[int](), list[Event]()
    pos = 0
    stands: Fraction | None = None
    for left, right in nights:
        one = [(row, None) for row in left] if right is not None else [(row, row) for row in left]
        other = [(None, row) for row in right or ()]
        limit = stands
        for a, b in [*one, *other] if join.strict else [*other, *one]:
            here = a if a is not None and join.left_where(a) is True else None
            there = b if b is not None and join.right_where(b) is True else None
            event = _event(pos, here, there, join)
            if event is None:
                filtered.append(pos)
            elif isinstance(event, str):
                rejected[pos] = event
            elif event.meets_nobody and not join.may_be_alone(here, there):
                of_no_key.append(event)
                rejected[pos] = "null_key"  # a row that is rejected does not move the clock
            elif limit is not None and event.at < limit and late == "reject" and not join.by_arrival:
                rejected[pos] = "late"  # whatever its key
            else:
                events.append(event)
                stands = event.at if stands is None else max(stands, event.at)
            pos += 1
    return Sides(join, sorted(events), stands or Fraction(0), rejected, filtered, of_no_key)


def _event(pos: int, left: Row | None, right: Row | None, join: Join) -> Event | str | None:
    """The row at a position; why it can be in no window; None: no side wants it."""
    if left is None and right is None:
        return None
    here = 0 if left is not None else 1
    row = left if left is not None else right
    assert row is not None
    order = tuple(row[names[here]] for names in join.orders)
    key = tuple(row[names[here]] for names in join.keys)
    is_missing = any(value is None or is_nan(value) for value in order)
    if is_missing and join.by_arrival and None in key and not join.may_be_alone(left, right):
        return "null_key"  # it comes before what the window asks for, and behind what orders
    if any(value is None for value in order):
        return "null_attribute" if join.by_arrival else "null_order"
    if any(is_nan(value) for value in order):
        return "nan_attribute" if join.by_arrival else "null_order"
    clock = Fraction(order[0]) * seconds_per_unit(join.kind)
    return Event(pos, key, () if join.by_arrival else order, clock, left, right)


def without_late(both: Sides, late: Iterable[int]) -> Sides:
    """Both sides without rows that come too late by the watermark, whatever their key."""
    gone = dict.fromkeys(late, "late")
    return replace(both, events=[e for e in both.events if e.pos not in gone], rejected={**gone, **both.rejected})


# --- around and at ------------------------------------------------------------------------------------------------


def around(both: Sides, before: Fraction, after: Fraction, prevailing: bool = False) -> list[Lot]:
    """One lot for each left row that the join shows, and for each right row without a partner."""
    join, lots = both.join, list[tuple[Any, Lot]]()
    for lefts, rights in both.of_key():
        had: set[int] = set()
        for a in lefts:
            start, end = join.instant(a.at - before), join.instant(a.at + after)
            seen = [b for b in rights if start <= b.at <= end]
            older = [b for b in rights if b.at <= start]
            if prevailing and older and older[-1] not in seen:
                seen.insert(0, older[-1])
            partners = [b for b in seen if both.is_pair(a, b)]
            had |= {b.pos for b in partners}
            shown = _of_left(join, a, partners)
            if shown:
                lots.append(_on_time(both, a, shown, max(after, Fraction(0)), start, end, 0))
        for b in rights:
            if join.shows_right and b.pos not in had:
                bounds = join.instant(b.at - after), join.instant(b.at + before)
                lots.append(_on_time(both, b, [(None, b)], max(before, Fraction(0)), *bounds, 1))
    return both.numbered(lots)


def at(both: Sides, offsets: Sequence[Fraction], within: Fraction | None = None) -> list[Lot]:
    """One lot for each left row with all its offsets; inner: with those that have a right row."""
    join, lots = both.join, list[tuple[Any, Lot]]()
    for lefts, rights in both.of_key():
        for a in lefts:
            found: list[tuple[Fraction, Event | None]] = []
            for offset in offsets:
                instant = join.instant(a.at + offset)
                older = [b for b in rights if b.at < instant or (b.at == instant and not join.strict)]
                newest = older[-1] if older else None
                if newest and within is not None and newest.at < join.instant(instant - within):
                    newest = None
                found.append((offset, newest if newest and both.is_pair(a, newest) else None))
            if join.how == "inner":
                found = [(offset, b) for offset, b in found if b]
            if found:
                bounds = join.instant(a.at + min(offsets)), join.instant(a.at + max(offsets))
                cause, lot = _on_time(both, a, [(a, b) for _, b in found], max(*offsets, Fraction(0)), *bounds, 0)
                lots.append((cause, replace(lot, tags=tuple(offset for offset, _ in found))))
    return both.numbered(lots)


def _of_left(join: Join, left: Event, partners: Sequence[Event]) -> list[Paired]:
    """What comes out for a left row, now that all its partners are known."""
    if join.how in {"semi", "anti"}:
        return [(left, None)] if (join.how == "semi") == bool(partners) else []
    return [(left, b) for b in partners] or ([(left, None)] if join.shows_left else [])


def _on_time(
    both: Sides, event: Event, pairs: Sequence[Paired], wait: Fraction, start: Fraction, end: Fraction, side: int
) -> tuple[Any, Lot]:
    instant = both.join.instant(event.at + wait)
    told = ("time", instant, 2) if instant < both.stands else ("end", None, None)
    return (instant, side, event), Lot(event.key, tuple(pairs), *told, start, end)


# --- a window on each side ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Clause:
    """A batched window: section 6."""

    within: Fraction | None = None
    every: Fraction | int | None = None
    retain: int | None = None
    unique: str | None = None
    partition_by: Sequence[str] = ()
    origin: Fraction = Fraction(0)


Phase: TypeAlias = tuple[bool, Fraction, int, int]
"""The end last; the instant; expiries of ``within``, rows, ticks, rows that ``time`` lets go; the rank of a row."""
TURNS = (0, 1, 2, 2)


class SlidingSide:
    """What one side of a key shows under a sliding eviction."""

    def __init__(self, both: Sides, policy: Count | Delta | Time, rows: Sequence[Event], right: bool) -> None:
        self.both, self.policy, self.rows, self.right = both, policy, rows, right
        self.shown: list[Event] = []
        self.holds_nothing = policy == Count(0)

    def moments(self, ranks: Mapping[int, int]) -> Iterator[tuple[Phase, str, Any]]:
        for x in self.rows:
            yield (False, x.at, 1, ranks[x.pos]), "trigger", x
            goes = self.both.join.instant(x.at + self.policy.length) if isinstance(self.policy, Time) else None
            if goes is not None and goes < self.both.stands:
                yield (False, goes, 3, -1), "expiry", x
            else:
                yield (True, Fraction(0), 0, ranks[x.pos]), "end", x

    def happen(self, reason: str, x: Event) -> None:
        if reason != "trigger":
            self.shown = [y for y in self.shown if y is not x]
            return
        match self.policy:
            case Count(n):
                self.shown = [*self.shown, x][-n:] if n else []
            case Delta(name, amount, kind):
                self.shown = [*(y for y in self.shown if not self.outruns(x, y, name, amount, kind)), x]
            case Time():
                self.shown = [*self.shown, x]

    def outruns(self, new: Event, old: Event, name: str, amount: Any, kind: Any) -> bool:
        one, other = (new.right, old.right) if self.right else (new.left, old.left)
        assert one is not None
        assert other is not None
        return rises_by_more(one[name], other[name], amount, kind)


class BatchedSide:
    """What one side of a key shows under a batched window: asked of `references.batched`."""

    holds_nothing = False

    def __init__(self, both: Sides, clause: Clause, rows: Sequence[Event], right: bool) -> None:
        self.rows = {x.pos: x for x in rows}
        self.clause = clause
        columns = {x.pos: x.right if right else x.left for x in rows}
        name = both.join.orders[0][right]
        ticks = Time(Fraction(clause.every or 1), both.join.kind, clause.origin)
        told = clause.within, clause.every, clause.retain, clause.unique, clause.partition_by
        ranks = {x.pos: rank for rank, x in enumerate(rows)}
        flush = both.join.at_end == "flush"
        self.at_end = both.join.at_end
        self.window = batched.Window(columns, ranks, [name], ticks, both.stands, *told, flush)  # type: ignore[arg-type]
        self.entered: list[int] = []
        self.hidden: set[int] = set()
        self.shown: list[Event] = []

    def moments(self, ranks: Mapping[int, int]) -> Iterator[tuple[Phase, str, Any]]:
        """Ticks come behind the rows of their instant: with ``hold`` one where the clock stands has not come yet."""
        holds = self.at_end == "hold"
        for moment in self.window.moments(list(self.rows)):
            reason = moment.reason
            stands = self.window.instant(moment.now) == self.window.stands
            if reason == "batch" and moment.pos == -1 and stands and holds:
                return
            rank = ranks[moment.pos] if moment.pos is not None and moment.pos >= 0 else -1
            at = self.rows[moment.pos].at if rank >= 0 and moment.pos is not None else self.window.instant(moment.now)
            phase = 1 if rank >= 0 else 2 if self.clause.every is not None and self.clause.within is not None else 0
            yield (reason == "end", at, phase, rank), reason, moment

    def happen(self, _: str, moment: batched.Moment) -> None:
        self.entered = sorted([*self.entered, *moment.entering], key=self.window.ranks.__getitem__)
        there = self.window.content(self.entered, moment.now)
        self.hidden |= self.window.hidden(there)
        self.shown = [self.rows[pos] for pos in there if pos not in self.hidden]


Side: TypeAlias = "Count | Delta | Time | Clause"


def side_windows(both: Sides, left: Side, right: Side, emit: Emit = "entered") -> list[Lot]:
    """The lots of all keys of ``SIDE join SIDE``."""
    ranks = {event.pos: rank for rank, event in enumerate(both.events)}
    lots = list[tuple[Any, Lot]]()
    for lefts, rights in both.of_key():
        if (lefts or rights)[0].meets_nobody:
            lots += [_at_once(both, event, ranks[event.pos]) for event in lefts or rights]
            continue
        windows = [
            (BatchedSide if isinstance(clause, Clause) else SlidingSide)(both, clause, rows, right=bool(place))  # type: ignore[arg-type]
            for place, (clause, rows) in enumerate([(left, lefts), (right, rights)])
        ]
        lots += _of_key(both, (lefts or rights)[0].key, windows, emit, ranks)
    return both.numbered(lots, lambda phase, lot: (True, Fraction(0), 0, 0) if lot.at is None else (False, *phase[1:]))


def _at_once(both: Sides, event: Event, rank: int) -> tuple[Any, Lot]:
    """A row that can have no partner: it is in no window."""
    pair = (event, None) if event.left is not None and both.join.shows_left else (None, event)
    at_ = None if both.join.by_arrival else event.at
    return (False, at_ or Fraction(0), 1, rank), Lot(event.key, (pair,), "trigger", at_, 1, event.at, event.at)


def _of_key(
    both: Sides, key: tuple[Value, ...], windows: Sequence[Any], emit: Emit, ranks: Mapping[int, int]
) -> Iterator[tuple[Any, Lot]]:
    """The lots of a key, each with its place in the order in which lots come out."""
    moments: dict[Phase, list[tuple[int, str, Any]]] = defaultdict(list)
    for place, window in enumerate(windows):
        for phase, reason, what in window.moments(ranks):
            moments[phase].append((place, reason, what))
    # the end brings out a lot that is not full first, so what the clock does then is behind the end
    ends_lots = any(
        isinstance(window, BatchedSide) and window.clause.every is not None and window.clause.within is None
        for window in windows
    )
    cache: dict[tuple[int, int], bool] = {}
    had: tuple[set[int], set[int]] = set(), set()

    def product(lefts: Sequence[Event], rights: Sequence[Event]) -> list[tuple[Event, Event]]:
        for a in lefts:
            for b in rights:
                if (a.pos, b.pos) not in cache:
                    cache[a.pos, b.pos] = both.is_pair(a, b)
        return [(a, b) for a in sorted(lefts) for b in sorted(rights) if cache[a.pos, b.pos]]

    for phase in sorted(moments):
        shown = [list(window.shown) for window in windows]
        old = product(*shown)
        met: list[tuple[Event, Event]] = []
        entering: list[list[Event]] = [[], []]
        for place, reason, what in moments[phase]:
            if reason == "trigger" and isinstance(what, Event):
                entering[place].append(what)
                if windows[place].holds_nothing:
                    met += product(*([what], shown[1]) if place == 0 else (shown[0], [what]))
        for place, reason, what in moments[phase]:
            windows[place].happen(reason, what)
        now = product(windows[0].shown, windows[1].shown)
        came = [pair for pair in now if pair not in old]
        entered = sorted({*met, *came}, key=lambda pair: (pair[0], pair[1]))
        left = [pair for pair in old if pair not in now]
        gone = [
            [x for x in sorted({*shown[place], *entering[place]}) if x not in windows[place].shown] for place in (0, 1)
        ]
        pairs: list[Paired] = []
        if emit == "entered":
            pairs = _entered(both.join, entered, gone, had)
        elif emit == "left":
            pairs = list(left)
        elif came or left:
            pairs = list(now)
        if pairs or (emit == "aggregates" and (came or left)):
            times = [event.at for pair in pairs for event in pair if event]
            bounds = (min(times), max(times)) if times else (None, None)
            reasons = {reason for _, reason, _ in moments[phase]}
            reason = "batch" if "batch" in reasons else reasons.pop()
            told = phase[1], TURNS[phase[2]]
            by_clock = any(isinstance(what, batched.Moment) and what.pos == -1 for _, _, what in moments[phase])
            if phase[0] and (ends_lots or not by_clock):
                told = (None, None)  # but rows that grow too old have an instant, though no row has come so late
            yield phase, Lot(key, tuple(pairs), reason, *told, *bounds)


def _entered(
    join: Join, entered: Sequence[tuple[Event, Event]], gone: Sequence[Sequence[Event]], had: tuple[set[int], set[int]]
) -> list[Paired]:
    """New pairs, then the rows that leave without ever having had a partner. ``had``: who has, brought up to date."""
    found: list[Paired] = list(entered)
    if join.how == "semi":
        found = [(a, None) for a in sorted({a for a, _ in entered}) if a.pos not in had[0]]
    elif join.how == "anti":
        found = []
    had[0].update(a.pos for a, _ in entered)
    had[1].update(b.pos for _, b in entered)
    if join.shows_left:
        found += [(a, None) for a in gone[0] if a.pos not in had[0]]
    if join.shows_right:
        found += [(None, b) for b in gone[1] if b.pos not in had[1]]
    return found


# --- both sides in one window -------------------------------------------------------------------------------------


def one_window(both: Sides, panes: Sequence[Pane]) -> list[Lot]:
    """The lots of panes of one input over the one order, by position: products of both sides, or (union) rows.

    ``at``, ``start`` and ``end`` are what the pane says, in the clock's own units.
    """
    join = both.join
    events = {event.pos: event for event in both.events}
    ranks = {event.pos: rank for rank, event in enumerate(sorted([*both.events, *both.of_no_key]))}
    found: list[tuple[Phase, Lot]] = []
    for pane in panes:
        rows = [events[pos] for pos in pane.rows]
        pairs = _product(both, rows)
        if join.how == "union":
            pairs = [(x, None) if x.left is not None else (None, x) for x in rows]
        if pairs:
            is_end, of_row = pane.pos is None, pane.pos is not None and pane.pos >= 0
            at_ = pane.at[0] if pane.at else None
            cause = is_end, at_ or Fraction(0), int(of_row), ranks[pane.pos] if of_row else -1
            lot = Lot(pane.key or (), tuple(pairs), pane.closed_by or "", at_, int(of_row), pane.start, pane.end)
            found.append((cause, lot))
    alone = [_at_once(both, event, ranks[event.pos]) for event in both.events if event.meets_nobody]
    return both.numbered([*found, *alone])


def _product(both: Sides, rows: Sequence[Event]) -> list[Paired]:
    lefts, rights = [x for x in rows if x.left is not None], [x for x in rows if x.right is not None]
    pairs: list[Paired] = []
    had: set[int] = set()
    for a in lefts:
        partners = [b for b in rights if both.is_pair(a, b)]
        had |= {b.pos for b in partners}
        pairs += _of_left(both.join, a, partners)
    return pairs + [(None, b) for b in rights if both.join.shows_right and b.pos not in had]


def merged_rows(both: Sides, all_keys: bool = False) -> dict[int, Row]:
    """The rows that a window of one input sees, by position: columns of the other side are null, and ``_side``.

    The order columns and the key are those of the left, with the right's values in their place. ``all_keys``: whether
    rows whose key equals nothing are there, too.
    """
    rows = {}
    for event in sorted([*both.events, *both.of_no_key], key=lambda one: one.pos):
        if all_keys or not event.meets_nobody:
            row = both.join.row((event if event.left is not None else None, event if event.right is not None else None))
            there, right = (event.left, False) if event.left is not None else (event.right, True)
            assert there is not None
            named = {names[0]: there[names[right]] for names in both.join.orders}
            rows[event.pos] = {**row, **named, "_side": "left" if event.left is not None else "right"}
    return rows
