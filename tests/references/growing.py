"""Growing windows once more, one event at a time (section 2): windows of the clock that come out at each step.

time(6) every 2     0     2     4     6
                      a b     c           d       at 2: [a b], at 4: [a b c], at 6: [a b c] and the window is empty
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import pyarrow as pa

from references.calendar import Calendar
from references.tumbling import Key, RightClosed, Row, Time, Value, Windows, as_value, in_order, nearest, type_of_ticks


@dataclass(kw_only=True)
class Growing(Windows):
    """The growing windows of all keys. ``windows``: the tumbling windows that they are in the end."""

    windows: Time
    every: Fraction
    open_rows: dict[Key, list[int]] = field(default_factory=dict)
    steps: list[tuple[Fraction, int, bool]] = field(default_factory=list)  # to come: when, of which window, its last

    @property
    def result_type(self) -> pa.DataType:
        own = self.windows
        return own.result_type if isinstance(own, Calendar) else type_of_ticks(own.kind, self.every, own.origin)

    def instant(self, seconds: Fraction) -> Value:
        return as_value(nearest(seconds, self.windows.kind), self.result_type)

    def bounds(self, k: int) -> tuple[Fraction, Fraction]:
        """Where window k begins and ends."""
        exact = self.windows.tick if isinstance(self.windows, Calendar) else self.windows.exact
        return exact(k - 1), exact(k)

    def on_row(self, pos: int) -> None:
        k = self.windows.window_of(self.clock(pos))
        if not any(of == k for _, of, _ in self.steps):
            begin, end = self.bounds(k)
            inside, at = [], begin + self.every
            while at < end:
                inside.append((at, k, False))
                at += self.every
            now = self.clock(pos)
            self.steps = [step for step in [*inside, (end, k, True)] if not self.has_come(step[0], now)]
        self.open_rows.setdefault(self.key_of(pos), []).append(pos)

    def has_come(self, at: Fraction, now: Value) -> bool:
        """Whether a step is before the rows of an instant."""
        step, clock = nearest(at, self.windows.kind), self.windows.clock(now)
        return step < clock if isinstance(self.windows, RightClosed) else step <= clock

    def until(self, now: Value) -> None:
        """Let the clock go on up to an instant."""
        while self.steps and self.has_come(self.steps[0][0], now):
            at, k, is_last = self.steps.pop(0)
            stamp = (self.instant(at), *(None for _ in self.order[1:]))
            for key in sorted(self.open_rows):
                told = ("time" if is_last else "trigger", stamp, -1, self.instant(self.bounds(k)[0]), self.instant(at))
                self.show(key, self.open_rows[key], *told)
            if is_last:
                self.open_rows.clear()

    def on_end(self) -> None:
        for key in sorted(self.open_rows):
            begin, end = self.bounds(self.windows.window_of(self.clock(self.open_rows[key][0])))
            self.show(key, self.open_rows[key], "end", None, None, self.instant(begin), self.instant(end))


def growing(
    rows: Mapping[int, Row],
    windows: Time,
    every: Fraction,
    clock: Value | None = None,
    at_end: Literal["flush", "drop"] = "flush",
    **more: Any,
) -> Growing:
    """Let the windows of ``rows`` see all that happens, and return them. ``clock``: as of `references.tumbling`."""
    return play(Growing(rows=rows, windows=windows, every=every, **more), clock, at_end)


def play(own: Growing, clock: Value | None = None, at_end: Literal["flush", "drop"] = "flush") -> Growing:
    """Let windows see all that happens to their rows."""
    for pos in in_order(own.rows, own.order):
        own.until(own.clock(pos))
        own.on_row(pos)
    if own.rows and clock is not None:
        own.until(max(clock, *(row[own.order[0]] for row in own.rows.values())))
    if at_end == "flush":
        own.on_end()
    return own
