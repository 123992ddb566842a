"""Expectations of runs and of units: what they see, what fails and what only warns, over any cut of the input.

Over random logs, jobs and conditions they are judged as the reference judges them, row at a time.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from references.expectations import Job, Node, Outcome, Row, judged, run, text_of
from support.day_results import day, span
from support.in_process import done, wincli_here
from support.processes import Ran, manifest, tree
from support.strategies import examples

EXCHANGE = ("--slice-size", "1KiB", "--split-size", "256B")
ASKED = ("run", "-w", "count(10)", "-k", "user", "-a", "top=max(latency)", "--order-by", "ts")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Three days of 100 rows, ten minutes apart; a row a day has no user. Latency grows day by day."""
    for n in (1, 2, 3):
        start = 1_793_491_200 + 86_400 * (n - 1)  # 2026-11-01
        columns = {
            "ts": pa.array([(start + at * 600) * 10**6 for at in range(100)], pa.timestamp("us")),
            "user": [None if at == 50 else "ab"[at % 2] for at in range(100)],
            "latency": [float(at * n) for at in range(100)],
        }
        (tmp_path / "log" / f"dt={day(n)}").mkdir(parents=True)
        pq.write_table(pa.table(columns), tmp_path / "log" / f"dt={day(n)}" / "a.parquet", row_group_size=9)
    return tmp_path


def expecting(*texts: str) -> list[str]:
    return [word for text in texts for word in ("--expect", text)]


HOLDS = {
    "rows_rejected = 3 and late = 0 and rejected_share = 0.01": {"rows_rejected": 3, "late": 0, "rejected_share": 0.01},
    "first_at = timestamp '2026-11-01 00:00:00' and last_at = timestamp '2026-11-03 16:30:00'": {
        "first_at": "2026-11-01 00:00:00",
        "last_at": "2026-11-03 16:30:00",
    },
    "all(top >= 0 and user is not null)": {"rows": 30, "true": 30},
    "all(closed_by in ('count', 'end'))": {"rows": 30, "true": 30},
    "any(user = 'a')": {"rows": 30, "true": 15},
}


def test_what_holds_and_what_only_warns_is_in_the_manifest_and_the_status(log: Path) -> None:
    ran = done(log, *ASKED, *expecting(*HOLDS, "warn: all(top < 290)"), "log", "out")
    told = manifest(log / "out")["expectations"]
    assert {one["expect"].lower(): one["saw"] for one in told[:-1]} == HOLDS
    assert [(one["on_fail"], one["holds"]) for one in told] == [*[("fail", True)] * len(HOLDS), ("warn", False)]
    assert any(note.startswith("the expectation all(top < 290) does not hold: 2 of 30 rows") for note in ran.notes)
    lines = done(log, "status", "out").out.splitlines()
    assert "expected: any(user = 'a') holds in 1 unit" in lines
    assert "expected: all(top < 290) does not hold in out" in lines
    unordered = expecting("first_at is null", "seconds_since_last is null")
    done(log, "run", "-w", "count(10)", "-k", "user", "--order-by", "arrival", *unordered, "log", "other")


@pytest.mark.parametrize(
    ("words", "more"),
    [
        ("rows_in > 1000 does not hold: rows_in is 300", ()),
        ("rejected_share < 0.01 does not hold: rejected_share is 0.01", EXCHANGE),
        ("rows_in % late = 0 does not hold: rows_in is 300, late is 0", ()),
        ("all(top < 290) does not hold: 2 of 30 rows are not so, the first: user='a', window=", ()),
        ("all(top < 290) does not hold: 2 of 30 rows are not so, the first: user=", EXCHANGE),
        ("any(user = 'c') does not hold: none of 30 rows is so", EXCHANGE),
        ("seconds_since_last < 0 does not hold: seconds_since_last is ", ()),
    ],
)
def test_what_does_not_hold_commits_nothing(log: Path, words: str, more: tuple[str, ...]) -> None:
    before = tree(log)
    ran = done(log, *ASKED, *expecting("rows_in > 0", words.partition(" does")[0]), *more, "log", "out", code=4)
    assert f"the expectation {words}" in ran.err
    assert "; nothing was committed; mend the data, or change --expect" in ran.err
    assert tree(log) == before


@pytest.mark.parametrize("state", [(), ("--state", "st")])
def test_units_of_a_range_are_checked_one_by_one(log: Path, state: tuple[str, ...]) -> None:
    days = (*span(1, 3), *state, "log", "out")
    ran = done(log, *ASKED, *expecting("all(top < 250)", "warn: held < 5"), *days, code=4)
    assert f"{day(3)}: the expectation all(top < 250) does not hold" in ran.err
    assert sorted(path.name for path in (log / "out").iterdir()) == [f"dt={day(1)}", f"dt={day(2)}"]
    told = json.loads(done(log, "status", "st" if state else "out", "--json").out)["units"]
    assert [[one["holds"] for one in unit["expectations"]] for unit in told] == [[True, not state], [True, not state]]
    done(log, *ASKED, *expecting("all(top < 300)", "warn: held < 5"), *days)
    assert len(list((log / "out").iterdir())) == 3


