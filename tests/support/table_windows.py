"""Windows of a table as random cases have them, and the Arrow tables of these."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
from hypothesis import strategies as st

from references.table import Window

KEYS = ["a", "b", "c"]


@st.composite
def table_windows(draw: st.DrawFn, named: bool, parts: int = 1) -> list[Window]:
    """Windows with and without a key of the log. ``parts``: of a unit of the clock, in which bounds may lie."""

    def window() -> Window:
        start = Fraction(draw(st.integers(-2 * parts, 20 * parts)), parts)
        length = Fraction(draw(st.sampled_from([0, 1, 2, 3, 5, 9, 30])), parts)
        return Window(start, start + length, draw(st.sampled_from([*KEYS, "z"])) if named else None)

    return [window() for _ in range(draw(st.integers(0, 9)))]


def typed(values: Sequence[Fraction | int], kind: pa.DataType) -> pa.Array:
    """Instants as values of a clock; in milliseconds they are whole seconds, in other types units of the type."""
    if pa.types.is_decimal(kind):
        return pa.array([Decimal(int(value)) for value in values], kind)
    per_unit = 1_000 if kind == pa.timestamp("ms") else 1
    plain = pa.array([int(value * per_unit) for value in values], pa.int32() if pa.types.is_date(kind) else pa.int64())
    return plain.cast(kind)


def windows_table(windows: Sequence[Window], kind: pa.DataType, places: Sequence[int] | None = None) -> pa.Table:
    """The table of some windows, by default of all, with the place of each."""
    places = list(range(len(windows))) if places is None else places
    starts, ends = ([getattr(windows[at], name) for at in places] for name in ("start", "end"))
    keys = pa.array([windows[at].key for at in places], pa.string())
    return pa.table(
        {"s": typed(starts, kind), "e": typed(ends, kind), "key": keys, "place": pa.array(places, pa.int64())}
    )


def nests(one: Window, other: Window) -> bool:
    """Whether the bounds of two windows fall, whichever comes first."""
    return one.start < other.end and other.start < one.end
