"""Keys that go: the evictions, the pieces they cut keys into, and the panes of these, against the reference.

partitionCount(2), tumbling count(3)    a b a c: the third key makes one too many, and b came in longest ago
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from references import calendar as reference_calendar
from references import eviction as reference_eviction
from references import sliding as reference_sliding
from references import tumbling as reference
from support import spl_cases as conformance
from support import strategies as my
from wincli.windowing.errors import DataError
from wincli.windowing.kinds.context import WindowContext
from wincli.windowing.kinds.eviction.evictions import Evictions, evictions
from wincli.windowing.kinds.eviction.key_lifetimes import Lifetimes, lifetimes, merge
from wincli.windowing.kinds.sliding.panes import sliding_panes
from wincli.windowing.kinds.tumbling.panes import tumbling_panes
from wincli.windowing.language import spec
from wincli.windowing.language.parser import parse_window
from wincli.windowing.panes.membership import gathered
from wincli.windowing.panes.panes import AT_END, BY_TICK, CLOSED_BY, Panes
from wincli.windowing.sequences.marks import NO_FILE, Marks, in_order
from wincli.windowing.sequences.sequence import Sequences, build, one_batch

Evicting = spec.Tumbling | spec.Sliding
CLOCKS = [
    *(pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.timestamp("us"), pa.timestamp("ns")),
    *(pa.int64(), pa.uint32(), pa.float64(), pa.float32(), pa.decimal128(18, 3), pa.date32()),
]
QUARTER = Fraction(1, 4)
MANY = max(200, settings.default.max_examples)  # there are many pairs of windows and evictions


# --- both sides ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Out:
    """A pane as both sides tell it: ``tick`` where the clock brought it out, ``pos`` where a row or mark did."""

    key: tuple[Any, ...]
    number: int
    rows: tuple[int, ...]
    closed_by: str
    tick: Any
    pos: int | None


@dataclass(frozen=True, slots=True)
class Job:
    """A table in arrival order, and how to read it. A mark at p stands before row p."""

    table: pa.Table
    window: Evicting
    key: tuple[str, ...] = ("key",)
    order: tuple[str, ...] = ()
    marks: tuple[int, ...] = ()
    emit_evicted: bool = False
    partial: bool = False
    origin: Fraction = Fraction(0)
    ahead: int = 0  # by how many steps the clock goes on after the last row

    @property
    def clock(self) -> Any:
        """Where the clock stands, in its column's own terms."""
        if not (self.order and len(self.table)):
            return None
        kind = self.table["at"].type
        steps = self.ahead * unit_of(kind) / reference.seconds_per_unit(kind)
        latest = max(reference.ticks_of(self.table["at"]))
        return (
            latest + type(latest)(steps.numerator) / steps.denominator if steps.denominator > 1 else latest + int(steps)
        )

    @property
    def sequences(self) -> Sequences:
        rows = one_batch(self.table)
        return build(rows, np.arange(len(self.table)), self.key, self.order, rows.schema.names)

    @property
    def placed(self) -> Marks:
        after = np.array(self.marks, np.int64) - 1
        order = self.table.select(list(self.order)).combine_chunks()
        rows = one_batch(order.take(pa.array(np.maximum(after, 0)))) if len(order) else one_batch(order)
        return in_order(Marks(rows, after, np.full(len(after), NO_FILE)))

    @property
    def setting(self) -> WindowContext:
        clock = self.clock
        if isinstance(clock, Decimal):
            clock = int(clock.scaleb(self.table["at"].type.scale))
        return WindowContext(clock, origin=self.origin, partial=self.partial)


def is_evicting(case: conformance.Case) -> bool:
    return isinstance(case.spec, Evicting) and case.spec.eviction is not None


def by_library(job: Job) -> list[Out]:
    sequences, marks = job.sequences, job.placed
    found = evictions(job.window, sequences, marks, job.setting)
    return panes_of(job, sequences, marks, found)


