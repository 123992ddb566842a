"""Keys that go: the evictions, the pieces they cut keys into, and the panes of these, against the reference.

partitionCount(2), tumbling count(3)    a b a c: the third key makes one too many, and b came in longest ago
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from references import calendar as reference_calendar
from references import eviction as reference_eviction
from references import sliding as reference_sliding
from references import tumbling as reference
from support import strategies as my
from support.eviction_jobs import Job, Out, by_library, order_of, panes_of, unit_of
from wincli.windowing.kinds.evictions import Evictions
from wincli.windowing.kinds.registry import kind_of
from wincli.windowing.language import spec
from wincli.windowing.language.clock_policies import Cron
from wincli.windowing.language.row_policies import Change
from wincli.windowing.rows.sequence import Sequences, build

CLOCKS = [
    *(pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.timestamp("us"), pa.timestamp("ns")),
    *(pa.int64(), pa.uint32(), pa.float64(), pa.float32(), pa.decimal128(18, 3), pa.date32()),
]
MANY = max(200, settings.default.max_examples)  # there are many pairs of windows and evictions


# --- both sides ---------------------------------------------------------------------------------------------------


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
        case Change(names):
            return reference.Change(names)
        case spec.Time(seconds):
            return reference.Time(seconds, job.table[job.order[0]].type, job.origin)
        case spec.Calendar(unit, tz, at, start):
            return calendar_of(job.table[job.order[0]], unit, tz, at, start)
        case Cron(_, tz):  # at half past two: the same instants as the days of a calendar that begin then
            days = calendar_of(job.table[job.order[0]], "day", tz, dt.time(2, 30), "mon")
            return replace(days, reason="cron")
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


@st.composite
def whens(draw: st.DrawFn, kind: pa.DataType) -> spec.Time:
    return spec.Time(draw(st.sampled_from([1, 2, 3, 4, 10, 50])) * unit_of(kind))


@st.composite
def rises(draw: st.DrawFn, table: pa.Table) -> spec.Delta:
    return spec.Delta("a", draw(my.amounts(table["a"].type)))


@st.composite
def policies(draw: st.DrawFn, table: pa.Table) -> spec.Policy:  # noqa: PLR0911 - one for each
    kind = draw(st.sampled_from(["count", "delta", "gap", "change", "time", "calendar", "cron", "punct", "flag"]))
    match kind:
        case "count":
            return spec.Count(draw(st.integers(1, 5)))
        case "time":
            return draw(whens(table["at"].type))
        case "calendar":
            return spec.Calendar(draw(st.sampled_from(["day", "month"])), "Europe/Paris", dt.time(2, 30))
        case "cron":
            return Cron("30 2 * * *", "Europe/Paris")
        case "change":
            return Change(("flag",))
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
    found = kind_of(job.window).evictions(job.sequences, job.placed, job.setting)
    cut = data.draw(st.integers(0, 6))
    whole = panes_of(job, job.sequences, job.placed, found)
    keys = job.table["key"].to_numpy()
    parts = [panes_of_slice(job, job.sequences, mine, found) for mine in (keys < cut, keys >= cut)]
    assert parts[0] + parts[1] == whole


def panes_of_slice(job: Job, sequences: Sequences, mine: Any, found: Evictions) -> list[Out]:
    rows = sequences.rows.append_column("pos", pa.array(sequences.pos)).filter(pa.array(mine[sequences.pos]))
    own = build(rows, rows["pos"].to_numpy(), job.key, job.order, sequences.rows.schema.names)
    return panes_of(job, own, job.placed, found)
