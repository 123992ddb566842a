"""Batched windows: the panes are the reference's lots, over every form of the clause.

within 3                  1       2       4
                          [1]     [1 2]   [2] [2 4]       the row at 1 goes before the row at 4 comes
partition by k retain 1   a1      b2      a3
                          [a1]    [a1 b2] [b2 a3]         not neighbours: lives
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from references import batched as reference_batched
from references import tumbling as reference
from support import strategies as my
from support.batched_panes import EmittedPane, by_kernel, in_seconds, instant_type
from support.strategies import examples
from wincli.windowing.columns.arrays import ClockValue
from wincli.windowing.kinds.context import WindowContext
from wincli.windowing.language.parser import parse_window
from wincli.windowing.language.spec import Batched

MANY = examples(2 * settings().max_examples)


# --- both sides ---------------------------------------------------------------------------------------------------


def by_reference(spec: Batched, stream: my.Stream, **options: Any) -> list[EmittedPane]:
    names = ("within", "every", "retain", "retain_all", "unique", "partition_by")
    clause = {name: getattr(spec, name) for name in names}
    kind = None if spec.within is None else stream.kind("clock")
    lots = reference_batched.batched(
        reference.read(stream.table), **clause, key=stream.key, order=stream.order, clock_kind=kind, **options
    )
    return [emitted_pane(lot, spec, stream, **options) for lot in sorted(lots, key=lambda lot: (lot.key, lot.number))]


def emitted_pane(lot: reference_batched.Lot, spec: Batched, stream: my.Stream, **options: Any) -> EmittedPane:
    at, start, end = lot.at, None, None
    if spec.within is not None:
        kind = instant_type(spec, stream, options.get("origin", Fraction(0)))
        first, start, end = in_seconds([lot.at[0], lot.start, lot.end], kind)
        at = (first, *lot.at[1:])
    return EmittedPane(lot.key, lot.number, lot.rows, lot.entered, lot.left, lot.closed_by, at, lot.pos, start, end)


def check(spec: Batched, stream: my.Stream, clock: Any = None, origin: Fraction = Fraction(0)) -> None:
    """The panes are the reference's lots, with the end and without it."""
    measure = None if clock is None else measure_of(clock, stream.kind("clock"))
    got = by_kernel(spec, stream, WindowContext(clock=measure, origin=origin))
    for at_end in ("flush", "drop"):
        want = by_reference(spec, stream, clock=clock, origin=origin, at_end=at_end)
        assert [one for one in got if at_end == "flush" or one.closed_by != "end"] == want, f"{spec}, {at_end}"
    assert parse_window(str(spec)) == spec  # no form that nobody can ask for


def measure_of(value: Any, kind: pa.DataType) -> ClockValue:
    """The ticks of a value, which may lie beyond its type."""
    return int(value.scaleb(kind.scale)) if isinstance(value, Decimal) else value


# --- strategies ---------------------------------------------------------------------------------------------------


@st.composite
def marked(draw: st.DrawFn, stream: my.Stream) -> my.Stream:
    """The stream with columns to part by, ``p`` and ``q``, and one to be unique by, ``u``, each of a few values."""
    table = stream.table
    for name in ("p", "q", "u"):
        kind = draw(st.sampled_from([pa.int64(), pa.string(), pa.float64(), pa.bool_()]))
        values = [my.value_of(n, kind) for n in range(draw(st.integers(1, 4)))]
        if pa.types.is_floating(kind):
            values.append(-0.0)
        cells = draw(st.lists(st.sampled_from(values), min_size=len(table), max_size=len(table)))
        table = table.append_column(name, pa.array(cells, kind))
    return replace(stream, table=table)


@st.composite
def limits(draw: st.DrawFn) -> dict[str, Any]:
    """What makes rows go sooner: ``retain``, ``with unique``, and ``partition by``, which may change nothing."""
    return {
        "retain": draw(st.one_of(st.none(), st.integers(1, 5))),
        "unique": draw(st.sampled_from([None, None, "u", "p"])),
        "partition_by": draw(st.sampled_from([(), (), ("p",), ("p", "q")])),
    }