@pytest.mark.parametrize(
    ("expect", "words"),
    [
        ("row_in > 3", "did you mean 'rows_in'?\n  row_in > 3\n  ^^^^^^"),
        ("warn: all(tip < 3)", "did you mean 'top'?"),
        ("rows_in > 'x'", "--expect"),
        ("all(rows_in > 3)", "'rows_in' is not there"),
    ],
)
def test_mistakes_end_the_run_before_it_reads(log: Path, expect: str, words: str) -> None:
    assert words in done(log, *ASKED, "--expect", expect, "log", "out", code=2).err
    assert not (log / "out").exists()


# Laws

SCHEMA = pa.schema([("ts", pa.int64()), ("user", pa.string()), ("x", pa.int64())])
COUNTS = ["rows_in", "rows_filtered", "rows_rejected", "late", "windows", "panes_hidden", "held", "first_at", "last_at"]
SHARES = ("rejected_share", "late_share")
ROWS = st.lists(
    st.fixed_dictionaries({
        "ts": st.integers(0, 9) | st.integers(0, 9) | st.none(),
        "user": st.sampled_from(["a", "b", "a", "b", None]),
        "x": st.integers(-3, 6) | st.none(),
    }),
    max_size=14,
)  # fmt: skip


def conditions(names: list[str], shares: tuple[str, ...] = (), can_fail: bool = True) -> st.SearchStrategy[Node]:
    """Conditions over columns of integers, and over shares, which are compared only: nulls and failures are likely."""
    column = st.tuples(st.just("column"), st.sampled_from(names))
    number = st.tuples(st.just("value"), st.integers(0, 9))
    amount = column | st.tuples(st.just("%"), column, column | number) if can_fail else column
    compared = st.tuples(st.sampled_from(["<", "<=", ">", ">=", "=", "<>"]), amount, amount | number)
    simple = compared | st.tuples(st.just("is null"), amount)
    if shares:
        limit = st.tuples(st.just("value"), st.sampled_from([0.0, 0.25, 0.5]))
        simple |= st.tuples(st.sampled_from(["<", ">="]), st.tuples(st.just("column"), st.sampled_from(shares)), limit)
    return st.recursive(
        simple,
        lambda inner: st.tuples(st.sampled_from(["and", "or"]), inner, inner) | st.tuples(st.just("not"), inner),
        max_leaves=3,
    )


OVER_ROWS = st.tuples(st.sampled_from(["all", "any"]), conditions(["n", "top"]))
EXPECTATIONS = st.lists(conditions(COUNTS, SHARES) | OVER_ROWS, min_size=1, max_size=6)
JOBS = st.builds(
    Job, st.integers(1, 4), st.none() | conditions(["ts", "x"]), st.none() | conditions(["n", "top"], can_fail=False),
    st.sampled_from(["flush", "drop"]),
)  # fmt: skip


def command(job: Job, expect: list[str], *more: str) -> list[str]:
    filters = [("--where", job.where), ("--having", job.having)]
    return [
        *("run", "-q", "-w", f"count({job.size})", "-k", "user", "--order-by", "ts", "--at-end", job.at_end),
        *("-a", "n=count()", "-a", "top=max(x)", *more),
        *(word for flag, node in filters if node is not None for word in (flag, text_of(node))),
        *(word for text in expect for word in ("--expect", text)),
    ]


def write(folder: Path, rows: list[Row], name: str = "log") -> None:
    (folder / name).mkdir()
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), folder / name / "a.parquet", row_group_size=4)


def check(out: Path, ran: Ran, expectations: list[Node], wanted: Outcome) -> None:
    """A run whose expectations only warn says of each what the reference says."""
    assert ran.code == 0, ran.err
    found = manifest(out)["expectations"]
    assert [(one["holds"], one["saw"]) for one in found] == [judged(each, wanted) for each in expectations]


@examples(25)
@given(ROWS, JOBS, EXPECTATIONS, st.sampled_from([(), EXCHANGE]))
def test_a_run_is_judged_as_row_at_a_time(rows: list[Row], job: Job, expectations: list[Node], cuts: Any) -> None:
    wanted = run(job, rows)
    texts = [text_of(each) for each in expectations]
    with TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, rows)
        warn = command(job, [f"warn: {text}" for text in texts], *cuts, "log", "out")
        check(folder / "out", wincli_here(*warn, cwd=folder), expectations, wanted)
        before = tree(folder)
        ran = wincli_here(*command(job, texts, *cuts, "log", "other"), cwd=folder)
        broken = [each for each in expectations if not judged(each, wanted)[0]]
        assert (ran.code, ran.err.count(" does not hold: ")) == (4 if broken else 0, len(broken))
        assert (tree(folder) == before) == bool(broken)


@examples(25)
@given(
    ROWS, ROWS, st.integers(1, 4), st.lists(conditions(["late", "held", "rows_rejected", "first_at"], ("late_share",)))
)
def test_units_on_a_state_are_judged_by_their_own_rows(
    first: list[Row], second: list[Row], size: int, expectations: list[Node]
) -> None:
    job = Job(size, None, None, "hold")
    carried: dict[str, list[Row]] = {}
    with TemporaryDirectory() as name:
        folder = Path(name)
        last = None
        for number, rows in enumerate((first, second)):
            write(folder, rows, f"log{number}")
            warn = [f"warn: {text_of(each)}" for each in expectations]
            args = command(job, warn, "--state", "st", f"log{number}", f"out{number}")
            wanted = run(job, rows, carried, last)
            check(folder / f"out{number}", wincli_here(*args, cwd=folder), expectations, wanted)
            last = wanted.numbers["last_at"]
