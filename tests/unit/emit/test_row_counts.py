"""Windows that overlap give rows many times over: how many is known before they are written, and there is a limit."""

from __future__ import annotations

import time
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from support.in_process import wincli_here
from wincli import aggregate
from wincli.windowing.emit.result_tables import row_batches, rows_out
from wincli.windowing.language.options import Options
from wincli.windowing.language.parser import parse_window
from wincli.windowing.planning.plan import make_plan

SCHEMA = pa.schema({"x": pa.int64(), "k": pa.int64()})
COUNTED = [
    "retain all",
    *(f"retain {most}{every}" for most in (1, 3, 7) for every in ("", " every 1", " every 2", " every 5", " every 9")),
    *(f"sliding, count({most}), count({step})" for most in (0, 1, 3, 7) for step in (1, 2, 5, 9)),
]


@pytest.mark.parametrize("window", COUNTED)
def test_predicted_row_count_is_the_number_of_rows_written(window: str) -> None:
    for partial, at_end in product([False, True] if window.startswith("sliding") else [False], ["flush", "drop"]):
        options: dict[str, Any] = {"emit": "rows", "partial": partial, "at_end": at_end}
        plan = make_plan(parse_window(window), SCHEMA, (), "arrival", None, Options(**options))
        for rows in (0, 1, 2, 3, 6, 7, 8, 20):
            table = pa.table({"x": range(rows), "k": [0] * rows}, schema=SCHEMA)
            got = aggregate(table, window, order_by="arrival", **options)
            written = got.filter(pa.compute.not_equal(got["_mark"].cast(pa.string()).fill_null(""), "only"))
            assert rows_out(plan, rows) == written.num_rows, (options, rows)


@pytest.mark.parametrize(
    ("window", "key"),
    [("count(3)", ()), ("within 5", ()), ("retain 3 with unique k", ()), ("partition by k retain 3", ()),
     ("retain all", ["k"])],
)  # fmt: skip
def test_what_depends_on_values_or_keys_is_not_known_before(window: str, key: Any) -> None:
    plan = make_plan(parse_window(window), SCHEMA, key, ["x"], None, Options(emit="rows"))
    assert rows_out(plan, 100) is None


def log(folder: Path, rows: int) -> str:
    parquet.write_table(pa.table({"x": range(rows), "k": [n % 2 for n in range(rows)]}), folder / "log.parquet")
    return "log.parquet"


def test_retain_all_of_200000_rows_is_refused_before_it_starts(tmp_path: Path) -> None:
    began = time.monotonic()
    ran = wincli_here("run", log(tmp_path, 200_000), "out", "-w", "retain all", "--emit", "rows", cwd=tmp_path)
    assert ran.code == 4
    assert "retain all with --emit rows makes 20,000,100,000 rows of 200,000" in ran.notes
    assert ran.err.splitlines()[-1] == (
        "wincli: error: retain all with --emit rows would write 20,000,100,000 rows, made of 200,000, more than the "
        "1,000,000,000 allowed; nothing was written; ask for aggregates, or allow more with --max-rows-out"
    )
    assert not (tmp_path / "out").exists()
    assert time.monotonic() - began < 60


def made_of_few(plan: Any, sequences: Any, *rest: Any) -> Any:
    """Makes rows only of what kernels are warmed with."""
    assert len(sequences) < 100
    return row_batches(plan, sequences, *rest)


@pytest.mark.parametrize(
    ("window", "more"),
    [
        ("retain all", ("-k", "k")),
        ("sliding, time(50), count(1)", ("--order-by", "x")),
        ("within 50", ("--order-by", "x")),
        ("partition by k within 50", ("--order-by", "x")),
        ("timeInterval, intervalDuration(50), creationPeriod(1)", ("--event-time", "x")),
    ],
)
def test_rows_derived_from_panes_are_counted_before_they_are_built(
    tmp_path: Path, window: str, more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("run", log(tmp_path, 1000), "out", "-w", window, *more, "--emit", "rows", "--max-rows-out")
    monkeypatch.setattr("wincli.windowing.emit.result_tables.row_batches", made_of_few)
    ran = wincli_here(*asked, "20000", cwd=tmp_path)
    assert ran.code == 4
    assert "rows and more, more than the 20,000 allowed" in ran.err
    monkeypatch.undo()
    assert wincli_here(*asked, "1000000", cwd=tmp_path).code == 0


@pytest.mark.parametrize(("window", "emit"), [("count(10)", "rows"), ("retain 5", "entered")])
def test_rows_that_come_once_have_no_limit(tmp_path: Path, window: str, emit: str) -> None:
    asked = ("run", log(tmp_path, 1000), "out", "-w", window, "--emit", emit, "--max-rows-out", "1")
    assert wincli_here(*asked, cwd=tmp_path).code == 0