def panes_of(job: Job, sequences: Sequences, marks: Marks, found: Evictions) -> list[Out]:
    cut = lifetimes(found, sequences)
    pieces = replace(sequences, bounds=cut.bounds)
    if isinstance(job.window, spec.Tumbling):
        panes = tumbling_panes(job.window, pieces, marks, job.setting)
    else:
        panes = sliding_panes(job.window, pieces, replace(job.setting, last_tick=cut.last_tick))
    panes = merge(job.window, panes, cut, sequences, len(marks), job.emit_evicted)
    check_causes(job, cut)
    return told(sequences, panes, np.concatenate([sequences.pos, marks.pos, cut.evictions.causes.pos]))


def check_causes(job: Job, cut: Lifetimes) -> None:
    """What evictions say of the rows that caused them is what these rows hold."""
    causes = cut.evictions.causes
    behind = np.flatnonzero(causes.pos >= 0)
    rows = one_batch(job.table.select(list(job.order)))
    if job.order:
        assert causes.take(behind).rows.equals(rows.take(pa.array(causes.pos[behind])))


def told(sequences: Sequences, panes: Panes, pos: Any) -> list[Out]:
    assert sequences.keys is not None
    keys = list(zip(*(reference.ticks_of(column) for column in sequences.keys.columns), strict=True))
    ticks = [None] * len(panes) if panes.at is None else reference.ticks_of(pa.chunked_array([panes.at]))
    rows, bounds = gathered(panes.membership, 0, len(panes))
    return [
        Out(
            keys[panes.key[p]],
            int(panes.number[p]),
            tuple(sequences.pos[rows[bounds[p] : bounds[p + 1]]].tolist()),
            CLOSED_BY[panes.closed_by[p]],
            ticks[p] if panes.cause[p] == BY_TICK else None,
            None if panes.cause[p] == AT_END else -1 if panes.cause[p] == BY_TICK else int(pos[panes.cause[p]]),
        )
        for p in range(len(panes))
    ]


def by_reference(job: Job) -> list[Out]:
    rows, eviction = reference.read(job.table), job.window.eviction
    assert eviction is not None
    kind = job.table[job.order[0]].type if job.order else None
    both: dict[str, Any] = {"key": job.key, "order": job.order, "clock": job.clock}
    both["eviction"] = (eviction.kind, eviction.amount)
    if isinstance(job.window, spec.Sliding):
        policies = policy_of(job, job.window.evict), policy_of(job, job.window.trigger)
        panes = reference_sliding.sliding(rows, *policies, kind=kind, partial=job.partial, **both)
    else:
        own: dict[str, Any] = {"kind": kind, "emit_evicted": job.emit_evicted, "marks": job.marks}
        panes = reference_eviction.tumbling(rows, policy_of(job, job.window.policy), **own, **both)
    out = [
        Out(p.key, p.number, p.rows, p.closed_by, p.at[0] if p.pos == -1 and p.at else None, p.pos)
        for p in panes
        if p.key is not None and p.number is not None and p.closed_by is not None
    ]
    return sorted(out, key=lambda p: (p.key, p.number))


def policy_of(job: Job, policy: spec.Policy) -> Any:  # noqa: PLR0911 - one for each
    match policy:
        case spec.Count(n):
            return reference.Count(n)
        case spec.Delta(name, amount):
            return reference.Delta(name, amount, job.table[name].type)
        case spec.Gap(name, amount):
            return reference.Gap(name, amount, job.table[name].type)
        case spec.Time(seconds):
            return reference.Time(seconds, job.table[job.order[0]].type, job.origin)
        case spec.Calendar(unit, tz, at, start):
            return calendar_of(job.table[job.order[0]], unit, tz, at, start)
        case spec.Punct(None):
            return reference.Punct()
        case spec.Punct(name):
            return reference.PunctColumn(str(name))


def calendar_of(clock: pa.ChunkedArray, unit: str, tz: str, at: dt.time, start: str) -> reference_calendar.Calendar:
    seconds = [Fraction(value) * reference.seconds_per_unit(clock.type) for value in reference.ticks_of(clock)] or [0]
    begun = reference_calendar.starts(unit, tz, at, start, min(seconds), max(seconds))
    return reference_calendar.Calendar(Fraction(1), clock.type, beginnings=tuple(begun))


