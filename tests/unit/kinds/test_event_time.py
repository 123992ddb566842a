"""Event-time panes against the cases of the original windows and against the reference (semantics section 5)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate, pairwise
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from references import event_time as reference_intervals
from references import tumbling as reference
from references.tumbling import Pane, seconds_per_unit, ticks_of
from support.intervals import is_in_no_pane
from support.places import CASES
from support.strategies import DECIMALS, FLOATS, STEPS, TIMESTAMPS, array, value_of
from wincli.windowing.clock.interval_grid import clock_values
from wincli.windowing.clock.watermark import (
    Lateness,
    Watermarks,
    explicit,
    in_order,
    make_intervals,
    make_lateness,
    rises,
    watermarks_at,
)
from wincli.windowing.columns.arrays import Ints, combined
from wincli.windowing.errors import ConfigError, DataError
from wincli.windowing.kinds.context import WindowContext, watermark_signals
from wincli.windowing.kinds.registry import kind_of
from wincli.windowing.language.parser import parse_window
from wincli.windowing.language.spec import TimeInterval
from wincli.windowing.rows.membership import Memberships, contiguous, gathered
from wincli.windowing.rows.panes import AT_END, CLOSED_BY, TIMING, Panes
from wincli.windowing.rows.sequence import Sequences, build, one_batch

CASES = CASES / "spl_windows.json"
KINDS = [pa.int32(), pa.int64(), pa.uint16(), *FLOATS, *DECIMALS, pa.date32(), *TIMESTAMPS]
NONE = Fraction(0)

Outcome = tuple[list[Pane], list[int], list[int]]
"""Panes by key and number, then the positions of the late and of the filtered rows."""


@dataclass(frozen=True, slots=True)
class Log:
    """Rows with an event time ``et`` and perhaps a key ``k``, either of them null in places, and what is asked."""

    table: pa.Table
    spec: TimeInterval
    lag: Fraction = NONE
    min_gap: Fraction = NONE
    key: tuple[str, ...] = ()
    ordered: bool = False

    @property
    def kind(self) -> pa.DataType:
        return self.table.schema.field("et").type

    @property
    def order(self) -> tuple[str, ...]:
        return ("et",) if self.ordered else ()

    @property
    def lateness(self) -> Lateness:
        return make_lateness(self.kind, self.spec, self.lag, self.min_gap)

    def rows(self, begin: int, end: int) -> tuple[pa.RecordBatch, Ints]:
        """The rows of a chunk that hold an event time, and their positions."""
        batch = one_batch(self.table.slice(begin, end - begin))
        picks = np.flatnonzero(batch.column("et").is_valid())
        return batch.take(pa.array(picks)), picks + begin


def times(rows: pa.RecordBatch) -> Any:
    return clock_values(combined(rows.column("et")), "et")


# --- what the library says ----------------------------------------------------------------------------------------


def read(log: Log, cuts: Sequence[int]) -> tuple[Watermarks, list[int]]:
    """The watermarks of a log that is read in chunks, and the rows that are late beyond repair."""
    parts, late, stands, lateness = [], [], None, log.lateness
    for begin, end in pairwise([0, *sorted(cuts), len(log.table)]):
        rows, pos = log.rows(begin, end)
        course = lateness.advance(times(rows), stands)
        stands = course.final
        listed = (
            lateness.list_advances_in_order(times(rows)) if log.ordered else lateness.list_advances(times(rows), course)
        )
        parts.append(watermarks_at(rows.select(list(log.order)), pos, *listed))
        late += [] if log.ordered else pos[lateness.beyond_repair(times(rows), course)].tolist()
    return (rises(in_order(parts)) if log.ordered else in_order(parts)), late


def kept(log: Log, late: Sequence[int]) -> Sequences:
    rows, pos = log.rows(0, len(log.table))
    keyed = [rows.column(name).is_valid().to_numpy(zero_copy_only=False) for name in log.key]
    picks = np.flatnonzero(np.logical_and.reduce([~np.isin(pos, late), *keyed]))
    values = dict.fromkeys(["et", *log.key])
    return build(rows.take(pa.array(picks)), pos[picks], log.key, log.order, list(values))


def by_library(log: Log, cuts: Sequence[int] = ()) -> Outcome:
    watermarks, late = read(log, cuts)
    return told(log, kept(log, late), watermarks, late)


def told(log: Log, sequences: Sequences, watermarks: Watermarks, late: Sequence[int]) -> Outcome:
    panes = panes_of(log.spec, sequences, watermarks)
    in_no_pane = np.sort(sequences.pos[is_in_no_pane(log.lateness, times(sequences.rows))])
    valid = [pos for pos in late if not log.key or log.table["k"][pos].is_valid]
    return sorted(panes_told(sequences, watermarks, panes), key=place), valid, in_no_pane.tolist()


def panes_of(window: TimeInterval, sequences: Sequences, watermarks: Watermarks) -> Panes:
    return kind_of(window).panes(sequences, watermark_signals(watermarks), WindowContext(event_time="et"))[0]


def panes_told(sequences: Sequences, watermarks: Watermarks, panes: Panes) -> list[Pane]:
    """Panes as the reference tells them."""
    assert isinstance(panes.membership, Memberships)
    assert panes.outputs is not None
    rows, bounds = gathered(panes.membership, 0, len(panes))
    start, end = ticks_of(pa.chunked_array([panes.start])), ticks_of(pa.chunked_array([panes.end]))
    out = []
    for p, (low, high) in enumerate(pairwise(bounds)):
        at, pos = stamp(sequences, watermarks, int(panes.cause[p]))
        out.append(
            Pane(
                () if sequences.keys is None else tuple(sequences.keys.slice(panes.key[p], 1).to_pylist()[0].values()),
                int(panes.number[p]),
                tuple(sequences.pos[rows[low:high]].tolist()),
                CLOSED_BY[panes.closed_by[p]],
                at,
                pos,
                start[p],
                end[p],
                timing=TIMING[panes.outputs.timing[p]],  # type: ignore[arg-type]
                index=int(panes.outputs.index[p]),
            )
        )
    return out


def stamp(sequences: Sequences, watermarks: Watermarks, cause: int) -> tuple[Any, int | None]:
    if cause == AT_END:
        return None, None
    marks = watermarks.marks.take(np.array([cause - len(sequences)]))
    return tuple(ticks_of(pa.chunked_array([c]))[0] for c in marks.rows.columns) or None, int(marks.pos[0])


def place(pane: Pane) -> Any:
    return pane.key, pane.number


# --- what the reference says --------------------------------------------------------------------------------------


def expected(log: Log, watermarks: Sequence[tuple[int, Fraction]] | None = None) -> Outcome:
    rows = {pos: row for pos, row in reference.read(log.table).items() if row["et"] is not None}
    panes, late, filtered = reference_intervals.intervals(
        rows,
        log.spec.duration,
        log.spec.period,
        log.spec.discard_age,
        log.spec.offset,
        event_time="et",
        kind=log.kind,
        key=log.key,
        order=log.order,
        lag=log.lag,
        min_gap=log.min_gap,
        watermarks=watermarks,
    )
    return sorted(panes, key=place), late, sorted(filtered)


# --- random logs --------------------------------------------------------------------------------------------------


def unit_of(kind: pa.DataType) -> Fraction:
    """Seconds from `value_of` one number to the next."""
    if pa.types.is_floating(kind):
        return Fraction(1, 10)
    return Fraction(1, 10**kind.scale) if pa.types.is_decimal(kind) else seconds_per_unit(kind)


@st.composite
def specs(draw: st.DrawFn, kind: pa.DataType) -> TimeInterval:
    """A window whose bounds lie on event times, or halfway between them where there is a type for that."""
    finest = pa.types.is_timestamp(kind) and kind.unit == "ns"
    grain = unit_of(kind) / draw(st.sampled_from([1] if finest else [1, 1, 2]))
    duration, period = draw(st.sampled_from([1, 2, 3, 5, 7, 10, 25])), draw(st.sampled_from([1, 2, 3, 4, 10, 30]))
    age, offset = draw(st.sampled_from([0, 1, 5, 9, 40, 100, 100])), draw(st.sampled_from([0, 0, 1, 3, 32]))
    return TimeInterval(duration * grain, period * grain, age * grain, offset * grain)


@st.composite
def event_times(draw: st.DrawFn, kind: pa.DataType, size: int) -> list[Any]:
    """Values that creep up, with falls; or that rise but for a jitter, so that many come late; some are null."""
    start = draw(st.sampled_from([0, 100, 1000] if pa.types.is_unsigned_integer(kind) else [0, 100, -70]))
    numbers = list(accumulate(draw(st.lists(STEPS, min_size=size, max_size=size)), initial=start))[1:]
    if draw(st.booleans()):
        jitter = draw(st.lists(st.integers(0, 15), min_size=size, max_size=size))
        numbers = [start + index + early for index, early in enumerate(jitter)]
    missing = draw(st.sets(st.integers(0, size), max_size=3))
    return [None if index in missing else value_of(n, kind) for index, n in enumerate(numbers)]


@st.composite
def logs(draw: st.DrawFn, ordered: bool | None = None) -> Log:
    kind = draw(st.sampled_from(KINDS))
    size = draw(st.integers(0, 30))
    columns = {"et": array(draw(event_times(kind, size)), kind)}
    keyed = draw(st.booleans())
    if keyed:
        keys = draw(st.lists(st.sampled_from([1, 1, 1, 2, 3, None]), min_size=size, max_size=size))
        columns["k"] = array(keys, pa.int64())
    ordered = draw(st.booleans()) if ordered is None else ordered
    amounts = st.sampled_from([Fraction(n) for n in (0, 0, 0, 1, 2, 4, 7, 60)] + [Fraction(5, 2), Fraction(1, 3)])
    lag, min_gap = draw(amounts) * unit_of(kind), NONE if ordered else draw(amounts) * unit_of(kind)
    return Log(pa.table(columns), draw(specs(kind)), lag, min_gap, ("k",) if keyed else (), ordered)


def cuts(log: Log) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, len(log.table)), max_size=4)


def retriggers(log: Log) -> bool:
    """Whether a pane comes out a third time, after one that comes out a second time later than another's first."""
    panes, _, _ = by_library(log)
    by_interval = [(pane.key, pane.start, pane.index) for pane in panes]
    return max((pane.index or 0 for pane in panes), default=0) > 1 and by_interval != sorted(by_interval)


