"""Windows that follow conditions one event at a time (section 12), as plain as the rule reads.

    if a window is open and a before rule fires: close it    (the first rule of the spec that fires)
    if no window is open and the opener does not hold for the row: it is in no window
    if an amount that is taken from the row is NaN or negative: it is rejected
    if no window is open: open one
    put the row in; if an after rule fires: close the window

Ticks and marks are events of their own, each before the rows that follow it: what comes first ends the window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor, isinf, isnan
from typing import Any, Literal

import pyarrow as pa

from references.tumbling import (
    Event,
    Key,
    Pane,
    Row,
    Time,
    Value,
    is_distinct,
    rises_by_more,
    seconds_per_unit,
    stream,
)

Condition = Callable[[Row], bool]
Before = Callable[[Sequence[Row], Row], bool]
After = Callable[[Sequence[Row]], bool]
Amount = Callable[[Sequence[Row], Row], Any]
"""An amount of the rows of the window before, none for the first one, and of a row."""


class RightClosed(Time):
    """Windows ``(tick(k - 1), tick(k)]``: a tick comes behind the rows of its instant."""

    def window_of(self, value: Value) -> int:
        k = super().window_of(value)
        return k - 1 if self.tick(k - 1) == self.clock(value) else k


@dataclass(frozen=True)
class Rule:
    """One policy: when it ends a window, and at which rows one may begin."""

    reason: str
    before: Before | None = None
    after: After | None = None
    opens: Condition | None = None
    grid: Time | None = None
    on_mark: bool = False
    before_with: Callable[[Sequence[Row], Sequence[Row], Row], bool] | None = None
    after_with: Callable[[Sequence[Row], Sequence[Row]], bool] | None = None
    amount: Amount | None = None
    of_each_row: bool = False

    def ends_before(self, old: Sequence[Row], rows: Sequence[Row], row: Row) -> bool:
        """``old``: the rows of the window before."""
        with_old = self.before_with is not None and self.before_with(old, rows, row)
        return with_old or (self.before is not None and self.before(rows, row))

    def ends_with(self, old: Sequence[Row], rows: Sequence[Row]) -> bool:
        with_old = self.after_with is not None and self.after_with(old, rows)
        return with_old or (self.after is not None and self.after(rows))


def count(n: int) -> Rule:
    return Rule("count", after=lambda rows: len(rows) >= n)


def delta(column: str, amount: Fraction, kind: pa.DataType) -> Rule:
    return Rule("delta", before=lambda rows, row: rises_by_more(row[column], rows[0][column], amount, kind))


def gap(column: str, amount: Fraction, kind: pa.DataType) -> Rule:
    return Rule("gap", before=lambda rows, row: rises_by_more(row[column], rows[-1][column], amount, kind))


def count_of(column: str) -> Rule:
    return Rule("count", after=lambda rows: len(rows) >= rows[0][column])


def delta_of(attribute: str, column: str, kind: pa.DataType) -> Rule:
    def before(rows: Sequence[Row], row: Row) -> bool:
        return rises_by_more(row[attribute], rows[0][attribute], Fraction(rows[0][column]), kind)

    return Rule("delta", before=before)


def gap_of(attribute: str, column: str, kind: pa.DataType) -> Rule:
    def before(rows: Sequence[Row], row: Row) -> bool:
        return rises_by_more(row[attribute], rows[-1][attribute], Fraction(rows[-1][column]), kind)

    return Rule("gap", before=before)


def count_by(amount: Amount) -> Rule:
    def after(old: Sequence[Row], rows: Sequence[Row]) -> bool:
        most = amount(old, rows[0])
        return len(rows) >= (most if isinf(most) else floor(most))

    return Rule("count", after_with=after, amount=amount)


def delta_by(attribute: str, amount: Amount, kind: pa.DataType) -> Rule:
    def before(old: Sequence[Row], rows: Sequence[Row], row: Row) -> bool:
        most = amount(old, rows[0])
        return not isinf(most) and rises_by_more(row[attribute], rows[0][attribute], Fraction(most), kind)

    return Rule("delta", before_with=before, amount=amount)


def gap_by(attribute: str, amount: Amount, kind: pa.DataType) -> Rule:
    def before(old: Sequence[Row], rows: Sequence[Row], row: Row) -> bool:
        most = amount(old, rows[-1])
        return not isinf(most) and rises_by_more(row[attribute], rows[-1][attribute], Fraction(most), kind)

    return Rule("gap", before_with=before, amount=amount, of_each_row=True)


def previous(function: str, values: Sequence[Value], default: Any) -> Any:
    """The aggregate of the window before, or the default where it is null; ``values`` may be null."""
    there = [value for value in values if value is not None]
    if function == "count":
        return len(there)
    if function in {"min", "max", "range"}:
        there = [value for value in there if value == value]  # noqa: PLR0124 - only NaN is not itself
    if not there:
        return default
    exact = sum(map(Fraction, there)) if function in {"sum", "mean"} else Fraction(0)
    found = {
        "sum": float(exact) if isinstance(there[0], float) else int(exact),
        "mean": float(exact / len(there)),
        "min": min(there),
        "max": max(there),
        "first": there[0],
        "last": there[-1],
        "range": max(there) - min(there),
    }
    return found[function]


def change(*columns: str) -> Rule:
    return Rule("change", before=lambda rows, row: any(is_distinct(row[c], rows[-1][c]) for c in columns))


def when(condition: Condition) -> Rule:
    return Rule("when", before=lambda _, row: condition(row), opens=condition)


def while_(condition: Condition) -> Rule:
    return Rule("while", before=lambda _, row: not condition(row), opens=condition)


def from_(condition: Condition, until: Condition) -> Rule:
    return Rule("until", after=lambda rows: until(rows[-1]), opens=condition)


def punct(condition: Condition) -> Rule:
    return Rule("punct", after=lambda rows: condition(rows[-1]))


def marks() -> Rule:
    return Rule("punct", on_mark=True)


def time(grid: Time) -> Rule:
    return Rule(grid.reason, grid=grid)


def reaches(function: str, column: str | None, amount: Fraction, kind: pa.DataType | None = None) -> Rule:
    """``amount`` in seconds where the column is a time, of which only the range is asked."""

    def enough(rows: Sequence[Row]) -> bool:
        values = [1 if column is None else row[column] for row in rows]
        return is_enough(function, [value for value in values if value is not None], amount, kind)

    return Rule("reaches", after=enough)


def is_enough(function: str, values: Sequence[Value], amount: Fraction, kind: pa.DataType | None) -> bool:
    if function == "count":
        return len(values) >= amount
    if not values:
        return False
    if any(isinstance(value, float) for value in values):
        return float_of(function, values) >= float(amount)
    per_unit = seconds_per_unit(kind) if kind is not None and pa.types.is_temporal(kind) else Fraction(1)
    found = {"sum": sum(values), "min": min(values), "max": max(values), "range": max(values) - min(values)}[function]
    return Fraction(found) * per_unit >= amount


def float_of(function: str, values: Sequence[float]) -> float:
    """The float nearest to the true sum; extremes skip NaN, a sum does not."""
    numbers = [value for value in values if value == value]  # noqa: PLR0124 - only NaN is not itself
    if function == "sum":
        return float(sum(map(Fraction, values))) if len(numbers) == len(values) else float("nan")
    if not numbers:
        return float("nan")
    return {"min": min(numbers), "max": max(numbers), "range": max(numbers) - min(numbers)}[function]


@dataclass(slots=True)
class AnyOf:
    """The windows of all keys under some rules.

    ``panes``: what has come out; ``skipped``: rows in no window; ``rejected``: why others are in none.
    """

    rows: Mapping[int, Row]
    rules: Sequence[Rule]
    key: Sequence[str]
    order: Sequence[str]
    open_rows: dict[Key, list[int]] = field(default_factory=dict)
    numbers: Counter[Key] = field(default_factory=Counter)
    panes: list[Pane] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    window_before: dict[Key, list[Row]] = field(default_factory=dict)
    rejected: dict[int, str] = field(default_factory=dict)

    def on_row(self, pos: int) -> None:
        row = self.rows[pos]
        key = tuple(row[name] for name in self.key)
        at = tuple(row[name] for name in self.order) or None
        if key in self.open_rows:
            fired = [rule for rule in self.rules if rule.ends_before(self.old(key), self.rows_of(key), row)]
            self.flush_if(fired, key, at, pos)
        if key not in self.open_rows and not all(rule.opens(row) for rule in self.rules if rule.opens):
            self.skipped.append(pos)
            return
        reason = self.reject_reason(key, row)
        if reason is not None:
            self.rejected[pos] = reason
            return
        self.open_rows.setdefault(key, []).append(pos)
        full = [rule for rule in self.rules if rule.ends_with(self.old(key), self.rows_of(key))]
        self.flush_if(full, key, at, pos)

    def reject_reason(self, key: Key, row: Row) -> str | None:
        """Why an amount that is taken from a row cannot be; None: all can."""
        for rule in self.rules:
            if rule.amount is not None and (rule.of_each_row or key not in self.open_rows):
                amount = rule.amount(self.old(key), row)
                if isnan(amount):
                    return "nan_attribute"
                if amount < 0:
                    return "negative_amount"
        return None

    def on_event(self, rule: Rule, at: Any, pos: int) -> None:
        """A tick or a mark of a rule: it ends the windows of all keys."""
        for key in sorted(self.open_rows):
            self.flush_if([rule], key, at, pos)

    def flush_if(self, fired: Sequence[Rule], key: Key, at: Any, pos: int | None) -> None:
        if fired:
            self.flush(key, fired[0].reason, at, pos)

    def flush(self, key: Key, reason: str, at: Any, pos: int | None) -> None:
        self.window_before[key] = self.rows_of(key)
        rows = tuple(self.open_rows.pop(key))
        ends = [self.rows[pos][self.order[0]] if self.order else None for pos in (rows[0], rows[-1])]
        self.panes.append(Pane(key, self.numbers[key], rows, reason, at, pos, *ends))
        self.numbers[key] += 1

    def old(self, key: Key) -> list[Row]:
        return self.window_before.get(key, [])

    def rows_of(self, key: Key) -> list[Row]:
        return [self.rows[pos] for pos in self.open_rows[key]]


def any_of(
    rows: Mapping[int, Row],
    rules: Sequence[Rule],
    *,
    key: Sequence[str] = (),
    order: Sequence[str] = (),
    marks: Iterable[int] = (),
    at_end: Literal["flush", "drop"] = "flush",
) -> AnyOf:
    """Return the windows of ``rows`` (by arrival position) under rules, after all of them."""
    return play(AnyOf(rows, rules, key, order), marks, at_end)


def play(window: AnyOf, marks: Iterable[int], at_end: Literal["flush", "drop"]) -> AnyOf:
    """Tell a window everything that happens, in order, and return it."""
    rows, order = window.rows, window.order
    ticks = all_ticks(rows, window.rules, order)
    for event in stream(rows, order, marks):
        while event.what == "row" and ticks and has_come(ticks[0][1], ticks[0][0], rows[event.pos][order[0]]):
            instant, _, rule = ticks.pop(0)
            window.on_event(rule, instant, -1)
        see(window, event)
    for instant, _, rule in ticks:
        window.on_event(rule, instant, -1)
    if at_end == "flush":
        for open_key in sorted(window.open_rows):
            window.flush(open_key, "end", None, None)
    return window


def has_come(grid: Time, instant: Fraction, now: Value) -> bool:
    return instant < grid.clock(now) or (instant == grid.clock(now) and not isinstance(grid, RightClosed))


def see(window: AnyOf, event: Event) -> None:
    if event.what == "row":
        window.on_row(event.pos)
        return
    at = tuple(window.rows[event.pos][name] for name in window.order) or None if event.pos >= 0 else None
    for rule in window.rules:
        if rule.on_mark:
            window.on_event(rule, at, event.pos)


def all_ticks(
    rows: Mapping[int, Row], rules: Sequence[Rule], order: Sequence[str]
) -> list[tuple[Fraction, Time, Rule]]:
    """The ticks of all rules up to the largest value of the clock, in order; equal ones in the order of the spec."""
    found: list[tuple[Fraction, int, Time, Rule]] = []
    for place, rule in enumerate(rules):
        if rule.grid is not None and rows:
            values = sorted(row[order[0]] for row in rows.values())
            ticks = [rule.grid.tick(k) for k in sorted({rule.grid.window_of(value) for value in values})]
            found += [(tick, place, rule.grid, rule) for tick in ticks if has_come(rule.grid, tick, values[-1])]
    found.sort(key=lambda tick: tick[:2])
    return [(instant, grid, rule) for instant, _, grid, rule in found]
