"""The window that a user names, found in the result: what the result says of it and of those next to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .....windowing.columns.arrays import combined
from .....windowing.errors import ConfigError
from .....windowing.planning.plan import Plan
from .....windowing.planning.result_schema import MARK
from .....windowing.support.suggest import did_you_mean
from ...results.key_values import value_of
from ...results.result import StoredRows
from .key_rows import KeyCondition, Span, is_of_key
from .row_values import scalar_text

WINDOW = "window"


@dataclass(frozen=True, slots=True)
class Sought:
    """The window that a user names.

    ``key``: value by key column, in the types of the result; empty without a key.
    ``window``: its number; None: ``at`` says which.
    ``at``: an order value in it; None: ``window`` says which.
    """

    key: Mapping[str, pa.Scalar]
    window: int | None
    at: pa.Scalar | None = None

    @property
    def words(self) -> str:
        """The window in words: ``window 7``, ``window at 2026-11-01 10:00:00``."""
        return f"window {self.window}" if self.at is None else f"window at {scalar_text(self.at)}"


@dataclass(frozen=True, slots=True)
class FoundWindow:
    """What a result says of a window.

    ``number``: its number.
    ``row``: its row by column, or the first of its rows.
    ``before``, ``after``: the rows of the windows with the numbers before and after it; None: the result has none.
    ``also``: the numbers of other windows that hold the order value that the user named.
    """

    number: int
    row: Mapping[str, pa.Scalar]
    before: Mapping[str, pa.Scalar] | None = None
    after: Mapping[str, pa.Scalar] | None = None
    also: tuple[int, ...] = ()


def sought_window(plan: Plan, schema: pa.Schema, only: Mapping[str, str], window: int | None, at: str | None) -> Sought:
    """Return the window that a user names. ``only``: texts by column.

    Raises `ConfigError` where they are not exactly the key columns, values of other types, or not one of window and at.
    """
    for name in only:
        if name not in plan.key:
            hint = did_you_mean(name, plan.key) if plan.key else "leave --only out"
            raise ConfigError(f"--only: {name!r} is no key column of this result", hint)
    if missing := [name for name in plan.key if name not in only]:
        says = " ".join(f"--only {name}=.." for name in missing)
        raise ConfigError(f"windows of this result have a key: {', '.join(plan.key)}", f"say whose window, {says}")
    if (window is None) == (at is None):
        raise ConfigError("why needs one window", "say --window NUMBER, or --at TIME")
    key = {name: value_of(only[name], schema.field(name).type, f"--only {name}") for name in plan.key}
    if at is None:
        return Sought(key, window)
    kind = schema.field("window_start").type
    if not plan.order.columns and plan.options.event_time is None:
        raise ConfigError("--at: rows of this result are in arrival order", "say --window NUMBER")
    return Sought(key, None, value_of(at, kind, "--at"))


def find_window(rows: StoredRows, sought: Sought) -> FoundWindow | None:
    """Return what a result says of a window; None where it has no such window."""
    number = sought.window
    also: tuple[int, ...] = ()
    if number is None:
        numbers = _numbers_at(rows, sought)
        if not numbers:
            return None
        number, also = numbers[0], tuple(numbers[1:])
    near = pa.concat_tables(_rows_of(rows, sought.key, number - 1, number + 1))
    found = {each: _first(near, each) for each in (number - 1, number, number + 1)}
    row = found[number]
    return None if row is None else FoundWindow(number, row, found[number - 1], found[number + 1], also)


def count_windows(rows: StoredRows, key: Mapping[str, pa.Scalar]) -> int:
    """Return how many windows of a key a result has."""
    numbers = (table[WINDOW].unique() for table in _rows_of(rows, key, None, None, [*key, WINDOW]))
    return len(pa.chunked_array(list(numbers), pa.int64()).unique())


def _numbers_at(rows: StoredRows, sought: Sought) -> list[int]:
    """Return the numbers of the windows whose bounds hold a value, ascending; both bounds count."""
    names = [*sought.key, WINDOW, "window_start", "window_end"]
    found: set[int] = set()
    for table in _rows_of(rows, sought.key, None, None, names):
        start, end = table["window_start"], table["window_end"]
        holds = pc.and_(pc.less_equal(start, sought.at), pc.greater_equal(end, sought.at)).fill_null(False)
        found.update(table.filter(holds)[WINDOW].to_pylist())
    return sorted(found)


def _first(rows: pa.Table, number: int) -> dict[str, pa.Scalar] | None:
    mine = rows.filter(pc.equal(rows[WINDOW], number))
    if not mine.num_rows:
        return None
    return {name: combined(mine[name])[0] for name in mine.column_names}


def _rows_of(
    rows: StoredRows,
    key: Mapping[str, pa.Scalar],
    low: int | None,
    high: int | None,
    columns: Sequence[str] | None = None,
) -> Iterator[pa.Table]:
    """Yield the rows of a key whose window has a number in a range, inclusive, of row groups that may have any."""
    names = list(columns or rows.schema.names)
    yield pa.schema([rows.schema.field(name) for name in names]).empty_table()
    condition = KeyCondition(key, WINDOW, Span(_number(low), _number(high)), rows.schema)
    for split in rows.source.splits:
        for part in rows.source.parts_with(split, condition):
            table = rows.source.read(part, names).rows
            yield table.filter(pa.array(_picks(table, key, low, high)))


def _number(value: int | None) -> pa.Scalar | None:
    return None if value is None else pa.scalar(value, pa.int64())


def _picks(table: pa.Table, key: Mapping[str, pa.Scalar], low: int | None, high: int | None) -> Any:
    numbers = combined(table[WINDOW])
    mask = is_of_key(table, key) & numbers.is_valid().to_numpy(zero_copy_only=False)
    if MARK in table.column_names:
        mask &= ~pc.equal(combined(table[MARK]), "only").fill_null(False).to_numpy(zero_copy_only=False)
    values = numbers.fill_null(-1).to_numpy(zero_copy_only=False)
    return mask & (True if low is None else values >= low) & (True if high is None else values <= high)