# --- laws ---------------------------------------------------------------------------------------------------------


@settings(max_examples=300)
@given(logs(ordered=False), st.data())
def test_panes_in_arrival_order_are_those_of_the_reference_however_rows_are_cut(log: Log, data: st.DataObject) -> None:
    assert by_library(log, data.draw(cuts(log))) == expected(log)


@given(logs(ordered=True), st.data())
def test_panes_ordered_by_event_time_are_those_of_the_reference_however_rows_are_cut(
    log: Log, data: st.DataObject
) -> None:
    outcome = by_library(log, data.draw(cuts(log)))
    assert outcome == expected(log)
    assert {pane.timing for pane in outcome[0]} <= {"on_time"}
    assert not outcome[1]


def test_the_logs_of_the_laws_make_panes_come_out_again_and_again() -> None:
    enough = settings(max_examples=3_000, database=None, phases=[Phase.generate])
    assert retriggers(find(logs(ordered=False), retriggers, settings=enough, random=Random(0)))


@given(logs(ordered=False), st.data())
def test_explicit_watermarks_agree_with_the_reference(log: Log, data: st.DataObject) -> None:
    told_at = [value for value in ticks_of(log.table["et"]) if value is not None] or [0]
    instants = st.sampled_from(told_at).map(lambda value: Fraction(value) * seconds_per_unit(log.kind))
    places = sorted(data.draw(st.lists(st.integers(0, len(log.table)), max_size=8)))
    log = replace(log, table=log.table.filter(log.table["et"].is_valid()), lag=NONE, min_gap=NONE)
    events = [(min(p, len(log.table)), data.draw(instants)) for p in places]
    assert by_watermarks(log, events) == expected(log, events)


