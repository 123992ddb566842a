"""Every case of ``tests/cases/spl_windows.json`` through the command line, over files and columns of marks.

What the command line cannot say stays with `unit.kinds.test_conformance`: rows that are NaN where the window looks
(they are rejected), watermarks but those that rows announce, and a clock that runs before the first row or goes on
after the last. What comes out of a case is cut to what such a clock brings out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from support.processes import Ran, table
from support.spl_cases import ALL, Case, Output, has_nan, order_of, outputs, read, records, table_of
from wincli.windowing.language.spec import Sliding, Time, Tumbling

Run = Callable[..., Ran]
FORMS = ("parquet", "csv")
"""These take turns."""
CASES = {case.name: case for case in ALL if not has_nan(case) and not case.watermarks}


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