@st.composite
def spans(draw: st.DrawFn, kind: pa.DataType) -> Fraction:
    """A duration on a clock of a type: whole units of it, or finer where there is something finer."""
    unit, _ = draw(my.grids(kind))
    nanoseconds = pa.types.is_timestamp(kind) and kind.unit == "ns"
    return unit if nanoseconds else unit * draw(st.sampled_from([1, 1, Fraction(1, 2), Fraction(5, 4)]))


@st.composite
def on_a_clock(draw: st.DrawFn) -> my.Stream:
    """Rows on a clock that creeps, several of one instant among them, put in order by further columns too."""
    stream = draw(marked(draw(my.clocked())))
    further = draw(st.sampled_from([(), (), ("a",), ("q", "a")]))
    return replace(stream, order=(*stream.order, *further))


@st.composite
def clocks(draw: st.DrawFn, stream: my.Stream) -> Any:
    """Where the clock stands: where the last row left it, or further on."""
    if not len(stream.table) or draw(st.booleans()):
        return None
    kind = stream.kind("clock")
    return max(reference.ticks_of(stream.table["clock"])) + my.value_of(draw(st.integers(0, 100)), kind)


# --- the panes are the reference's lots ---------------------------------------------------------------------------


@MANY
@given(st.data(), on_a_clock(), limits())
def test_within(data: st.DataObject, stream: my.Stream, sooner: dict[str, Any]) -> None:
    spec = Batched(within=data.draw(spans(stream.kind("clock"))), **sooner)
    check(spec, stream, data.draw(clocks(stream)))


@MANY
@given(st.data(), on_a_clock(), limits())
def test_within_every(data: st.DataObject, stream: my.Stream, sooner: dict[str, Any]) -> None:
    kind = stream.kind("clock")
    period, origin = data.draw(my.grids(kind))
    spec = Batched(within=data.draw(spans(kind)), every=period, **sooner)
    check(spec, stream, data.draw(clocks(stream)), origin or Fraction(0))


@MANY
@given(st.data(), my.streams(), limits(), st.one_of(st.none(), st.integers(1, 6)))
def test_retain(data: st.DataObject, stream: my.Stream, sooner: dict[str, Any], every: int | None) -> None:
    spec = Batched(every=every, **{**sooner, "retain": sooner["retain"] or 1})
    check(spec, data.draw(marked(stream)))


@given(my.streams())
def test_retain_all(stream: my.Stream) -> None:
    check(Batched(retain_all=True), stream)


@MANY
@given(st.data(), on_a_clock(), limits(), st.booleans())
def test_a_key_on_its_own_gives_its_part_of_the_whole(
    data: st.DataObject, stream: my.Stream, sooner: dict[str, Any], ticking: bool
) -> None:
    kind = stream.kind("clock")
    every = data.draw(my.grids(kind))[0] if ticking else None
    spec = Batched(within=data.draw(spans(kind)), every=every, **sooner)
    stream = replace(stream, key=("flag",), order=("clock", "id"))
    stands = max(reference.ticks_of(stream.table["clock"]), default=0)
    setting = WindowContext(clock=measure_of(stands, kind))
    whole = by_kernel(spec, stream, setting)
    for flag in (False, True):
        mine = stream.table["flag"].to_numpy() == flag
        alone = by_kernel(spec, replace(stream, table=stream.table.filter(pa.array(mine))), setting)
        place = np.flatnonzero(mine)  # of each row of the part in the whole
        assert [
            replace(
                one,
                rows=tuple(place[list(one.rows)]),
                entered=tuple(place[list(one.entered)]),
                left=tuple(place[list(one.left)]),
                pos=one.pos if one.pos in (None, -1) else place[one.pos],
            )
            for one in alone
        ] == [one for one in whole if one.key == (flag,)]
