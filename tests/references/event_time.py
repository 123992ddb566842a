"""Event-time panes once more, one event at a time (section 5).

intervalDuration(10), creationPeriod(5), discardAge(15); a watermark at 110, then a late row

95 |---- 100 -----| 105
       100 |-- 107 -- 108 --| 110              107 and 100 at the watermark 110: on_time
             105 |------ 110 ------| 115       108 comes later: 100..110 again, late
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import pyarrow as pa

from references.tumbling import (
    Key,
    Pane,
    Row,
    Value,
    Windows,
    as_value,
    in_order,
    nearest,
    seconds_per_unit,
    type_of_ticks,
)

Stamp = tuple[tuple[Value, ...] | None, int | None]  # the order values and the position of a cause


@dataclass(frozen=True, slots=True)
class Grid:
    """Pane k is ``[start(k), end(k))`` in seconds. What is computed on a float clock is the nearest float."""

    duration: Fraction
    period: Fraction
    offset: Fraction
    kind: pa.DataType

    def start(self, k: int) -> Fraction:
        return nearest(k * self.period + self.offset % self.period, self.kind)

    def end(self, k: int) -> Fraction:
        return nearest(k * self.period + self.offset % self.period + self.duration, self.kind)

    def panes_of(self, now: Fraction) -> list[int]:
        last = math.floor((now - self.offset % self.period) / self.period) + 1
        first = last - math.ceil(self.duration / self.period) - 2
        return [k for k in range(first, last + 1) if self.start(k) <= now < self.end(k)]

    def result_value(self, seconds: Fraction) -> Value:
        """A bound as the result tells it."""
        return as_value(seconds, type_of_ticks(self.kind, self.duration, self.period, self.offset))


@dataclass(slots=True)
class Content:
    """The pane of one key: its rows, whether it has some to show, whether one was late, and its outputs so far."""

    rows: list[int] = field(default_factory=list)
    fresh: bool = False
    late: bool = False
    outputs: int = 0


@dataclass(kw_only=True)
class Intervals(Windows):
    """The event-time panes of all keys."""

    grid: Grid
    age: Fraction
    event_time: str
    lag: Fraction = Fraction(0)
    min_gap: Fraction = Fraction(0)
    contents: dict[tuple[int, Key], Content] = field(default_factory=dict)
    max_ahead: Fraction | None = None
    highest: Fraction | None = None
    votes: list[Fraction] = field(default_factory=list)
    count: int = 0
    watermark: Fraction | None = None
    late: list[int] = field(default_factory=list)
    filtered: list[int] = field(default_factory=list)

    def on_row(self, pos: int) -> None:
        key, now = self.key_of(pos), self.event(pos)
        if self.watermark is not None and now < nearest(self.watermark - self.age, self.grid.kind):
            self.late.append(pos)
            return
        if None in key:
            return
        found = self.grid.panes_of(now)
        for k in found:
            content = self.contents.setdefault((k, key), Content())
            content.rows.append(pos)
            content.fresh = True
            content.late |= self.watermark is not None and self.watermark >= self.grid.end(k)
        if not found:
            self.filtered.append(pos)

    def follow(self, pos: int) -> None:
        """Let a row raise the watermark, whatever became of it."""
        if not self.believes(self.event(pos)):
            return
        risen = nearest(self.highest - self.lag, self.grid.kind)
        if self.watermark is None or risen >= nearest(self.watermark + self.min_gap, self.grid.kind):
            self.on_watermark(risen, self.cause(pos))

    def believes(self, now: Fraction) -> bool:
        """Let a row raise the latest event time, or vote (section 19); return whether there is one."""
        kind = self.grid.kind
        if self.max_ahead is None:
            self.highest = now if self.highest is None else max(self.highest, now)
        elif self.highest is None or now > nearest(self.highest + nearest(self.max_ahead, kind), kind):
            self.votes.append(now)
            if self.count == 9:
                self.highest, self.count, self.votes = min(self.votes), 0, []
            else:
                self.count += 1
        else:
            self.highest, self.count = max(self.highest, now), max(0, self.count - 1)
            self.votes = self.votes if self.count else []
        return self.highest is not None

    def on_watermark(self, seconds: Fraction, stamp: Stamp) -> None:
        if self.watermark is not None and seconds <= self.watermark:
            return
        self.watermark = seconds
        for k, key in sorted(self.contents):
            if self.grid.end(k) <= seconds and self.contents[k, key].fresh:
                self.bring_out(k, key, "late" if self.contents[k, key].late else "watermark", stamp)

    def on_end(self) -> None:
        for k, key in sorted(self.contents):
            if self.contents[k, key].fresh:
                self.bring_out(k, key, "end", (None, None))

    def bring_out(self, k: int, key: Key, reason: str, stamp: Stamp) -> None:
        content = self.contents[k, key]
        start, end = self.grid.result_value(self.grid.start(k)), self.grid.result_value(self.grid.end(k))
        timing: Literal["on_time", "late"] = "late" if content.late else "on_time"
        self.show(key, content.rows, reason, *stamp, start, end, timing=timing, index=content.outputs)
        content.outputs += 1
        content.fresh = False

    def event(self, pos: int) -> Fraction:
        return Fraction(self.rows[pos][self.event_time]) * seconds_per_unit(self.grid.kind)

    def cause(self, pos: int) -> Stamp:
        return self.stamp(pos) if pos >= 0 else None, pos


def intervals(
    rows: Mapping[int, Row],
    duration: Fraction,
    period: Fraction,
    age: Fraction,
    offset: Fraction,
    *,
    kind: pa.DataType,
    watermarks: Iterable[tuple[int, Fraction]] | None = None,
    at_end: Literal["flush", "drop"] = "flush",
    **window: Any,
) -> tuple[list[Pane], list[int], list[int]]:
    """Return the panes of ``rows`` in the order in which they come out, then the late and the filtered rows.

    ``rows`` by arrival position: those that hold an event time; one whose key holds null only raises the
    watermark, but may be late.
    ``kind``: the type of the event time. ``watermarks``: instead of those that the rows raise, a watermark
    (p, seconds) stands behind the row before row p. ``window``: the others of `Intervals`; ``order``: none for
    arrival, or the event time.
    """
    own = play(Intervals(rows=rows, grid=Grid(duration, period, offset, kind), age=age, **window), watermarks, at_end)
    return own.panes, own.late, own.filtered


def play(
    window: Intervals,
    watermarks: Iterable[tuple[int, Fraction]] | None = None,
    at_end: Literal["flush", "drop"] = "flush",
) -> Intervals:
    """Let a window see all its rows and watermarks."""
    explicit: dict[int, list[Fraction]] = {}
    for place, seconds in watermarks or ():
        explicit.setdefault(max((pos for pos in window.rows if pos < place), default=-1), []).append(seconds)
    for pos in [-1, *in_order(window.rows, window.order)]:
        if pos >= 0:
            window.on_row(pos)
            if watermarks is None:
                window.follow(pos)
        for seconds in explicit.get(pos, []):
            window.on_watermark(seconds, window.cause(pos))
    if at_end == "flush":
        window.on_end()
    return window
