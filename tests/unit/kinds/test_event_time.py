"""Event-time panes (semantics section 5): the library agrees with the reference, in order of arrival and of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

import wincli
from references import tumbling as reference
from references.event_time import intervals
from references.tumbling import Pane, seconds_per_unit, type_of_ticks
from support import strategies as my
from support.pane_laws import check, library_table, panes_in
from support.strategies import DECIMALS, FLOATS, STEPS, TIMESTAMPS, array, examples, value_of
from wincli.windowing.clock.watermark import make_intervals
from wincli.windowing.errors import ConfigError, DataError
from wincli.windowing.language.spec import TimeInterval

KINDS = [pa.int32(), pa.int64(), pa.uint16(), *FLOATS, *DECIMALS, pa.date32(), *TIMESTAMPS]


@dataclass(frozen=True, slots=True)
class Log:
    """Rows with an event time ``et`` and perhaps a key ``k``, either of them null in places, and what is asked."""

    table: pa.Table
    spec: TimeInterval
    key: tuple[str, ...] = ()
    ordered: bool = False
    asked: dict[str, Fraction] = field(default_factory=dict)

    @property
    def kind(self) -> pa.DataType:
        return self.table.schema.field("et").type


def expected(log: Log, **options: Any) -> tuple[list[Pane], list[int], list[int]]:
    """Panes as they come, then the positions of the late and of the filtered rows."""
    rows = {pos: row for pos, row in reference.read(log.table).items() if row["et"] is not None}
    spec, order = log.spec, ("et",) if log.ordered else ()
    spans = spec.duration, spec.period, spec.discard_age, spec.offset
    where: dict[str, Any] = {"event_time": "et", "kind": log.kind, "key": log.key, "order": order}
    return intervals(rows, *spans, **where, **log.asked, **options)


def agree(log: Log, **options: Any) -> list[Pane]:
    panes, late, _ = expected(log, **options)
    stream = my.Stream(log.table, log.key, ("et",) if log.ordered else ())
    given: dict[str, Any] = {"event_time": "et", **log.asked, **options}
    check(stream, str(log.spec), panes, rejected="drop", **given)
    result = library_table(stream, str(log.spec), rejected="column", **given)
    rejected = [row for row in result["_rejected"].to_pylist() if row and row["reason"] == "late"]
    assert sorted(row["row"]["id"] for row in rejected) == [
        pos for pos in late if not log.key or log.table["k"][pos].is_valid
    ]
    return panes


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
def logs(draw: st.DrawFn, ordered: bool) -> Log:
    kind = draw(st.sampled_from(KINDS))
    size = draw(st.integers(0, 30))
    columns = {"id": pa.array(range(size), pa.int64()), "et": array(draw(event_times(kind, size)), kind)}
    keyed = draw(st.booleans())
    if keyed:
        keys = draw(st.lists(st.sampled_from([1, 1, 1, 2, 3, None]), min_size=size, max_size=size))
        columns["k"] = array(keys, pa.int64())
    amounts = st.sampled_from([Fraction(n) for n in (0, 0, 0, 1, 2, 4, 7, 60)] + [Fraction(5, 2), Fraction(1, 3)])
    asked = {"lag": draw(amounts) * unit_of(kind)} | ({} if ordered else {"min_gap": draw(amounts) * unit_of(kind)})
    if not ordered and draw(st.booleans()):
        asked["max_ahead"] = draw(amounts) * unit_of(kind)
    return Log(pa.table(columns), draw(specs(kind)), ("k",) if keyed else (), ordered, asked)


def retriggers(log: Log) -> bool:
    """Whether a pane comes out a third time, after one that comes out a second time later than another's first."""
    panes, _, _ = expected(log)
    by_interval = [(pane.key, pane.start, pane.index) for pane in panes]
    return max((pane.index or 0 for pane in panes), default=0) > 1 and by_interval != sorted(by_interval)


# --- laws ---------------------------------------------------------------------------------------------------------


@examples(300)
@given(logs(ordered=False))
def test_panes_in_arrival_order_are_those_of_the_reference(log: Log) -> None:
    agree(log)