# --- any window, any eviction -------------------------------------------------------------------------------------


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Rows of a few keys whose clock goes on by quarters of a second, or its own unit, and now and then by minutes."""
    size = draw(st.integers(0, 30))
    kind = draw(st.sampled_from(CLOCKS))
    steps = draw(st.lists(st.sampled_from([0, 0, 1, 1, 2, 3, 4, 5, 9, 14, 400]), min_size=size, max_size=size))
    begin = draw(st.sampled_from([0, 0, 1_600_000_000 * 4, -9, 86_400 * 4 * 100])) * (kind != pa.uint32())
    places = list(accumulate(steps, initial=begin))[1:]
    keys = draw(st.integers(1, 6))
    columns = {
        "key": pa.array(draw(st.lists(st.integers(0, keys - 1), min_size=size, max_size=size)), pa.int64()),
        "at": clock_of(draw(st.permutations(places)) if draw(st.booleans()) else places, kind),
        "a": draw(my.column(draw(st.sampled_from([pa.int64(), pa.int8(), pa.float64(), pa.uint64()])), size)),
        "flag": pa.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), pa.bool_()),
    }
    return pa.table(columns)


def clock_of(quarters: list[int], kind: pa.DataType) -> pa.Array:
    """Quarters of a second as values of a type; what is coarser counts its own units instead."""
    if pa.types.is_floating(kind):
        return pa.array([q % 10**6 / 4 for q in quarters], kind)
    if pa.types.is_decimal(kind):
        return pa.array([Decimal(q % 10**6) / 4 for q in quarters], kind)
    if pa.types.is_timestamp(kind) and kind.unit != "s":
        per_quarter = {"ms": 250, "us": 250_000, "ns": 250_000_000}[kind.unit]
        return pa.array([q * per_quarter for q in quarters], pa.int64()).cast(kind)
    whole = pa.array([q % 10**6 for q in quarters], pa.int32())
    return (whole if kind == pa.date32() else whole.cast(pa.int64())).cast(kind)


def unit_of(kind: pa.DataType) -> Fraction:
    """How many seconds the smallest step of `clock_of` is."""
    if kind == pa.date32():
        return Fraction(86_400)
    return Fraction(1) if pa.types.is_integer(kind) or kind == pa.timestamp("s") else QUARTER


@st.composite
def whens(draw: st.DrawFn, kind: pa.DataType) -> spec.Time:
    return spec.Time(draw(st.sampled_from([1, 2, 3, 4, 10, 50])) * unit_of(kind))


@st.composite
def rises(draw: st.DrawFn, table: pa.Table) -> spec.Delta:
    return spec.Delta("a", draw(my.amounts(table["a"].type)))


@st.composite
def policies(draw: st.DrawFn, table: pa.Table) -> spec.Policy:
    kind = draw(st.sampled_from(["count", "delta", "gap", "time", "calendar", "punct", "flag"]))
    match kind:
        case "count":
            return spec.Count(draw(st.integers(1, 5)))
        case "time":
            return draw(whens(table["at"].type))
        case "calendar":
            return spec.Calendar(draw(st.sampled_from(["day", "month"])), "Europe/Paris", dt.time(2, 30))
        case "punct" | "flag":
            return spec.Punct("flag" if kind == "flag" else None)
    rise = draw(rises(table))
    return rise if kind == "delta" else spec.Gap("a", rise.amount)


@st.composite
def slides(draw: st.DrawFn, table: pa.Table, least: int) -> spec.SlidingPolicy:
    counts = st.integers(least, 5).map(spec.Count)
    return draw(st.one_of(counts, rises(table), whens(table["at"].type)))


@st.composite
def goings(draw: st.DrawFn, table: pa.Table) -> spec.PartitionEviction:
    kind = draw(st.sampled_from(["partitionAge", "partitionCount", "tupleCount"]))
    if kind != "partitionAge":
        return spec.PartitionEviction(kind, Fraction(draw(st.integers(1, 9 if kind == "tupleCount" else 4))))
    age = draw(st.sampled_from([1, 2, 3, 5, 8, 11])) * unit_of(table["at"].type)
    return spec.PartitionEviction(kind, age if draw(st.booleans()) else age + Fraction(9, 10))


def order_of(window: Evicting) -> tuple[str, ...]:
    return ("at",) if spec.needs_clock(window) else ()


@st.composite
def tumbling_jobs(draw: st.DrawFn) -> Job:
    table = draw(tables())
    window = spec.Tumbling(draw(policies(table)), True, draw(goings(table)))
    marks = draw(my.marks(len(table))) if window.policy == spec.Punct() else []
    order = draw(st.sampled_from([order_of(window), ("at",), ("at", "a")]))
    return Job(table, window, order=order, marks=tuple(marks), emit_evicted=draw(st.booleans()))


@st.composite
def sliding_jobs(draw: st.DrawFn) -> Job:
    table = draw(tables())
    window = spec.Sliding(draw(slides(table, 0)), draw(slides(table, 1)), True, draw(goings(table)))
    order = draw(st.sampled_from([order_of(window), ("at",), ("at", "a")]))
    return Job(table, window, order=order, partial=draw(st.booleans()))


@st.composite
def aged_jobs(draw: st.DrawFn) -> Job:
    """Windows that ticks end or look at, and keys that grow old between the ticks."""
    table = draw(tables())
    unit = unit_of(table["at"].type)
    time = spec.Time(draw(st.sampled_from([2, 5, 12, 30])) * unit)
    age = spec.PartitionEviction("partitionAge", draw(st.sampled_from([3, 4, 8, 13])) * unit)
    tumbling = spec.Tumbling(time, True, age)
    window = draw(st.sampled_from([tumbling, tumbling, spec.Sliding(draw(slides(table, 0)), time, True, age)]))
    options: dict[str, Any] = {"emit_evicted": draw(st.booleans()), "partial": draw(st.booleans())}
    ahead, origin = draw(st.sampled_from([0, 0, 3, 7, 20, 100])), draw(st.integers(-9, 9)) * unit
    return Job(table, window, order=("at",), origin=origin, ahead=ahead, **options)


@settings(max_examples=MANY)
@given(aged_jobs())
def test_keys_that_age_at_ticks_agree_with_the_reference(job: Job) -> None:
    assert by_library(job) == by_reference(job)


@settings(max_examples=MANY)
@given(tumbling_jobs())
def test_tumbling_windows_with_eviction_agree_with_the_reference(job: Job) -> None:
    assert by_library(job) == by_reference(job)


@settings(max_examples=MANY)
@given(sliding_jobs())
def test_sliding_windows_with_eviction_agree_with_the_reference(job: Job) -> None:
    assert by_library(job) == by_reference(job)


# --- each key is on its own again ---------------------------------------------------------------------------------


@given(tumbling_jobs() | sliding_jobs() | aged_jobs(), st.data())
def test_slices_of_keys_give_their_part_of_the_whole(job: Job, data: st.DataObject) -> None:
    found = evictions(job.window, job.sequences, job.placed, job.setting)
    cut = data.draw(st.integers(0, 6))
    whole = panes_of(job, job.sequences, job.placed, found)
    keys = job.table["key"].to_numpy()
    parts = [panes_of_slice(job, job.sequences, mine, found) for mine in (keys < cut, keys >= cut)]
    assert parts[0] + parts[1] == whole


def panes_of_slice(job: Job, sequences: Sequences, mine: Any, found: Evictions) -> list[Out]:
    rows = sequences.rows.append_column("pos", pa.array(sequences.pos)).filter(pa.array(mine[sequences.pos]))
    own = build(rows, rows["pos"].to_numpy(), job.key, job.order, sequences.rows.schema.names)
    return panes_of(job, own, job.placed, found)


# --- by hand and by the original ----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [c for c in conformance.ALL if is_evicting(c)], ids=lambda case: case.name)
def test_evicting_cases_of_spl_conform(case: conformance.Case) -> None:
    assert isinstance(case.spec, Evicting)
    table = conformance.table_of(case)
    marks = tuple(case.rows_before(index) for index in case.marks)
    assert case.key
    job = Job(table, case.spec, (case.key,), order_of(case.spec), marks, case.emit_evicted)
    ids = table["id"].to_pylist()
    came = [
        conformance.Came(out.key[0], None, out.pos, [ids[pos] for pos in out.rows], out.closed_by, True)
        for out in by_library(job)
        if out.closed_by != "end" and out.pos is not None
    ]
    conformance.check(case, conformance.outputs(case, came))


def test_all_evicting_cases_of_spl_are_run() -> None:
    assert sum(map(is_evicting, conformance.ALL)) == 9


def panes(window: str, keys: str, at: list[float] | None = None, **more: Any) -> list[str]:
    """The panes of rows 1, 2, .. of keys of one letter, as ``key: rows why @ the row or instant that caused it``."""
    columns = {"key": list(keys), "at": at or list(range(len(keys)))}
    job = Job(pa.table(columns), parse_window(window), order=("at",) if at else (), emit_evicted=True, **more)
    return [
        f"{out.key[0]}{out.number}: {','.join(str(row + 1) for row in out.rows)} {out.closed_by} "
        + ("-" if out.pos is None else f"at {out.tick}" if out.pos < 0 else f"by {out.pos + 1}")
        for out in by_library(job)
    ]


def test_partition_count_evicts_the_oldest_key() -> None:
    #   row    1 2 3 4 5 6
    #   a0    [1 . 3]            evicted by 5: b is a third key, and a is the older one
    #   b0      [2]              evicted by 4: c is a third key
    #   b1            [5 6]      at the end
    #   c0          [4]          at the end
    assert panes("count(3), partitioned, partitionCount(2)", "abacbb") == [
        "a0: 1,3 evicted by 5",
        "b0: 2 evicted by 4",
        "b1: 5,6 end -",
        "c0: 4 end -",
    ]


def test_a_key_evicts_itself_before_its_window_is_full() -> None:
    #   row    1 2 3 4
    #   a0    [1 2 3]        evicted by 3: more than 2 rows are open, before count(3) can close them
    #   a1          [4]      at the end; sliding, it is never full
    assert panes("count(3), partitioned, tupleCount(2)", "aaaa") == ["a0: 1,2,3 evicted by 3", "a1: 4 end -"]
    assert panes("sliding, count(3), count(3), partitioned, tupleCount(2)", "aaaa") == []


def test_key_without_open_rows_is_not_evicted() -> None:
    #   row    1 2 3 4 5
    #   a0    [1 2]            full at 2: a has no open row when b begins
    #   b0        [3 4]        full at 4
    #   a1            [5]      at the end
    assert panes("count(2), partitioned, partitionCount(1)", "aabba") == [
        "a0: 1,2 count by 2",
        "a1: 5 end -",
        "b0: 3,4 count by 4",
    ]


def test_partition_age_is_checked_at_rows_marks_and_ticks() -> None:
    #   count(9)   at   0.9      2.5   3.0
    #                   a0[1]                   evicted by 3: 2.1 s old at 3.0, and 1.6 s at 2.5
    #                            b0[2]
    #                                  c0[3]
    #   punct()    at   0.0      |     9.0      the mark closes a0[1] first
    #                   a0[1]
    #                                  b0[2]
    #   time(10)   at   0.0     10.0   11.0     14.5
    #                   a0[1]   tick                    evicted at the tick 10.0: 10 s old
    #                                  a1[2]            evicted by 3: 3.5 s old
    #                                           b0[3]
    age = "partitioned, partitionAge(2)"
    assert panes(f"count(9), {age}", "abc", [0.9, 2.5, 3.0]) == [
        "a0: 1 evicted by 3",
        "b0: 2 end -",
        "c0: 3 end -",
    ]
    assert panes(f"punct(), {age}", "ab", [0.0, 9.0], marks=(1,)) == ["a0: 1 punct by 1", "b0: 2 end -"]
    assert panes(f"time(10), {age}", "aab", [0.0, 11.0, 14.5]) == [
        "a0: 1 evicted at 10.0",
        "a1: 2 evicted by 3",
        "b0: 3 end -",
    ]


def test_tick_evicts_all_old_keys_if_one_is_too_old() -> None:
    #   at      0.0   1.0   2.0   4.0   6.0   6.5
    #   a       [1]         [1]
    #   b             [2]   [2]                        at 4.0 a is older than 2 s, and so is b: both go, no pane
    #   c                                     [3]      at the end
    window = "sliding, count(9), time(2), partitioned, partitionAge(2)"
    assert panes(window, "abc", [0.0, 1.0, 6.5], partial=True) == [
        "a0: 1 trigger at 2.0",
        "b0: 2 trigger at 2.0",
        "c0: 3 end -",
    ]


def test_sliding_key_emptied_by_time_is_not_evicted_and_keeps_its_baseline() -> None:
    #   at     0     10     10.5   10.6
    #   x, a   0            1      3        the row at 0 is older than 1 s at 10: x is empty, so it is not evicted for y
    #   y            0
    #   panes                      [2]      before the 3: more than 2 above the 0 of the first row; at the end [2 3]
    columns = {"key": list("xyxx"), "at": [0, 10, 10.5, 10.6], "a": [0, 0, 1, 3]}
    job = Job(
        pa.table(columns), parse_window("sliding, time(1), delta(a, 2), partitioned, partitionCount(1)"), order=("at",)
    )
    assert [(out.key, out.rows, out.closed_by) for out in by_library(job)] == [
        (("x",), (2,), "trigger"),
        (("x",), (2, 3), "end"),
    ]


@pytest.mark.parametrize("eviction", ["partitionAge(1)", "partitionCount(1)", "tupleCount(1)"])
def test_sliding_key_emptied_by_time_keeps_its_trigger_count(eviction: str) -> None:
    #   at      0.0   5.0   9.0
    #   x       1           3        row 1 is older than 1 s at 5, but it counts: row 3 is the second of x
    #   y             2
    #   panes               [3]
    assert panes(f"sliding, time(1), count(2), partitioned, {eviction}", "xyx", [0.0, 5.0, 9.0]) == [
        "x0: 3 trigger by 3",
    ]


def test_empty_key_at_a_tick_does_not_evict_others() -> None:
    """At 4.5 x is 4 s old and empty, y 3 s old and not; without the first the second is not looked at."""
    #   at     0.9   1.1   ...   4.5
    #   x      1                 -        3.6 s old: gone with time(3.5), else evicted together with y
    #   y            2           [2]      3.4 s old
    window = "sliding, time(3.5), time(4.5), partitioned, partitionAge(3)"
    assert panes(window, "xy", [0.9, 1.1], ahead=14) == ["y0: 2 trigger at 4.5"]
    assert panes(window.replace("3.5", "3.6"), "xy", [0.9, 1.1], ahead=14) == []


def test_gap_of_years_takes_no_time() -> None:
    #   at     0   1   2   3   4   5   6   ... years ...   10**15
    #   row    0                       |                   1         row 0 is older than 5 s at tick 6
    window = "sliding, count(9), time(1), partitioned, partitionAge(5)"
    job = Job(pa.table({"key": [0, 0], "at": [0, 10**15]}), parse_window(window), order=("at",))
    found = evictions(job.window, job.sequences, job.placed, job.setting)
    assert found.rows.tolist() == [1]
    assert found.by_tick.tolist() == [True]
    assert found.tick.tolist() == [6]


def test_ages_beyond_all_clocks_evict_nothing() -> None:
    far = pa.array([-(2**61), 0, 2**61], pa.int64())
    fine = pa.array([Decimal(-5).scaleb(-20), Decimal(0), Decimal(2**62).scaleb(-20)], pa.decimal128(38, 20))
    for clock in (far, far.cast(pa.float64(), safe=False), far.cast(pa.timestamp("ns")), fine):
        table = pa.table({"key": [0, 1, 2], "at": clock})
        job = Job(table, parse_window(f"count(9), partitioned, partitionAge({10**30})"), order=("at",))
        assert len(evictions(job.window, job.sequences, job.placed, job.setting).rows) == 0


@pytest.mark.parametrize("far", [2**62, -(2**62), 1e300, float("inf")])
def test_clock_too_far_from_zero_for_ages_is_an_error(far: float) -> None:
    job = Job(
        pa.table({"key": [0], "at": [far]}), parse_window("count(9), partitioned, partitionAge(1)"), order=("at",)
    )
    with pytest.raises(DataError, match="too far from 0 to count ages"):
        evictions(job.window, job.sequences, job.placed, job.setting)


def test_ticks_too_fine_for_ages_are_an_error() -> None:
    table = pa.table({"key": [0], "at": pa.array([2**63 - 10**6], pa.timestamp("ns"))})
    window = parse_window("sliding, count(9), time(0.000001), partitioned, partitionAge(1)")
    job = Job(table, window, order=("at",))
    with pytest.raises(DataError, match="64 bit"):
        evictions(job.window, job.sequences, job.placed, job.setting)
