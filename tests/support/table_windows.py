"""Windows of a table as random cases have them, and the Arrow tables of these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from hypothesis import strategies as st

from references.table import Window
from wincli.windowing.language.enrichment import parse_windows

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


@contextmanager
def of_units() -> Iterator[None]:
    """Let tables in memory be those of units, which add up, as the ``{date}`` of a path says of files."""
    parse = "wincli.windowing.arguments.parse_windows"
    with patch(parse, lambda *given: replace(parse_windows(*given), of_unit=True)):
        yield


@st.composite
def tables_of_units(
    draw: st.DrawFn, windows: Sequence[Window], clocks: Sequence[Any], changes: bool
) -> tuple[list[Window], list[list[int]], list[int]]:
    """Tables of units that add up to some windows.

    ``clocks``: of each unit, where the clock stood before it; None: nowhere. ``changes``: whether later tables change
    windows that have not begun, repeat others, and come too late with some. Returns windows, the places of those of
    each table, and the places of those that are in force, in the order of the tables.
    """
    every, tables, last = [*windows], [list[int]() for _ in clocks], {}
    for key, start in dict.fromkeys((each.key, each.start) for each in windows):
        own = [at for at, each in enumerate(windows) if (each.key, each.start) == (key, start)]
        before = [unit for unit, clock in enumerate(clocks) if clock is None or clock < start]
        among = st.sampled_from(before)
        *replaced, unit = sorted(draw(st.sets(among, min_size=1))) if changes else [draw(among)]
        behind = (
            draw(st.lists(st.integers(len(before), len(clocks) - 1), max_size=2)) if len(before) < len(clocks) else ()
        )
        for other in (*replaced, *(behind if changes else ())):
            every.append(Window(start, start + draw(st.integers(0, 9)), key))
            tables[other] += draw(st.sampled_from([own, [len(every) - 1], [*own, len(every) - 1]]))
        tables[unit] += own
        last |= dict.fromkeys(own, unit)
    tables = [draw(st.permutations(table)) for table in tables]
    return every, tables, [at for unit, table in enumerate(tables) for at in table if last.get(at) == unit]