def by_watermarks(log: Log, events: Sequence[tuple[int, Fraction]]) -> Outcome:
    rows, pos = log.rows(0, len(log.table))
    intervals = make_intervals(log.kind, log.spec)
    watermarks, beyond = explicit(events, intervals, log.spec.discard_age, times(rows), pos)
    late = pos[beyond].tolist()
    return told(log, kept(log, late), watermarks, late)


@given(logs())
def test_panes_of_a_key_do_not_depend_on_the_slice_it_is_in(log: Log) -> None:
    watermarks, late = read(log, [])
    whole = told(log, kept(log, late), watermarks, late)[0]
    apart: list[Pane] = []
    for key in {pane.key for pane in whole}:
        mine = np.array([log.key == () or value.as_py() == key[0] for value in log.table[(log.key or ("et",))[0]]])
        others = [*late, *np.flatnonzero(~mine).tolist()]
        apart += told(log, kept(log, others), watermarks, late)[0]
    assert sorted(apart, key=place) == whole


# --- the cases of the original windows ----------------------------------------------------------------------------


def cases() -> list[dict[str, Any]]:
    with CASES.open(encoding="utf-8") as file:
        return [case for case in json.load(file) if case.get("window", "").startswith("timeInterval")]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["name"])
def test_event_time_case_of_spl_conforms(case: dict[str, Any]) -> None:
    spec = parse_window(case["window"])
    assert isinstance(spec, TimeInterval)
    events = case["events"]
    rows = [index for index, event in enumerate(events) if "row" in event]
    columns = {"et": array([int(Decimal(str(events[i]["row"]["et"])) * 10**6) for i in rows], pa.timestamp("us"))}
    key = (case["key"],) if "key" in case else ()
    columns |= {name: array([events[i]["row"][name] for i in rows], pa.int64()) for name in key}
    log = Log(pa.table(columns).rename_columns(["et", *(["k"] * len(key))]), spec, key=("k",) * len(key))
    stands = [index for index, event in enumerate(events) if "watermark" in event]
    given_at = [(sum(row < i for row in rows), Fraction(str(events[i]["watermark"]))) for i in stands]
    panes, _, _ = by_watermarks(log, given_at)
    got = [line(pane, [events[rows[r]]["row"]["id"] for r in pane.rows]) for pane in panes if pane.closed_by != "end"]
    assert sorted(got) == sorted(wanted(case))
    assert {pos_of(o["after"], rows) for o in case["expect"]} == {p.pos for p in panes if p.closed_by != "end"}


