"""Every case of ``tests/cases`` through the command line.

What the command line cannot say stays with `unit.kinds.test_conformance` and `unit.kinds.test_batched`:
rows that are NaN where the window looks (they are rejected), watermarks but those that rows announce, and a clock that
runs before the first row or goes on after the last. What comes out of a case is cut to what such a clock brings out.
A batched case that is cut runs on to the end, though, wherever the end brings out no more than a later clock would.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from references import tumbling as reference
from support import batched_cases as batched
from support.processes import Ran, table
from support.spl_cases import ALL, Case, Output, has_nan, order_of, outputs, read, records, table_of
from wincli.windowing.language.spec import Sliding, Time, Tumbling

Run = Callable[..., Ran]
FORMS = ("parquet", "csv")
"""These take turns."""
CASES = {case.name: case for case in ALL if not has_nan(case) and not case.watermarks}


# --- the cases of SPL ---------------------------------------------------------------------------------------------


def ends(case: Case) -> list[int]:
    """How many rows there are before each mark."""
    return [case.rows_before(index) for index in case.marks]


def forms(at: int, case: Case) -> tuple[str, ...]:
    """How a case is written down: in files, if no rows come after the last mark, and with a column of marks."""
    files = (FORMS[at % 2],) if not case.marks or ends(case)[-1] == len(case.rows) else ()
    return (*files, "column") if case.marks else files


def put(case: Case, folder: Path, form: str) -> None:
    """Write the rows of a case: a file up to each mark, since the end of a file is a mark, or a column of marks."""
    rows = table_of(case)
    after = [stop - 1 for stop in ends(case)]
    rows = rows.append_column("m", pa.array([i in after for i in range(len(rows))]))
    write(rows, ends(case) if case.marks and form != "column" else [len(rows)], folder, form)


def write(rows: pa.Table, stops: list[int], folder: Path, form: str) -> None:
    """Write a file of the rows up to each stop."""
    folder.mkdir()
    for i, (start, stop) in enumerate(zip([0, *stops], stops, strict=False)):
        if form == "csv":
            pc.write_csv(rows.slice(start, stop - start), folder / f"{i}.csv")
        else:
            pq.write_table(rows.slice(start, stop - start), folder / f"{i}.parquet")


def arguments(case: Case, form: str) -> list[str]:
    args = ["-w", case.window, "-a", "ids=collect(id)", "--at-end", "drop"]
    args += ["--marks", "m" if form == "column" else "auto"]
    args += ["-k", case.key] if case.key else []
    args += ["--order-by", ",".join(order_of(case)) or "arrival"]
    args += ["--partial"] if case.partial else []
    args += ["--emit-evicted"] if case.emit_evicted else []
    args += ["--empty", "mark"] if isinstance(case.spec, Tumbling) and timed(case) and not case.key else []
    return [*args, "log", "out"]


def timed(case: Case) -> bool:
    """Whether ticks bring panes out."""
    match case.spec:
        case Tumbling(Time()) | Sliding(_, Time()):
            return True
        case _:
            return False


def wanted(case: Case, form: str) -> Counter[Output]:
    """What comes out while the clock runs, from the first row to the last.

    A column has no place for a second mark behind one row.
    """
    at = [case.events[index]["row"].get("at", 0) for index in case.rows]
    seen = [o for o in case.expect if o.tick is None or min(at) <= o.tick <= max(at)]
    return Counter(o for o in seen if form != "column" or o.ids is not None or o.after not in case.marks)


def check(case: Case, ran: Ran, out: Path, form: str) -> None:
    assert (ran.code, ran.out) == (0, ""), ran.err
    assert outputs(case, [read(case, record) for record in records(table(out))]) == wanted(case, form)


@pytest.mark.parametrize(
    ("name", "form"), [(name, form) for at, (name, case) in enumerate(CASES.items()) for form in forms(at, case)]
)
def test_case(run: Run, tmp_path: Path, name: str, form: str) -> None:
    case = CASES[name]
    put(case, tmp_path / "log", form)
    check(case, run(*arguments(case, form)), tmp_path / "out", form)


@pytest.mark.parametrize("name", ["tumbling_delta_int", "tumbling_punct_partitioned", "pe_sliding_tupleCount4"])
def test_case_on_spark(spark_run: Run, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    put(case, tmp_path / "log", "parquet")
    check(case, spark_run(*arguments(case, "parquet")), tmp_path / "out", "parquet")


# --- batched windows ----------------------------------------------------------------------------------------------

BATCHED = {case.name: case for case in batched.cases()}
EMIT = {"istream": "entered", "rstream": "left"}


def runs_on(case: batched.Case) -> bool:
    """Whether the end brings out what a later clock would, and no batch that is short of rows."""
    return case.spec.within is not None


def in_sight(case: batched.Case, told: batched.TimedOutputs) -> batched.TimedOutputs:
    """What comes out up to the last row, or to the end where that goes on.

    An unbatched ``within`` drains at the end; else the end brings out the first tick after the last row.
    """
    last = max(record["at"] for record in case.records)
    if runs_on(case) and case.spec.every is None:
        return told
    if runs_on(case):
        last = case.origin + (math.floor((last - case.origin) / case.spec.every) + 1) * case.spec.every
    return [(second, value) for second, value in told if second <= last]


def batched_arguments(case: batched.Case) -> list[str]:
    args = ["-w", case.window, "--order-by", "at", "--at-end", "flush" if runs_on(case) else "drop"]
    args += [f"--origin={float(case.origin)}"] if case.spec.every is not None and runs_on(case) else []
    return [*args, "log"]


def extra(case: batched.Case, *whats: str) -> list[str]:
    """The arguments for what comes out: aggregates, all in one run, by group or not, or rows."""
    if whats[0] in EMIT:
        return ["--emit", EMIT[whats[0]]]
    if whats[0] == "group_sum":
        return ["--group-by", ",".join(case.group_by), "-a", f"group_sum=sum({case.measure})"]
    return [f"--agg={what}={what}({'' if what == 'count' else case.measure})" for what in whats]


def seconds_of(column: pa.ChunkedArray) -> list[Fraction]:
    return [Fraction(value) * reference.seconds_per_unit(column.type) for value in reference.ticks_of(column)]


def lots(case: batched.Case, out: Path, what: str) -> dict[str, batched.TimedOutputs]:
    """Rows by the pane that they entered or left with, and when that came out."""
    found = table(out)
    items = zip(*(found[name].to_pylist() for name in case.columns), strict=True)
    told = zip(found["window"].to_pylist(), seconds_of(found["_at"]), items, strict=True)
    panes = groupby(told, key=lambda row: row[:2])
    return {what: [(second, [row[2] for row in some]) for (_, second), some in panes]}


def aggregates(_: batched.Case, out: Path, *whats: str) -> dict[str, batched.TimedOutputs]:
    found = table(out)
    return {what: list(zip(seconds_of(found["_at"]), found[what].to_pylist(), strict=True)) for what in whats}


def groups(case: batched.Case, out: Path, what: str) -> dict[str, batched.TimedOutputs]:
    found = table(out)
    told = zip(found[case.group_by[0]].to_pylist(), found[what].to_pylist(), strict=True)
    return {what: batched.lots_of(zip(seconds_of(found["_at"]), told, strict=True))}


BY_OUTPUT: list[tuple[Callable[..., dict[str, batched.TimedOutputs]], tuple[str, ...]]] = [
    (aggregates, tuple(batched.AGGREGATES)),
    (groups, ("group_sum",)),
    (lots, ("istream",)),
    (lots, ("rstream",)),
]


@pytest.mark.parametrize(("name", "form"), [(name, FORMS[at % 2]) for at, name in enumerate(BATCHED)])
def test_batched_case(run: Run, tmp_path: Path, name: str, form: str) -> None:
    case = BATCHED[name]
    rows = case.table(pa.timestamp("us") if form == "parquet" else pa.float64())
    write(rows, [len(rows) // 2, len(rows)], tmp_path / "log", form)
    for outputs_of, whats in BY_OUTPUT:
        told = {what: in_sight(case, case.expected[what]) for what in whats if what in case.expected}
        if told:
            assert run(*extra(case, *told), *batched_arguments(case), whats[0]).code == 0
            assert outputs_of(case, tmp_path / whats[0], *told) == told


# --- both ---------------------------------------------------------------------------------------------------------


def test_all_cases_but_those_with_nan_or_watermarks_are_here() -> None:
    assert len(CASES) == len(ALL) - sum(has_nan(case) or bool(case.watermarks) for case in ALL)
    assert len(CASES) == 41
    assert len(BATCHED) == 21


def test_few_outputs_are_cut() -> None:
    cut = {name: (case.wanted - wanted(case, "parquet")).total() for name, case in CASES.items()}
    assert {name: count for name, count in cut.items() if count} == {
        "tumbling_time5_partitioned": 2,
        "sliding_time3_time1": 3,
        "sliding_count2_time1": 2,
        "sliding_count2_time1_incomplete": 3,
        "sliding_delta2_time1": 2,
    }
    said = [(case, told) for case in BATCHED.values() for told in case.expected.values()]
    assert sum(len(told) - len(in_sight(case, told)) for case, told in said) == 11
    assert sum(len(told) for _, told in said) == 173
