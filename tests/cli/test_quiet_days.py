"""Days on which a column, or a file, has no value: a run gives nulls, rejects or no row, and ends well."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from support.columns_without_type import CODED, nulls
from support.in_process import wincli_here
from support.processes import Ran, manifest, rejected, rows, table, write

Run = Callable[..., Ran]
TIMES = pa.array([0, 20, 100, 110], pa.timestamp("s")).cast(pa.timestamp("us"))
FORMS = ["csv", "jsonl", "parquet", "coded", "orc"]
CALLS = {
    "total": "sum(amount)", "middle": "median(amount)", "spread": "range(amount)", "mean": "wavg(amount, n)",
    "top": "quantile(amount, 0.9)", "paid": "sum(amount * n)", "rise": "last(amount) - first(amount)",
    "most": "max(amount)", "any": "bool_or(amount > 1)", "words": "string_join(note, ',')",
    "times": "product(amount)", "deviation": "stddev(amount)", "large": "count() where amount > 3",
    "flag": "bool_and(ok)",
}  # fmt: skip
AGGREGATES = [part for name, call in CALLS.items() for part in ("-a", f"{name}={call}")]
WINDOWS = ["delta(ts, 60)", "time(60)", "within 60", "sliding, count(2), count(1)"]
EVENT_TIME = "timeInterval, intervalDuration(60)"
EMPTY = ["amount", "note", "ok"]


def day(form: str, count: int = 4) -> pa.Table:
    """Return a day without amounts, notes and flags: with types in ORC and ``typed``, without in the others."""
    kinds = [pa.float64(), pa.string(), pa.bool_()] if form in {"typed", "orc"} else [pa.null()] * 3
    if form == "coded":
        kinds = [CODED] * 3
    empty = {name: nulls(count, kind) for name, kind in zip(EMPTY, kinds, strict=True)}
    users, numbers = pa.array(list("abab")[:count], pa.string()), pa.array(range(count), pa.int64())
    return pa.table({"ts": TIMES[:count], "user": users, "n": numbers, **empty})


def put(folder: Path, form: str, log: pa.Table) -> None:
    folder.mkdir()
    if form == "csv":
        pc.write_csv(log, folder / "a.csv")
    elif form == "jsonl":
        times = log["ts"].cast(pa.string()) if pa.types.is_timestamp(log["ts"].type) else log["ts"]
        plain = log.set_column(0, "ts", times).to_pylist()
        (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in plain))
    elif form == "orc":
        orc.write_table(log, str(folder / "a.orc"))
    else:
        pq.write_table(log, folder / "a.parquet")


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> list[pa.Table]:
    """The windows of a day whose columns without values have types."""
    folder = tmp_path_factory.mktemp("typed")
    put(folder / "log", "parquet", day("typed"))
    return [windows_of(folder, window) for window in [*WINDOWS, EVENT_TIME]]


def windows_of(folder: Path, window: str) -> pa.Table:
    asked = ("-w", window, "-k", "user", *AGGREGATES, "--plain", "--mode", "overwrite", "log", "out")
    ran = wincli_here("run", *asked, cwd=folder)
    assert ran.code == 0, ran.err
    return table(folder / "out")


@pytest.mark.parametrize("form", FORMS)
def test_columns_without_values_give_what_typed_nulls_give(typed: list[pa.Table], tmp_path: Path, form: str) -> None:
    put(tmp_path / "log", form, day(form))
    for window, wanted in zip([*WINDOWS, EVENT_TIME], typed, strict=True):
        found = windows_of(tmp_path, window)
        assert found.to_pylist() == [
            {name: value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value for name, value in row.items()}
            for row in wanted.to_pylist()
        ]
        own = {"most", "rise"} if form != "orc" else set()
        assert {name for name in CALLS if found.schema.field(name).type != wanted.schema.field(name).type} == own
        assert found.num_rows > 0


@pytest.mark.parametrize("form", ["csv", "parquet", "orc"])
def test_file_without_rows_gives_an_empty_result(run: Run, tmp_path: Path, form: str) -> None:
    kinds = day(form, 0).schema if form == "orc" else pa.schema([(name, pa.null()) for name in day(form).column_names])
    put(tmp_path / "log", form, kinds.empty_table())
    for at, window in enumerate([*WINDOWS, EVENT_TIME, "calendar(day)", "gap(ts, 30m) or count(3)"]):
        ran = run("-w", window, "-k", "user", *AGGREGATES, "log", f"out-{at}")
        assert (ran.code, ran.summary) == (0, "0 rows in, 0 windows out, 0 rejected"), ran.err
        types = {column["name"]: column["type"] for column in manifest(tmp_path / f"out-{at}")["schema"]}
        assert [types[name] for name in ("total", "words", "flag", "large")] == ["double", "string", "bool", "int64"]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_rows_without_any_value_are_rejected_with_the_reason(run: Run, tmp_path: Path, form: str) -> None:
    put(tmp_path / "log", form, pa.table({"ts": pa.nulls(2), "user": pa.nulls(2), "amount": pa.nulls(2)}))
    cases = {"time(60)": "null_order", "within 60": "null_order", "delta(ts, 60)": "null_key", EVENT_TIME: "null_key"}
    for at, (window, reason) in enumerate(cases.items()):
        ran = run("-w", window, "-k", "user", "-a", "sum(amount)", "log", f"out-{at}")
        assert (ran.code, ran.summary) == (0, f"2 rows in, 0 windows out, 2 rejected ({reason} 2), see _rejected")
        assert rejected(tmp_path / f"out-{at}", "_reason", "amount") == [(reason, None)] * 2
    ran = run("-w", "delta(ts, 4h)", "-a", "sum(amount)", "log", "attribute")
    assert ran.summary == "2 rows in, 0 windows out, 2 rejected (null_attribute 2), see _rejected"


OPTIONS = [
    (("--where", "amount > 3"), "4 rows in, 0 windows out, 0 rejected, 4 filtered"),
    (("--where", "amount is null and ok is null"), "4 rows in, 2 windows out, 0 rejected"),
    (("--let", "late=ts - amount", "--where", "late is null or late > 5m"), "4 rows in, 2 windows out, 0 rejected"),
    (("--let", "word=note", "-a", "s=string_join(word, '-')"), "4 rows in, 2 windows out, 0 rejected"),
    (("-a", "s=sum(amount)", "--having", "s > 1"), "4 rows in, 0 windows out, 2 hidden, 0 rejected"),
    (("-a", "m=max(amount)", "--partition-by", "m"), "4 rows in, 2 windows out, 0 rejected"),
    (("-a", "s=sum(amount)", "--expect", "all(s is null)"), "4 rows in, 2 windows out, 0 rejected"),
    (("--emit", "rows", "--sort-by", "amount desc"), "4 rows in, 2 windows out, 0 rejected"),
    (("--group-by", "note"), "4 rows in, 2 windows out, 0 rejected"),
    (("-w", "punct()", "--marks", "ok"), "4 rows in, 1 window out, 0 rejected"),
    (("-w", "when(ok)"), "4 rows in, 0 windows out, 0 rejected, 4 filtered"),
    (("--enrich", "u=users.csv on note"), "4 rows in, 2 windows out, 0 rejected"),
    (("--enrich", "u=users.csv on user asof amount=since within 5m"), "4 rows in, 2 windows out, 0 rejected"),
]


@pytest.mark.parametrize("at", range(len(OPTIONS)), ids=[" ".join(args) for args, _ in OPTIONS])
def test_options_take_columns_without_values(run: Run, tmp_path: Path, at: int) -> None:
    args, counts = OPTIONS[at]
    put(tmp_path / "log", form := ["csv", "jsonl", "parquet"][at % 3], day(form))
    write(tmp_path, users__csv="note,user,since,name\n,a,,Ann\n")
    window = () if "-w" in args else ("-w", "count(2)")
    ran = run(*window, "--order-by", "ts", *args, "log", "out")
    assert (ran.code, ran.summary) == (0, counts), ran.err


@pytest.mark.parametrize("into", ["csv", "jsonl", "parquet"])
def test_result_of_a_quiet_day_is_written_in_any_format_and_read_by_the_next_stage(
    run: Run, tmp_path: Path, into: str
) -> None:
    put(tmp_path / "log", "csv", day("csv"))
    calls = ("-a", "total=sum(amount)", "-a", "most=max(amount)")
    assert run("-w", "count(2)", "--order-by", "ts", *calls, "--output-format", into, "log", "out").code == 0
    again = ("-w", "punct()", "-a", "t=sum(total)", "-a", "m=mean(most)", "-a", "n=count()")
    assert run(*again, "out", "next").code == 0
    assert rows(tmp_path / "next", "t", "m", "n") == [(None, None, 1)] * 2


def test_a_format_that_needs_types_says_how_to_give_them(run: Run, tmp_path: Path) -> None:
    put(tmp_path / "log", "csv", day("csv"))
    args = ("-w", "count(2)", "-a", "most=max(amount)", "--output-format", "orc", "log", "out")
    ran = run(*args)
    assert (ran.code, ran.err) == (
        2,
        "wincli: error: orc cannot hold column 'most' of type null; no row has a value there: give the column of the "
        "input that it comes from a type with --schema NAME:TYPE, or choose another --output-format\n",
    )
    assert run("--schema", "amount:double", *args).code == 0