def line(pane: Pane, ids: list[int]) -> tuple[Any, ...]:
    key = str(pane.key[0]) if pane.key else ""
    return key, pane.start / 10**6, pane.end / 10**6, pane.index, pane.timing, pane.pos, ids


def wanted(case: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The outputs, those that are cut by group put together again."""
    rows = [index for index, event in enumerate(case["events"]) if "row" in event]
    out: dict[tuple[Any, ...], list[int]] = {}
    for o in case["expect"]:
        after = pos_of(o["after"], rows)
        out.setdefault((o.get("key", ""), *o["interval"], o["index"], o["timing"], after), []).extend(o["ids"])
    return [(*head, sorted(ids)) for head, ids in out.items()]


def pos_of(event: int, rows: Sequence[int]) -> int:
    """Position of the last row up to an event."""
    return sum(row <= event for row in rows) - 1


def test_all_event_time_cases_of_spl_are_run() -> None:
    names = {case["name"] for case in cases()}
    assert len(names) == 10
    assert all(name.startswith(("ti_", "unit_ET2")) for name in names)


# --- by hand ------------------------------------------------------------------------------------------------------


def log_of(times_: Sequence[Any], spec: TimeInterval, kind: pa.DataType | None = None, **asked: Any) -> Log:
    return Log(pa.table({"et": array(times_, kind or pa.int64())}), spec, **asked)


def test_a_row_on_time_is_in_one_run_of_panes_and_ordered_rows_give_ranges() -> None:
    #   et         1    6    11   16   21      duration 10, period 5
    #   [-5, 5)    x
    #   [0, 10)    x    x
    #   [5, 15)         x    x
    #   [10, 20)             x    x
    #   [15, 25)                  x    x
    #   [20, 30)                       x       row i is in the panes i and i + 1
    log = log_of([1, 6, 11, 16, 21], TimeInterval(Fraction(10), Fraction(5)))
    watermarks, late = read(log, [])
    panes = panes_of(log.spec, kept(log, late), watermarks)
    assert isinstance(panes.membership, Memberships)
    assert panes.membership.row.tolist() == [0, 1, 2, 3, 4]
    assert panes.membership.enter.tolist() == [0, 1, 2, 3, 4]
    assert panes.membership.leave.tolist() == [2, 3, 4, 5, 6]
    assert contiguous(panes.membership).all()


def test_gap_of_years_takes_no_time() -> None:
    #   et     0 s            10**9 s
    #   row    0              1
    #          [0 s, 1 s)     [10**9 s, 10**9 + 1 s)      and no pane between them
    log = log_of([0, 10**15], TimeInterval(Fraction(1), Fraction(1)), pa.timestamp("us"))
    assert [(p.start, p.end, p.rows) for p in by_library(log)[0]] == [
        (0, 10**6, (0,)),
        (10**15, 10**15 + 10**6, (1,)),
    ]


@pytest.mark.parametrize(
    ("kind", "spec", "bounds"),
    [
        (pa.timestamp("s"), TimeInterval(Fraction(1, 2), Fraction(1)), pa.timestamp("ms")),
        (pa.timestamp("s", "UTC"), TimeInterval(Fraction(1), Fraction(1), offset=Fraction(1, 10**6)), "us"),
        (pa.date32(), TimeInterval(Fraction(86400), Fraction(86400)), pa.date32()),
        (pa.int32(), TimeInterval(Fraction(3), Fraction(2)), pa.int64()),
        (pa.int32(), TimeInterval(Fraction(3), Fraction(1, 2)), pa.float64()),
        (pa.float32(), TimeInterval(Fraction(3), Fraction(2)), pa.float64()),
    ],
)
def test_bounds_have_a_type_that_holds_both_starts_and_ends(kind: pa.DataType, spec: TimeInterval, bounds: Any) -> None:
    wanted = pa.timestamp("us", "UTC") if bounds == "us" else bounds
    assert make_intervals(kind, spec).type == wanted
    log = log_of([0], spec, kind)
    panes = panes_of(spec, kept(log, []), read(log, [])[0])
    assert panes.start is not None
    assert panes.end is not None
    assert panes.start.type == panes.end.type == wanted


def test_panes_at_the_ends_of_64_bit_are_exact_or_refused() -> None:
    spec, top = TimeInterval(Fraction(10), Fraction(10)), 2**63 - 1
    fits = [top - 50, -(2**63) + 50]
    assert [len(p.rows) for p in by_library(log_of(fits, replace(spec, discard_age=Fraction(2**65))))[0]] == [1, 1]
    for beyond in (top, -(2**63)):
        with pytest.raises(DataError, match="does not reach"):
            by_library(log_of([beyond], spec))


def test_absurd_panes_are_refused() -> None:
    many = TimeInterval(Fraction(200_000), Fraction(1))
    with pytest.raises(ConfigError, match=r"intervalDuration of 200000\.0 s and a creationPeriod of 1\.0 s"):
        make_intervals(pa.timestamp("s"), many)
    with pytest.raises(ConfigError, match="finer than a nanosecond"):
        make_intervals(pa.timestamp("ns"), TimeInterval(Fraction(1, 2 * 10**9), Fraction(1, 10**9)))
    log = log_of(range(0, 4_000 * 10**6, 10**6), TimeInterval(Fraction(90_000), Fraction(1)))
    with pytest.raises(DataError, match="360,000,000 panes"):
        by_library(log)
