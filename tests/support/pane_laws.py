"""The panes of the library beside those of a reference, cell by cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from operator import attrgetter
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import wincli
from references import tumbling as reference
from references.tumbling import Pane, seconds_per_unit, ticks_of
from support import strategies as my

told = attrgetter("key", "number", "rows", "closed_by", "at", "pos", "start", "end", "mark", "timing", "index")


def library_table(stream: my.Stream, window: str, **options: Any) -> pa.Table:
    """The result for a stream whose ``id`` is the arrival position of a row."""
    given = {"key": stream.key, "order_by": stream.order_by, "aggregates": ["ids=collect(id)"], **options}
    return wincli.aggregate(stream.table, window, **given)


def panes_in(result: pa.Table, key: Sequence[str] = ()) -> list[Pane]:
    """The panes of a result as a reference tells them, temporal values as their ticks."""
    columns = {name: ticks_of(result[name]) for name in result.column_names}
    ats = [name for name in columns if name.startswith("_at")]
    found = []
    for cells in zip(*columns.values(), strict=True):
        row = dict(zip(columns, cells, strict=True))
        number, at = row["window"], tuple(row[name] for name in ats)
        found.append(
            Pane(
                None if number is None else tuple(row[name] for name in key),
                number,
                tuple(row["ids"] or ()),
                row["closed_by"],
                None if set(at) == {None} else at,
                row["_pos"],
                row["window_start"],
                row["window_end"],
                row["_mark"],
                row.get("timing"),
                row.get("index"),
            )
        )
    return found


def in_result_order(panes: Iterable[Pane]) -> list[Pane]:
    """By key and number, then the marks alone as they came."""
    every = list(panes)
    full = sorted((pane for pane in every if pane.key is not None), key=lambda pane: (pane.key, pane.number))
    return [*full, *(pane for pane in every if pane.key is None)]


def check(
    stream: my.Stream, window: str, wanted: Iterable[Pane], ticks: pa.DataType | None = None, **options: Any
) -> None:
    """The library's panes are those of a reference. ``ticks``: the type that bounds and causes have on a grid."""
    result = library_table(stream, window, **options)
    shown = sum(name.startswith("_at") for name in result.column_names)
    want = []
    for pane in in_result_order(wanted):
        assert pane.at is None or set(pane.at[shown:]) <= {None}  # where ticks alone are causes there is one column
        want.append(told(replace(pane, at=pane.at and pane.at[:shown])))
    assert list(map(told, panes_in(result, stream.key))) == want, window
    if ticks is not None:
        assert [result.schema.field(name).type for name in ("window_start", "window_end", "_at")] == [ticks] * 3


def seconds_of(value: Any, kind: pa.DataType) -> Fraction | None:
    """A value of a clock column as the library is told it."""
    return None if value is None else Fraction(value) * seconds_per_unit(kind)


def drawn_clock(data: st.DataObject, stream: my.Stream) -> Any:
    """Where the clock stands: where the last row left it, or further on, in its column's own terms."""
    if not len(stream.table) or data.draw(st.booleans()):
        return None
    ahead = data.draw(st.integers(0, 100).map(lambda n: my.value_of(n, stream.kind("clock"))))
    return max(ticks_of(stream.table["clock"])) + ahead


def policy(
    word: str,
    amount: Fraction = Fraction(0),
    kind: pa.DataType | None = None,
    clock: pa.DataType | None = None,
    origin: Fraction | None = None,
) -> tuple[str, Any]:
    """A policy as a spec has it and as a reference does. ``amount``: rows, seconds, or how far ``a`` rises."""
    known: dict[str, tuple[str, Any]] = {
        "count": (f"count({amount})", reference.Count(int(amount))),
        "change": ("change(flag)", reference.Change(("flag",))),
        "punct": ("punct()", reference.Punct()),
        "flag": ("punct(flag)", reference.Punct(lambda row: bool(row["flag"]))),
        "when": ("when(flag)", reference.Punct(lambda row: bool(row["flag"]))),
        "delta": (f"delta(a, {my.text(amount)})", reference.Delta("a", amount, kind)),
        "gap": (f"gap(a, {my.text(amount)})", reference.Gap("a", amount, kind)),
        "time": (f"time({my.text(amount)})", reference.Time(amount, clock, origin or Fraction(0))),
    }
    return known[word]
