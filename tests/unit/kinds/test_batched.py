"""Batched windows: the library's panes are the reference's lots, over every form of the clause; and by hand.

within 3                  1       2       4
                          [1]     [1 2]   [2] [2 4]       the row at 1 goes before the row at 4 comes
partition by k retain 1   a1      b2      a3
                          [a1]    [a1 b2] [b2 a3]         not neighbours: lives
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from decimal import Decimal
from fractions import Fraction
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wincli
from references import tumbling as reference
from references.batched import Lot, batched, batched_groups
from support import strategies as my
from support.batched_cases import AGGREGATES, Case, TimedOutputs, cases, lots_of
from support.pane_laws import check, drawn_clock, in_result_order, library_table, panes_in, seconds_of
from support.strategies import examples
from wincli.windowing.errors import DataError
from wincli.windowing.language.parser import parse_window
from wincli.windowing.language.spec import Batched

# --- both sides ---------------------------------------------------------------------------------------------------


def clause_of(spec: Batched) -> dict[str, Any]:
    return {each.name: getattr(spec, each.name) for each in fields(spec)}


def moved_in(stream: my.Stream, window: str, emit: str, **options: Any) -> list[Any]:
    """Key, number and rows of each lot that entered or left."""
    result = library_table(stream, window, aggregates=None, emit=emit, **options)
    names = [*stream.key, "window", "id"]
    rows = zip(*(reference.ticks_of(result[name]) for name in names), strict=True)
    lots = groupby((row for row in rows if row[-1] is not None), lambda row: row[:-1])
    return [(lot[:-1], lot[-1], tuple(row[-1] for row in some)) for lot, some in lots]


def agree(stream: my.Stream, spec: Batched, clock: Any = None, origin: Fraction = Fraction(0)) -> None:
    """The library's panes are the reference's lots, with the end and without it, and so is what moves."""
    window, rows = str(spec), reference.read(stream.table)
    assert parse_window(window) == spec  # no form that nobody can ask for
    options, ticks, kind = {}, None, None
    if spec.within is not None:
        kind = stream.kind("clock")
        grid = () if spec.every is None else (Fraction(spec.every), origin)
        ticks = reference.type_of_ticks(kind, spec.within, *grid)
        options = {"clock": seconds_of(clock, kind)} | ({} if spec.every is None else {"origin": origin})
    where: dict[str, Any] = {"key": stream.key, "order": stream.order, "clock_kind": kind, "clock": clock}
    for at_end in ("flush", "drop"):
        lots = batched(rows, **clause_of(spec), **where, origin=origin, at_end=at_end)
        check(stream, window, lots, ticks, at_end=at_end, **options)
    ordered = sorted(lots, key=lambda lot: (lot.key, lot.number))
    for emit in ("entered", "left") if not spec.retain_all else ("entered",):
        wanted = [(lot.key, lot.number, getattr(lot, emit)) for lot in ordered if getattr(lot, emit)]
        assert moved_in(stream, window, emit, at_end="drop", **options) == wanted, f"{window}, {emit}"


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


# --- the panes are the reference's lots ---------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["within", "within every", "retain", "retain all"])
@examples(200)
@given(data=st.data(), sooner=limits())
def test_the_library_is_the_reference(form: str, data: st.DataObject, sooner: dict[str, Any]) -> None:
    if form == "retain all":
        agree(data.draw(my.streams()), Batched(retain_all=True))
    elif form == "retain":
        spec = Batched(every=data.draw(st.none() | st.integers(1, 6)), **{**sooner, "retain": sooner["retain"] or 1})
        agree(data.draw(marked(data.draw(my.streams()))), spec)
    else:
        stream = data.draw(on_a_clock())
        kind = stream.kind("clock")
        period, origin = data.draw(my.grids(kind)) if form == "within every" else (None, None)
        spec = Batched(within=data.draw(spans(kind)), every=period, **sooner)
        agree(stream, spec, drawn_clock(data, stream), origin or Fraction(0))


# --- the published cases: what entered, what left, and aggregates of the content, also by group ---------------------

CLOCKS = {"float": pa.float64(), "timestamp": pa.timestamp("us")}


def outputs(case: Case, lots: Sequence[Lot], clock: pa.DataType) -> dict[str, TimedOutputs]:
    rows = reference.read(case.table(clock))

    def at(lot: Lot) -> Fraction:
        assert lot.at is not None
        return Fraction(lot.at[0]) * reference.seconds_per_unit(clock)

    def values(lot: Lot) -> list[Any]:
        return [rows[pos][case.measure] for pos in lot.rows]

    def found(what: str) -> TimedOutputs:
        if what == "group_sum":
            groups = batched_groups(lots, rows, case.group_by)
            return lots_of((at(lot), (lot.group[0], sum(values(lot)))) for lot in groups if lot.group)
        if what in AGGREGATES:
            return [(at(lot), AGGREGATES[what](values(lot))) for lot in lots]
        moved = [(at(lot), lot.entered if what == "istream" else lot.left) for lot in lots]
        return [(second, [tuple(rows[pos][name] for name in case.columns) for pos in some]) for second, some in moved
                if some]  # fmt: skip

    return {what: found(what) for what in case.expected}


def library_lots(case: Case, clock: pa.DataType) -> list[Lot]:
    table = case.table(clock)
    stream = my.Stream(table.append_column("id", pa.array(range(len(table)))), (), ("at",))
    options: dict[str, Any] = {"at_end": "drop"}
    if case.spec.within is not None:
        options |= {"clock": case.until} | ({} if case.spec.every is None else {"origin": case.origin})
    lots: dict[Any, Lot] = {}
    for pane in in_result_order(panes_in(library_table(stream, case.window, **options))):
        lots[pane.number] = Lot(**{name: getattr(pane, name) for name in pane.__dataclass_fields__})
    for emit in ("entered", "left") if not case.spec.retain_all else ("entered",):
        for _, number, rows in moved_in(stream, case.window, emit, **options):
            lots[number] = replace(lots[number], **{emit: rows})
    return list(lots.values())


@pytest.mark.parametrize("clock", CLOCKS.values(), ids=CLOCKS)
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_library_and_reference_conform(case: Case, clock: pa.DataType) -> None:
    until, where = reference.as_value(case.until, clock), {"order": ["at"], "origin": case.origin}
    rows = reference.read(case.table(clock))
    lots = batched(rows, **clause_of(case.spec), clock_kind=clock, clock=until, at_end="drop", **where)
    assert outputs(case, lots, clock) == case.expected
    assert outputs(case, library_lots(case, clock), clock) == case.expected
    if "group_sum" in case.expected:
        options = {"clock": case.until, "origin": case.origin} if case.spec.every and case.spec.within else {}
        call = f"value=sum({case.measure})"
        result = wincli.aggregate(
            case.table(clock), case.window, order_by="at", at_end="drop", group_by=case.group_by, aggregates=[call],
            **options,
        )  # fmt: skip
        names = ["_at", case.group_by[0], "value"]
        told = zip(*(reference.ticks_of(result[name]) for name in names), strict=True)
        scale = reference.seconds_per_unit(clock)
        assert (
            lots_of((Fraction(at) * scale, (group, value)) for at, group, value in told) == case.expected["group_sum"]
        )


def test_every_case_expects_an_output_that_is_checked() -> None:
    known = {"istream", "rstream", "group_sum", *AGGREGATES}
    assert len(cases()) == 21
    assert all(case.expected and set(case.expected) <= known for case in cases())


# --- by hand ------------------------------------------------------------------------------------------------------


def rows_of(window: str, clock: pa.Array, **columns: Any) -> list[Any]:
    stream = my.Stream(pa.table({"id": range(len(clock)), "clock": clock, **columns}), (), ("clock",))
    return [list(pane.rows) for pane in panes_in(library_table(stream, window))]


def test_gap_of_years_has_no_ticks() -> None:
    """Row 0 comes and goes within two ticks, and no tick before row 1, 200 years later, gives a pane."""
    clock = pa.array([0, 400 * 365 * 86_400 * 10**9 // 2], pa.timestamp("ns"))
    assert rows_of("within 0.001 every 0.001", clock) == [[0], [], [1], []]


def test_float_row_expires_at_the_float_nearest_to_its_exact_end() -> None:
    """0.2 + 0.1 is above 0.3 in floats; the float nearest to the sum is 0.3."""
    assert rows_of("within 0.1", pa.array([0.2, 0.3])) == [[0], [], [1], []]


def test_a_row_hides_no_row_of_another_partition_and_none_that_is_not_retained() -> None:
    clock = pa.array([1, 2, 3, 4])
    window = "partition by k retain 1 every 2 with unique u"
    assert rows_of(window, clock, k=list("aabb"), u=list("wxxy")) == [[1], [1, 3]]
    older = "partition by k retain 2 every 2 with unique u"
    assert rows_of(older, clock, k=list("abba"), u=list("xyxz")) == [[1, 2], [0, 1, 2, 3]]


@pytest.mark.parametrize(
    "clock",
    [
        pa.array([2**63 - 2]),
        pa.array([-(2**63) + 1], pa.timestamp("ns")),
        pa.array([Decimal(2**63 - 2).scaleb(-10)], pa.decimal128(38, 10)),
        pa.array([2**63], pa.uint64()),
        pa.array([2**31 - 1], pa.int32()).cast(pa.date32()),
        pa.array([1e300]),
        pa.array([2.0**53]),
        pa.array([np.finfo(np.float32).max], pa.float32()),
    ],
    ids=lambda clock: f"{clock.type}",
)
@pytest.mark.parametrize("every", ["", " every {}"])
def test_instant_beyond_the_range_of_the_clock_type_is_an_error(clock: pa.Array, every: str) -> None:
    unit = 86_400 if pa.types.is_date32(clock.type) else 1
    with pytest.raises(DataError):
        rows_of(f"within {unit}{every.format(unit)}", clock)


@pytest.mark.parametrize("key", [(), ("k",)])
def test_no_rows_give_no_panes(key: tuple[str, ...]) -> None:
    nothing = pa.table({"id": pa.array([], pa.int64()), "clock": pa.array([], pa.float64()), "k": pa.array([], "str")})
    for window in ("within 5", "within 5 every 2", "retain 2 every 3", "retain all", "retain 1"):
        assert len(library_table(my.Stream(nothing, key, ("clock",)), window)) == 0


def test_a_clock_that_runs_far_ahead_of_one_key_changes_nothing_for_it() -> None:
    stream = my.Stream(pa.table({"id": range(3), "clock": [1, 2, 3]}), (), ("clock",))
    for window in ("within 5", "within 5 every 3"):
        assert library_table(stream, window, clock=100).equals(library_table(stream, window, clock=2**62))


def test_sizes_over_many_keys_are_those_of_a_queue() -> None:
    """Of 100,000 keys with one to three rows, a row goes with the row two after it."""
    keys = np.repeat(np.arange(100_000), np.arange(100_000) % 3 + 1)
    found = wincli.aggregate(pa.table({"k": keys}), "retain 2", key="k", aggregates="n=count()")
    rank = np.arange(len(keys)) - np.searchsorted(keys, keys)
    assert (found["n"].to_numpy() == np.minimum(rank + 1, 2)).all()
    assert (found["window"].to_numpy() == rank).all()
