"""Laws of ``wincli why``: the rows of every window, and the rule that closed it, are those of the references.

Logs are small and random; the job is run, and each window of its result is explained from the files alone. Of every
tumbling policy, of two of a kind, and of several there are words for whichever ends a window.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from references import batched, event_time, growing, sliding
from references import tumbling as reference
from references.tumbling import Count, Delta, Pane, Row, read
from support.event_logs import logs as event_logs
from support.in_memory_engine import MemorySource
from support.in_process import Here, done
from support.strategies import examples
from support.window_cases import MORE, WINDOWS, WindowCase
from wincli.cli.inspection.explanation.panes_of_key import ALL, only_panes, panes_of, read_key
from wincli.cli.inspection.explanation.why import Explanation, MissingWindow, answer_json, answer_lines, explain
from wincli.cli.inspection.results.result import open_result_folder
from wincli.windowing.kinds.facts import Fact, KeyPane
from wincli.windowing.kinds.tumbling.policy import TumblingPolicy
from wincli.windowing.language.parser import POLICIES, parse_window
from wincli.windowing.planning.plan import make_plan

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


def grown(rows: Mapping[int, Row], key: Sequence[str], order: Sequence[str]) -> Sequence[Pane]:
    return growing.growing(rows, reference.Time(Fraction(6), CLOCK), Fraction(2), key=key, order=order).panes


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
    "time(6) every 2": ("t", grown),
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
    lasts = zip(times, draw(few), strict=True)
    columns["till"] = pa.array([start + (0, 1, 2, 9)[each % 4] * SECOND for start, each in lasts], CLOCK)
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
            done(Path(folder), "run", *words, "in", "out")
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
def test_rows_of_each_window_of_each_kind_are_those_that_the_run_put_in_it(
    case: WindowCase, count: int, tmp_path: Path
) -> None:
    @settings(max_examples=count)
    @given(log=logs(), has_key=st.booleans())
    def check(log: Log, has_key: bool) -> None:
        check_against_run(case, log, has_key, tmp_path)

    check()


def check_against_run(case: WindowCase, log: Log, has_key: bool, tmp_path: Path) -> None:
    spec, order, options = case
    is_keyed = "partitioned" in spec or (has_key and options.get("empty") != "mark")
    words = ["--window", spec, "--order-by", order if isinstance(order, str) else ",".join(order)]
    words += ["--key", "k"] if is_keyed else []
    words += [word for name, value in options.items() if name != "windows" for word in flags(name, value)]
    if "windows" in options:
        ((text, table),) = options["windows"].items()
        path = tmp_path / "windows.parquet"
        pq.write_table(table, path)
        words += ["--windows", text.replace("w ", f"w={path} ", 1)]
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


# Words for every policy


ONE_OF = {
    "count": "count(2)",
    "delta": "delta(t, 3)",
    "gap": "gap(t, 1)",
    "change": "change(u)",
    "punct": "punct(flag)",
    "when": "when(flag)",
    "while": "while(flag)",
    "from": "from(flag, until=a > 100)",
    "split": "split(abs(a - first(a)) > 2)",
    "reaches": "reaches(sum(a), 300)",
    "time": "time(4)",
    "calendar": "calendar(day)",
    "cron": 'cron("* * * * *")',
}
OTHERS = ["punct()", "count(1 + a % 3)", "delta(t, a % 9)", "gap(t, 2 + a % 3)", "delta(t, previous(count(), 3))",
        "gap(t, previous(count(), 1))", "count(previous(count(), 1) + 1)", "reaches(range(t), 6)",
        "reaches(min(x), 0.5)", "reaches(count(x), 2)", "change(flag, x)", "split(flag)", "from(flag) or gap(t, 3)",
        "punct(sum(a) > 250 and count(x) > 1)", "from(flag, until=max(x) > min(x))",
        "split(t - last(t) >= 2s) or split(count() >= previous(count(), 2, 0.5))"]  # fmt: skip
TWO = {
    "count": "count(3)", "delta": "delta(a, 1)", "gap": "gap(a, 1)", "change": "change(flag)", "punct": "punct(a > 99)",
    "reaches": "reaches(count(), 3)", "time": "time(3)",
}  # fmt: skip
OPENERS = ("when", "while", "from")
PAIRS = [f"{ONE_OF[name]} or {other}" for name, other in TWO.items()]
PAIRS += [f"{ONE_OF[one]} or {ONE_OF[two]}" for one, two in combinations(ONE_OF, 2) if not {one, two} <= {*OPENERS}]
SEVERAL = [" or ".join(ONE_OF[name] for name in names) for names in
       (["gap", "delta", "count", "change"], ["reaches", "punct", "when", "time"])]  # fmt: skip


@pytest.mark.parametrize("window", [*ONE_OF.values(), *OTHERS, *PAIRS, *SEVERAL])
@examples(12)
@given(table=event_logs())
def test_every_window_says_what_opened_it_and_what_closed_it(window: str, table: pa.Table) -> None:
    for pane, facts in explained(table, window):
        assert [fact.kind for fact in facts][:2] == ["opened", "closed"]
        assert facts[1].rule == pane.closed_by
        assert all(fact.text for fact in facts)
        if pane.cause_row is not None:
            assert facts[1].row == pane.pos(pane.cause_row)


def explained(table: pa.Table, window: str) -> list[tuple[KeyPane, tuple[Fact, ...]]]:
    """The panes of all rows, which have one key, each with its facts."""
    plan = only_panes(make_plan(parse_window(window), table.schema, [], ["t"]))
    found = panes_of(plan, read_key(plan, MemorySource([table], [[]]), "none", {}, ALL))
    panes = [found.pane(at) for at in range(len(found.panes))]
    return [(pane, tuple(plan.kind.explain(pane))) for pane in panes]


class _New(TumblingPolicy):
    """A policy that a builder adds by the guide, before it has words."""

    __slots__ = ()
    why = "new"
    needs = None  # type: ignore[assignment]


def test_each_policy_of_the_language_is_asked_and_one_without_words_is_named_by_its_close_reason() -> None:
    assert set(ONE_OF) == set(POLICIES) - {"or"}
    pane, _ = explained(pa.table({"t": [1, 2]}), "count(1)")[0]
    assert _New(None).explain(pane, 1).text == "the row at 2 ended it (new)"
