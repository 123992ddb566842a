"""Every tumbling case of ``tests/cases/spl_windows.json`` through the command line.

What the command line cannot say stays with `tests.unit.test_conformance`: rows that are NaN where the window looks
(they are rejected), a clock that goes on after the last row, and marks where there is no row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from tests.cli.running import MASTER, Ran, table, wincli
from tests.unit.test_conformance import RUNNABLE, Case, has_nan, table_of

Run = Callable[..., Ran]
CASES = {case.name: case for case in RUNNABLE if not has_nan(case)}
OWN_PROCESS = ("tumbling_delta_int", "tumbling_punct_partitioned", "tumbling_time5_partitioned")


def ends(case: Case) -> list[int]:
    """How many rows there are before each mark."""
    return [case.rows_before(index) for index in case.marks]


def put(case: Case, folder: Path, form: str) -> None:
    """Write the rows of a case: a file up to each mark, since the end of a file is a mark, or a column of marks."""
    rows = table_of(case)
    after = [stop - 1 for stop in ends(case)]
    rows = rows.append_column("m", pa.array([i in after for i in range(len(rows))]))
    stops = ends(case) if case.marks and form != "column" else [len(rows)]
    folder.mkdir()
    for i, (start, stop) in enumerate(zip([0, *stops], stops, strict=False)):
        if form == "csv":
            pc.write_csv(rows.slice(start, stop - start), folder / f"{i}.csv")
        else:
            pq.write_table(rows.slice(start, stop - start), folder / f"{i}.parquet")


def arguments(case: Case, form: str) -> list[str]:
    args = [
        "-w",
        case.window,
        "-a",
        "ids=collect(id)",
        "--at-end",
        "drop",
        "--marks",
        "m" if form == "column" else "auto",
    ]
    args += ["-k", case.key] if case.key else []
    args += ["--order-by", "at"] if "time" in case.words else ["--order-by", "arrival"]
    return [*args, "log", "out"]


def wanted(case: Case, form: str) -> Counter[Any]:
    """Key and ids of what comes out; ids None for a mark without rows.

    The clock stands still at the last row, and a column has no place for a second mark behind one row.
    """
    last = max((e["row"].get("at", 0) for e in case.events if "row" in e), default=0)
    outputs = [o for o in case.expect if o.tick is None or o.tick <= last]
    if form == "column":
        outputs = [o for o in outputs if o.ids is not None]
    return Counter((o.key, o.ids) for o in outputs)


def came_out(case: Case, out: Path) -> Counter[Any]:
    read = table(out)
    keys = read[case.key].to_pylist() if case.key else [None] * len(read)
    pairs = zip(read["ids"].to_pylist(), read["_mark"].to_pylist(), strict=True)
    ids = [None if mark == "only" else tuple(some) for some, mark in pairs]
    return Counter((None if key is None else str(key), some) for key, some in zip(keys, ids, strict=True))


def check(case: Case, ran: Ran, out: Path, form: str) -> None:
    assert (ran.code, ran.out) == (0, ""), ran.err
    assert came_out(case, out) == wanted(case, form)


@pytest.mark.parametrize("form", ["parquet", "csv", "column"])
@pytest.mark.parametrize("name", CASES)
def test_case(run: Run, tmp_path: Path, name: str, form: str) -> None:
    case = CASES[name]
    put(case, tmp_path / "log", form)
    check(case, run(*arguments(case, form)), tmp_path / "out", form)


@pytest.mark.parametrize("name", OWN_PROCESS)
def test_case_in_a_process_of_its_own(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    put(case, tmp_path / "log", "parquet")
    ran = wincli("run", "--master", MASTER, *arguments(case, "parquet"), cwd=tmp_path)
    check(case, ran, tmp_path / "out", "parquet")


def test_all_cases_but_those_with_nan_are_here() -> None:
    assert len(CASES) == len(RUNNABLE) - sum(map(has_nan, RUNNABLE))
    assert len(CASES) == 13
