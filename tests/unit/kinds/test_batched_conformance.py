"""Every case of ``tests/cases/batched_windows.json``, against the reference and the library.

A case is a window clause, items at times, and what published outputs or rules say comes out, when: the items that
entered (istream), those that left (rstream), and aggregates of the content after each change, also by group.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import groupby
from typing import Any

import pyarrow as pa
import pytest

import wincli
from references import tumbling as reference
from references.batched import Lot, batched, batched_groups
from support.batched_cases import AGGREGATES, Case, TimedOutputs, cases, lots_of

CLOCKS = {"float": pa.float64(), "timestamp": pa.timestamp("us")}


# --- the reference ------------------------------------------------------------------------------------------------


def by_reference(case: Case, clock: pa.DataType) -> dict[str, TimedOutputs]:
    rows, spec = reference.read(case.table(clock)), case.spec
    lots = batched(
        rows,
        within=spec.within,
        every=spec.every,
        retain=spec.retain,
        retain_all=spec.retain_all,
        unique=spec.unique,
        partition_by=spec.partition_by,
        order=["at"],
        clock_kind=clock,
        clock=reference.as_value(case.until, clock),
        origin=case.origin,
        at_end="drop",
    )
    items = {pos: tuple(row[name] for name in case.columns) for pos, row in rows.items()}

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
        return [(second, [items[pos] for pos in some]) for second, some in moved if some]

    return {what: found(what) for what in case.expected}


# --- the library --------------------------------------------------------------------------------------------------


def by_library(case: Case, clock: pa.DataType) -> dict[str, TimedOutputs]:
    return {what: library_output(case, what, clock) for what in case.expected}


def library_output(case: Case, what: str, clock: pa.DataType) -> TimedOutputs:
    options: dict[str, Any] = {"order_by": "at", "at_end": "drop"}
    if case.spec.within is not None:
        options |= {"clock": case.until} | ({} if case.spec.every is None else {"origin": case.origin})
    if what in ("istream", "rstream"):
        options["emit"] = "entered" if what == "istream" else "left"
        return moved(case, wincli.aggregate(case.table(clock), case.window, **options), clock)
    function = "sum" if what == "group_sum" else what
    call = f"value={function}({'' if function == 'count' else case.measure})"
    options["group_by"] = case.group_by
    result = wincli.aggregate(case.table(clock), case.window, aggregates=[call], **options)
    at, values = seconds_of(result["_at"], clock), result["value"].to_pylist()
    if what != "group_sum":
        return list(zip(at, values, strict=True))
    groups = result[case.group_by[0]].to_pylist()
    return lots_of(zip(at, zip(groups, values, strict=True), strict=True))


def moved(case: Case, result: pa.Table, clock: pa.DataType) -> TimedOutputs:
    """The rows of one window are one lot. It came out when the window ended, or with its last row."""
    columns = [result[name].to_pylist() for name in case.columns]
    items = zip(*columns, strict=True)
    lots = zip(result["window"].to_pylist(), seconds_of(result["window_end"], clock), items, strict=True)
    by_window = groupby(lots, key=lambda row: row[:2])
    return [(second, [row[2] for row in rows]) for (_, second), rows in by_window]


def seconds_of(column: pa.ChunkedArray, clock: pa.DataType) -> list[Fraction]:
    assert column.type == clock
    return [Fraction(value) * reference.seconds_per_unit(clock) for value in reference.ticks_of(column)]


# --- both ---------------------------------------------------------------------------------------------------------


def check(case: Case, got: dict[str, TimedOutputs]) -> None:
    for what, wanted in case.expected.items():
        if got[what] != wanted:
            lines = [f"{case.name}: {case.window}: {what}", *side_by_side(wanted, got[what])]
            pytest.fail("\n".join(lines), pytrace=False)


def side_by_side(wanted: TimedOutputs, got: TimedOutputs) -> Sequence[str]:
    return [
        *(f"  ok      {float(t)}: {value}" for t, value in wanted if (t, value) in got),
        *(f"  missing {float(t)}: {value}" for t, value in wanted if (t, value) not in got),
        *(f"  wrong   {float(t)}: {value}" for t, value in got if (t, value) not in wanted),
    ]


@pytest.mark.parametrize("clock", CLOCKS.values(), ids=CLOCKS)
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_reference_conforms(case: Case, clock: pa.DataType) -> None:
    got = by_reference(case, clock)
    check(case, got)


@pytest.mark.parametrize("clock", CLOCKS.values(), ids=CLOCKS)
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_library_conforms(case: Case, clock: pa.DataType) -> None:
    got = by_library(case, clock)
    check(case, got)


def test_every_case_expects_an_output_that_is_checked() -> None:
    known = {"istream", "rstream", "group_sum", *AGGREGATES}
    assert len(cases()) == 21
    assert all(case.expected and set(case.expected) <= known for case in cases())
