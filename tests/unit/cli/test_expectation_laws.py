"""Expectations over random logs, jobs and conditions are judged as the reference judges them, row at a time."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from references.expectations import Job, Node, Outcome, Row, columns_of, judged, run, text_of
from support.in_process import wincli_here
from support.processes import Ran, manifest, tree
from support.strategies import examples

SCHEMA = pa.schema([("ts", pa.int64()), ("user", pa.string()), ("x", pa.int64())])
COUNTS = ["rows_in", "rows_filtered", "rows_rejected", "late", "windows", "panes_hidden", "held", "first_at", "last_at"]
SHARES = ("rejected_share", "late_share")
EXCHANGE = ("--slice-size", "1KiB", "--split-size", "256B")
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


def test_the_reference_knows_null_and_failures() -> None:
    x, none = ("column", "x"), {"x": None, "y": 0}
    assert not judged(("=", x, x), Outcome(none, []))[0]
    assert judged(("not", ("and", ("=", ("column", "y"), ("value", 1)), ("=", x, x))), Outcome(none, []))[0]
    assert not judged(("or", ("is null", x), ("=", ("%", ("value", 1), ("column", "y")), x)), Outcome(none, []))[0]
    assert columns_of(("or", ("is null", x), ("=", ("%", ("value", 1), ("column", "y")), x))) == {"x", "y"}
