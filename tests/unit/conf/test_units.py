"""Units of a range: labels, ordinals, templates and partitions."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.places import mistakes
from wincli.conf.ranges import (
    Kind,
    Unit,
    before_date,
    check_kind,
    check_template,
    compact,
    fill,
    has_date,
    kind_of,
    output_of,
    partitions,
    unit_at,
    unit_of_plain_run,
    units,
)
from wincli.windowing.errors import ConfigError

KINDS: tuple[Kind, ...] = ("hour", "day", "week")
LAST = 2**63 // 10**12


def at(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


def refused(call: Any, *args: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        call(*args)
    return str(caught.value)


# Ranges


@pytest.mark.parametrize(
    ("start", "end", "kind", "labels", "first"),
    [
        ("2026-11-01", "2026-11-04", "day", ["2026-11-01", "2026-11-02", "2026-11-03"], 20758),
        ("2026-11-01T22", "2026-11-02", "hour", ["2026-11-01T22", "2026-11-01T23"], 20758 * 24 + 22),
        ("2026-11-01 22:00", "2026-11-02T00:00", "hour", ["2026-11-01T22", "2026-11-01T23"], 20758 * 24 + 22),
        ("2026-11-02", "2026-11-16", "week", ["2026-11-02", "2026-11-09"], 2966),
        ("1969-12-29", "1970-01-05", "week", ["1969-12-29"], 0),  # the Monday before 1970
        ("1970-01-01", "1970-01-02", "day", ["1970-01-01"], 0),
        ("1970-01-01", "1970-01-01T01", "hour", ["1970-01-01T00"], 0),
        ("2999-12-30T23", "2999-12-31", "hour", ["2999-12-30T23"], 9028775),
    ],
)
def test_units_of_a_range(start: str, end: str, kind: Kind, labels: list[str], first: int) -> None:
    found = units(start, end, kind)
    assert ([unit.label for unit in found], found[0].ordinal) == (labels, first)
    assert (found[0].start, found[-1].end) == (at(start), at(end))
    assert found[-1].ordinal < LAST  # positions fit into 64 bits


@pytest.mark.parametrize("case", mistakes("ranges")["ranges"], ids=lambda case: " ".join(case["range"]))
def test_ranges_that_are_none(case: dict[str, Any]) -> None:
    assert refused(units, *case["range"]) == case["says"]


@given(st.sampled_from(KINDS), st.integers(1, 50_000), st.integers(1, 40))
def test_a_range_is_its_units_in_a_row(kind: Kind, first: int, many: int) -> None:
    start, stop = unit_at(first, kind), unit_at(first + many, kind)
    found = units(start.label, stop.label, kind)
    assert [unit.ordinal for unit in found] == list(range(first, first + many))
    assert all(one.end == other.start for one, other in pairwise(found))
    assert sorted(unit.label for unit in found) == [unit.label for unit in found]
    assert [kind_of(unit.label, unit.ordinal) for unit in found] == [kind] * many


# Plain runs, and kinds that do not go together


def test_plain_runs_are_counted() -> None:
    assert unit_of_plain_run(None) == Unit("run-000001", 0, None, None)
    assert unit_of_plain_run(0) == Unit("run-000002", 1, None, None)
    assert kind_of("run-000002", 1) is None


def test_kinds_do_not_mix_in_a_state() -> None:
    days = [(unit.label, unit.ordinal) for unit in units("2026-11-02", "2026-11-04", "day")]
    check_kind(days, "day")
    check_kind([("run-000001", 0)], None)
    check_kind([], "week")
    assert refused(check_kind, days, "week") == (
        "the state holds days (2026-11-02), and this run adds weeks; use another --state"
    )
    assert refused(check_kind, days, None) == (
        "the state holds days (2026-11-02), and this run adds plain runs; "
        "say --start and --end for days, or use another --state"
    )
    assert refused(check_kind, [("run-000001", 0)], "hour") == (
        "the state holds plain runs (run-000001), and this run adds hours; use another --state"
    )


@pytest.mark.parametrize(
    ("ordinals", "text"),
    [
        ([], ""),
        ([0], "1970-01-01"),
        ([0, 1], "1970-01-01..1970-01-02"),
        ([0, 2, 3, 4], "1970-01-01, 1970-01-03..1970-01-05"),
    ],
)
def test_units_in_few_words(ordinals: list[int], text: str) -> None:
    assert compact(unit_at(ordinal, "day") for ordinal in ordinals) == text


# Templates


def test_templates_are_filled() -> None:
    unit = units("2026-11-01T05", "2026-11-01T06", "hour")[0]
    assert fill("in/{date}/x", unit) == "in/2026-11-01T05/x"
    assert fill("in/{date:%Y/%m/%d}/{date:%H}.csv", unit) == "in/2026/11/01/05.csv"
    assert fill("in/{data}", unit) == "in/{data}"
    assert [has_date(path) for path in ("in/{date}", "in/{date:%Y}", "in/date", "in/{date:}")] == [
        True, True, False, False,
    ]  # fmt: skip


def test_the_folder_that_all_units_share() -> None:
    paths = ("events/{date}.csv", "{date}/x.csv", "/{date}", "in/dt={date}/x", "s3://b/in/{date}/{date}", "a/b")
    assert [before_date(path) for path in paths] == ["events", ".", "/", "in", "s3://b/in", "a"]


LAYOUTS: list[tuple[str, Kind, str | None]] = [
    *(("{date}", kind, None) for kind in KINDS),
    *(
        (path, kind, None)
        for path in ("{date:%Y/%m/%d}", "{date:%y%m%d}", "{date:%Y-%j}", "{date:%Y}/{date:%m-%d}")
        for kind in KINDS[1:]
    ),
    ("{date:%G-W%V}", "week", None),
    ("{date:%Y%m%d%H}", "hour", None),
    ("{date:%F-%I%p}", "hour", None),
    ("{date:%Y-%m}", "day", "2026-11-03"),
    ("{date:%d}", "day", "2026-12-02"),
    ("{date:%m-%d}", "day", "2027-11-02"),
    ("{date:%j}", "day", "2027-11-02"),
    ("{date:%F}", "hour", "2026-11-02T01"),
    ("{date:%F-%I}", "hour", "2026-11-02T12"),
    ("{date:%A}", "week", "2026-11-09"),
    ("{date:%m-%d}", "week", "2037-11-02"),
    ("in", "day", "2026-11-03"),
]


@pytest.mark.parametrize(("path", "kind", "other"), LAYOUTS)
def test_a_layout_has_a_path_of_its_own_for_each_unit_or_is_refused(path: str, kind: Kind, other: str | None) -> None:
    first = units("2026-11-02", "2026-11-09", kind)[0]
    if other is None:
        check_template(path, first, kind)
        return
    assert refused(check_template, path, first, kind) == (
        f"{path} is {fill(path, first)} for {first.label} and for {other}; "
        f"write {{date}}, or a layout that is different for every {kind}"
    )


def test_outputs_of_units() -> None:
    unit = unit_at(20758, "day")
    assert output_of("out/{date}", unit, "dt") == "out/2026-11-01"
    assert output_of("out/", unit, "day") == "out/day=2026-11-01"
    assert output_of("s3://b/out", unit, "dt") == "s3://b/out/dt=2026-11-01"


# Partitions


def test_partitions_that_leave_it_open() -> None:
    assert refused(partitions, ["dt=2026-11-01", "day=2026-11-01"], "day", "in") == (
        "in holds folders day= and dt=; say which: in/day={date}"
    )
    assert refused(partitions, ["dt=2026-11-02", "dt=2026-11-03"], "week", "in") == (
        "in/dt=2026-11-03 is no week: 2026-11-03 is a Tuesday; say --unit day"
    )