@given(logs(ordered=True))
def test_panes_ordered_by_event_time_are_those_of_the_reference_and_none_is_late(log: Log) -> None:
    assert {pane.timing for pane in agree(log)} <= {"on_time"}


def test_the_logs_of_the_laws_make_panes_come_out_again_and_again() -> None:
    enough = settings(max_examples=3_000, database=None, phases=[Phase.generate])
    assert retriggers(find(logs(ordered=False), retriggers, settings=enough, random=Random(0)))


@given(logs(ordered=False), st.data())
def test_explicit_watermarks_agree_with_the_reference(log: Log, data: st.DataObject) -> None:
    table = log.table.filter(log.table["et"].is_valid())
    table = table.set_column(0, "id", pa.array(range(len(table)), pa.int64()))
    told_at = reference.ticks_of(table["et"]) or [0]
    instants = st.sampled_from(told_at).map(lambda value: Fraction(value) * seconds_per_unit(log.kind))
    places = sorted(data.draw(st.lists(st.integers(0, len(table)), max_size=8)))
    agree(Log(table, log.spec, log.key), watermarks=[(place, data.draw(instants)) for place in places])


# --- by hand ------------------------------------------------------------------------------------------------------


def panes_of(times: Sequence[Any], spec: TimeInterval, kind: pa.DataType) -> tuple[list[Pane], pa.Table]:
    table = pa.table({"id": range(len(times)), "et": array(times, kind)})
    result = library_table(my.Stream(table, (), ()), str(spec), event_time="et", rejected="drop")
    return panes_in(result), result


def test_gap_of_years_takes_no_time() -> None:
    found, _ = panes_of([0, 10**15], TimeInterval(Fraction(1), Fraction(1)), pa.timestamp("us"))
    assert [(p.start, p.end, p.rows) for p in found] == [(0, 10**6, (0,)), (10**15, 10**15 + 10**6, (1,))]


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        (pa.timestamp("s"), TimeInterval(Fraction(1, 2), Fraction(1))),
        (pa.timestamp("s", "UTC"), TimeInterval(Fraction(1), Fraction(1), offset=Fraction(1, 10**6))),
        (pa.date32(), TimeInterval(Fraction(86400), Fraction(86400))),
        (pa.int32(), TimeInterval(Fraction(3), Fraction(2))),
        (pa.int32(), TimeInterval(Fraction(3), Fraction(1, 2))),
        (pa.float32(), TimeInterval(Fraction(3), Fraction(2))),
    ],
    ids=str,
)
def test_bounds_have_a_type_that_holds_both_starts_and_ends(kind: pa.DataType, spec: TimeInterval) -> None:
    _, result = panes_of([0], spec, kind)
    types = {result.schema.field(name).type for name in ("window_start", "window_end")}
    assert types == {type_of_ticks(kind, spec.duration, spec.period, spec.offset)}


def test_panes_at_the_ends_of_64_bit_are_exact_or_refused() -> None:
    top = 2**63 - 1
    tens = TimeInterval(Fraction(10), Fraction(10))
    old = TimeInterval(Fraction(10), Fraction(10), Fraction(2**65))
    found, _ = panes_of([top - 50, -(2**63) + 50], old, pa.int64())
    assert [len(pane.rows) for pane in found] == [1, 1]
    for beyond in (top, -(2**63)):
        with pytest.raises(DataError, match="does not reach"):
            panes_of([beyond], tens, pa.int64())


def test_absurd_panes_are_refused() -> None:
    many = TimeInterval(Fraction(200_000), Fraction(1))
    with pytest.raises(ConfigError, match=r"intervalDuration of 200000\.0 s and a creationPeriod of 1\.0 s"):
        make_intervals(pa.timestamp("s"), many)
    with pytest.raises(ConfigError, match="finer than a nanosecond"):
        make_intervals(pa.timestamp("ns"), TimeInterval(Fraction(1, 2 * 10**9), Fraction(1, 10**9)))
    table = pa.table({"et": range(0, 4_000 * 10**6, 10**6)})
    with pytest.raises(DataError, match="360,000,000 panes"):
        wincli.aggregate(table, str(TimeInterval(Fraction(90_000), Fraction(1))), event_time="et")
