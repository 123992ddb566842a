"""Laws of ``wincli why``: the rows of every window, and the rule that closed it, are those of the references.

Logs are small and random; the job is run, and each window of its result is explained from the files alone.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from references import batched, event_time, sliding
from references import tumbling as reference
from references.tumbling import Count, Delta, Pane, Row, read
from support.in_process import Here, wincli_here
from support.window_cases import MORE, WINDOWS, WindowCase
from wincli.cli.inspection.explanation.why import (
    Explanation,
    MissingWindow,
    answer_json,
    answer_lines,
    explain,
)
from wincli.cli.inspection.results.result import open_result_folder
from wincli.windowing.kinds.facts import Fact

CLOCK = pa.timestamp("us")
SECOND = 1_000_000
START = 1_793_523_600
Log = tuple[pa.Table, int]
Panes = Callable[[Mapping[int, Row], Sequence[str], Sequence[str]], Sequence[Pane]]


def ruled(*policies: reference.Policy) -> Panes:
    return lambda rows, key, order: reference.tumbling(rows, *policies, key=key, order=order).panes


def slid(evict: Any, trigger: Any) -> Panes:
    return lambda rows, key, order: sliding.sliding(rows, evict, trigger, key=key, order=order, kind=CLOCK)


def flag(row: Row) -> bool:
    return bool(row["flag"])


def kept(**clause: Any) -> Panes:
    return lambda rows, key, order: batched.batched(rows, key=key, order=order, clock_kind=CLOCK, **clause)


def intervals(rows: Mapping[int, Row], key: Sequence[str], order: Sequence[str]) -> Sequence[Pane]:
    spans = [Fraction(each) for each in (4, 4, 3, 0)]
    return event_time.intervals(rows, *spans, event_time="t", kind=CLOCK, key=key, order=order)[0]


INT = pa.int64()
CASES: dict[str, tuple[str, Panes]] = {
    "count(3)": ("arrival", ruled(Count(3))),
    "delta(t, 4)": ("t", ruled(Delta("t", Fraction(4), CLOCK))),
    "delta(a, 2)": ("arrival", ruled(Delta("a", Fraction(2), INT))),
    "gap(t, 2)": ("t", ruled(reference.Gap("t", Fraction(2), CLOCK))),
    "gap(t, a)": ("t", ruled(reference.Gap("t", lambda _, row: row["a"], CLOCK))),
    "change(u)": ("t", ruled(reference.Change(("u",)))),
    "when(flag)": ("t", ruled(reference.When(flag))),
    "while(flag)": ("arrival", ruled(reference.While(flag))),
    "from(flag, until=a > 5)": ("t", ruled(reference.From(flag, lambda row: row["a"] > 5))),
    "punct(flag)": ("t", ruled(reference.Punct(flag))),
    "reaches(sum(a), 9)": ("t", ruled(reference.Reaches("sum", "a", Fraction(9), INT))),
    "time(3)": ("t", ruled(reference.Time(Fraction(3), CLOCK))),
    "gap(t, 2) or delta(a, 3) or count(4)": (
        "t",
        ruled(reference.Gap("t", Fraction(2), CLOCK), Delta("a", Fraction(3), INT), Count(4)),
    ),
    "sliding, count(3), count(2)": ("t", slid(Count(3), Count(2))),
    "sliding, delta(a, 2), delta(a, 1)": ("t", slid(Delta("a", Fraction(2), INT), Delta("a", Fraction(1), INT))),
    "within 3": ("t", kept(within=Fraction(3))),
    "retain 2 every 3": ("arrival", kept(retain=2, every=3)),
    "timeInterval, intervalDuration(4), discardAge(3)": ("arrival", intervals),
}


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """A log of two keys in falling and rising times, and where it is cut into two files."""
    size = draw(st.integers(1, 14))
    steps = draw(st.lists(st.sampled_from([0, 0, 1, 1, 2, 3, 5, -1, -4]), min_size=size, max_size=size))
    times, now = [], 0
    for step in steps:
        now += step
        times.append((START + now) * SECOND)
    few = st.lists(st.integers(0, 7), min_size=size, max_size=size)
    columns = {"t": pa.array(times, CLOCK), "a": pa.array(draw(few))}
    columns["u"] = pa.array(["pq"[each % 2] for each in draw(few)])
    columns["k"] = pa.array(["xy"[each % 2] for each in draw(few)])
    columns["flag"] = pa.array([each < 3 for each in draw(few)])
    columns["x"] = pa.array([[0.0, 0.25, 0.75, 1.5][each % 4] for each in draw(few)])
    columns["id"] = pa.array(range(size))
    return pa.table(columns), draw(st.integers(0, size))


@contextmanager
def result_of(log: Log, *words: str) -> Iterator[Any]:
    """Run a job over a log in two files of short row groups; yield its result from the folder where it ran."""
    table, cut = log
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "in").mkdir()
        for name, rows in (("a", table.slice(0, cut)), ("b", table.slice(cut))):
            pq.write_table(rows, Path(folder) / "in" / f"{name}.parquet", row_group_size=3)
        with mock.patch.object(Here, "warm"):  # the rows are too few for what is loaded ahead
            ran = wincli_here("run", *words, "in", "out", cwd=Path(folder))
        assert ran.code == 0, ran.err
        os.chdir(folder)
        try:
            yield open_result_folder("out")
        finally:
            os.chdir(before)


def answer(result: Any, window: int, **key: str) -> Explanation | MissingWindow:
    return explain(result, [f"{name}={value}" for name, value in key.items()], window, rows=4)


def closing(found: Explanation) -> Fact:
    (fact,) = [each for each in found.facts if each.kind == "closed"]
    return fact


MANY = pytest.mark.nightly


@pytest.mark.parametrize("count", [5, pytest.param(100, marks=MANY)])
@pytest.mark.parametrize("spec", CASES)
def test_rows_and_rule_of_each_window_are_those_of_the_reference(spec: str, count: int) -> None:
    @settings(max_examples=count)
    @given(log=logs(), has_key=st.booleans())
    def check(log: Log, has_key: bool) -> None:
        check_against_reference(spec, log, has_key)

    check()


def check_against_reference(spec: str, log: Log, has_key: bool) -> None:
    order, panes_of = CASES[spec]
    key = ["k"] if has_key else []
    event = ["--event-time", "t"] if spec.startswith("timeInterval") else []
    words = ["--window", spec, "--order-by", order, *event, *(["--key", "k"] if key else [])]
    panes = panes_of(read(log[0]), key, [] if order == "arrival" else [order])
    with result_of(log, *words) as result:
        for pane in panes:
            if pane.mark == "only" or pane.number is None:
                continue
            found = answer(result, pane.number, **dict(zip(key, pane.key or (), strict=True)))
            assert isinstance(found, Explanation), (pane, found)
            assert found.rows.pos.tolist() == list(pane.rows)
            if pane.rows:
                check_facts(spec, found, pane, read(log[0]))
        for each in "xy" if key else "-":
            check_account(answer(result, 99, **({"k": each} if key else {})), log[0])


def check_facts(spec: str, found: Explanation, pane: Pane, rows: Mapping[int, Row]) -> None:
    """The rule, the row that it names, and its distance are those of the reference; every row told is real."""
    closed = closing(found)
    assert closed.rule == pane.closed_by
    if pane.pos is not None and pane.pos >= 0 and closed.row is not None:
        assert closed.row == pane.pos
    if "sliding" in spec or "timeInterval" in spec or "ithin" in spec or "retain" in spec:
        return
    (opened,) = [each for each in found.facts if each.kind == "opened"]
    assert opened.row == pane.rows[0]
    if pane.closed_by in ("gap", "delta"):
        assert closed.row == pane.pos
        name = "a" if pane.closed_by == "delta" and "delta(a" in spec else "t"
        other = pane.rows[-1 if pane.closed_by == "gap" else 0]
        apart = Fraction(rows[pane.pos or 0][name] - rows[other][name]) / (SECOND if name == "t" else 1)
        assert Fraction(closed.numbers["distance"]) == apart
    lines = list(answer_lines(found, 80))
    assert all(len(line) <= 80 for line in lines)
    assert lines[0].startswith(f"window {pane.number}")
    assert [each["row"] for each in answer_json(found)["facts"]] == [each.row for each in found.facts]


def check_account(found: Explanation | MissingWindow, table: pa.Table) -> None:
    """For a window that a key does not have, each of its rows is told of once."""
    assert isinstance(found, MissingWindow)
    mine = table if not found.key else table.filter(pa.compute.equal(table["k"], found.key["k"]))
    assert found.rows == mine.num_rows == sum(found.counts.values())
    assert list(answer_lines(found, 80))


FEW = [(case, 3) for case in (*WINDOWS[::6], *MORE[::7])]
EVERY = [pytest.param(case, 30, marks=MANY) for case in (*WINDOWS, *MORE)]


@pytest.mark.parametrize(("case", "count"), [*FEW, *EVERY], ids=str)
def test_rows_of_each_window_of_each_kind_are_those_that_the_run_put_in_it(case: WindowCase, count: int) -> None:
    @settings(max_examples=count)
    @given(log=logs(), has_key=st.booleans())
    def check(log: Log, has_key: bool) -> None:
        check_against_run(case, log, has_key)

    check()


def check_against_run(case: WindowCase, log: Log, has_key: bool) -> None:
    spec, order, options = case
    is_keyed = "partitioned" in spec or (has_key and options.get("empty") != "mark")
    words = ["--window", spec, "--order-by", order if isinstance(order, str) else ",".join(order)]
    words += ["--key", "k"] if is_keyed else []
    words += [word for name, value in options.items() for word in flags(name, value)]
    with result_of(log, *words, "--agg", "ids=collect(id)") as result:
        for row in pa.concat_tables(result.rows.tables()).to_pylist():
            if row["window"] is None:
                continue
            found = answer(result, row["window"], **({"k": row["k"]} if is_keyed else {}))
            assert isinstance(found, Explanation)
            assert found.rows.pos.tolist() == (row["ids"] or [])
            if row["ids"]:
                assert closing(found).rule == row["closed_by"]


def flags(name: str, value: Any) -> list[str]:
    flag = f"--{name.replace('_', '-')}"
    return [flag] if value is True else [] if value is False else [flag, str(value)]
