"""Every kind of window from the command line: however the work is cut, what the library says of the whole table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from support.processes import Ran, manifest, rejected, table
from wincli import aggregate

Run = Callable[..., Ran]
Options = dict[str, Any]
FILES, FILE = 3, 300
ROWS = FILES * FILE
CUT = ("--split-size", "4KiB", "--slice-size", "8KiB")
NUMBERS = ("count()", "sum(a)", "s=sum(x)", "m=mean(x)", "sd=stddev(x)", "top=arg_max(id, x)")
AGGREGATES = (*NUMBERS, "ids=collect(id)")
TS, USER = {"order_by": ["ts"]}, ("user",)
NIGHT = {"event_time": "ts", "lag": 20}

PARTS = {"calls": ("sum(x)", "mean(x)", "count()", "max(x)", "min(ts)")}
"""Aggregates of which tasks send parts."""

Case = tuple[str, tuple[str, ...], Options]
CASES: dict[str, Case] = {
    "delta": ("delta(ts, 60)", USER, {}),
    "delta of all": ("delta(ts, 60)", (), {"at_end": "drop"}),
    "gap": ("gap(ts, 2)", USER, {}),
    "time": ("time(5m)", USER, TS | {"empty": "row"}),
    "parts of time": ("time(5m)", (), TS | PARTS | {"empty": "mark"}),
    "parts of time by key": ("time(10m)", USER, TS | PARTS),
    "parts of panes": ("timeInterval, intervalDuration(60), creationPeriod(20)", (), {"event_time": "ts"} | TS | PARTS),
    "sliding count count": ("sliding, count(7), count(3)", USER, {}),
    "sliding count time": ("sliding, count(4), time(30)", USER, TS | {"origin": 7}),
    "sliding delta time": ("sliding, delta(a, 4), time(20)", USER, TS | {"at_end": "drop"}),
    "sliding time delta": ("sliding, time(45), delta(a, 3)", USER, TS | {"group_by": ["u"]}),
    "sliding time time": ("sliding, time(60), time(25)", (), TS | {"partial": True}),
    "sliding, rows that entered": ("sliding, count(5), count(2)", USER, {"emit": "entered", "sort_by": ["x desc"]}),
    "sliding, rows that left": ("sliding, time(90), count(3)", USER, TS | {"emit": "left"}),
    "sliding of few keys": ("sliding, count(3), count(1), partitioned, partitionCount(4)", USER, {}),
    "event time": ("timeInterval, intervalDuration(60), discardAge(15)", USER, NIGHT),
    "event time that overlaps": ("timeInterval, intervalDuration(60), creationPeriod(25), discardAge(30)", (), NIGHT),
    "event time with gaps": (
        "timeInterval, intervalDuration(20), creationPeriod(30), intervalOffset(4)",
        USER,
        NIGHT | {"min_gap": 35, "group_by": ["u", "flag"]},
    ),
    "event time in order": ("timeInterval, intervalDuration(50), creationPeriod(40)", USER, NIGHT | TS),
    "rows of event-time panes": (
        "timeInterval, intervalDuration(45), discardAge(10)",
        (),
        NIGHT | {"emit": "rows", "sort_by": ["u", "x desc"], "at_end": "drop"},
    ),
    "within": ("within 40", USER, TS),
    "within and retain": ("within 60 retain 2 with unique u", USER, TS | {"at_end": "drop"}),
    "within every": ("within 45 every 30", USER, TS | {"origin": 11, "group_by": ["u"]}),
    "retain": ("partition by u retain 2", USER, {"emit": "left"}),
    "retain every": ("retain 4 every 3", USER, {"emit": "entered"}),
    "retain all": ("retain all", USER, {"group_by": ["u"]}),
    "calendar": ('calendar(day, "Europe/Paris", 23:36)', USER, {"order_by": ["day"]}),
    "growing": ("time(2m) every 20", USER, TS),
    "parts of growing": ('calendar(day, "Europe/Paris", 23:36) every 1h', (), {"order_by": ["day"]} | PARTS),
    "change": ("change(u)", (), TS),
    "change of a few columns": ("change(u, flag)", USER, {"at_end": "drop"}),
    "cron": ('cron("*/30 2,3 * * *", "Europe/Paris")', USER, {"order_by": ["day"]}),
    "rows": ("count(6)", USER, {"emit": "rows", "sort_by": ["u desc", "id desc"]}),
    "keys that are evicted": ("count(9), partitioned, tupleCount(20)", USER, {"emit_evicted": True}),
    "keys that age": ("time(60), partitioned, partitionAge(20)", USER, TS | {"emit_evicted": True}),
}
ON_SPARK = {
    *("delta", "delta of all", "gap", "parts of time", "parts of time by key", "parts of panes", "sliding time delta"),
    *("event time with gaps", "rows of event-time panes", "within every", "keys that age"),
}

OPERATOR = """
from wincli.windowing.operator import Operator


class Moves(Operator):
    output = {"id": int, "by": float}

    def __init__(self):
        self.before = None

    def insert(self, row):
        if self.before is not None and row["a"] > self.before["a"] + 3:
            yield {"id": row["id"], "by": float(row["a"] - self.before["a"])}
        self.before = row

    def trigger(self, rows, pane):
        yield {"id": rows[-1]["id"], "by": float(len(rows))}
"""


def make_log() -> pa.Table:
    """Rows that go back and forth in time and in ``a``, with ties; ``day`` is in Paris, when clocks are put back."""
    random = np.random.default_rng(5)
    seconds = np.cumsum(random.exponential(1.5, ROWS)) + random.normal(0, 12, ROWS)
    return pa.table(
        {
            "id": np.arange(ROWS),
            "ts": pa.array(seconds.astype("i8") * 1_000_000, pa.timestamp("us")),
            "day": pa.array((1_792_800_000 + np.arange(ROWS) * 200) * 1000, pa.timestamp("ms", "UTC")),
            "user": pa.array([f"user {k}" for k in random.integers(0, 9, ROWS)]),
            "a": pa.array(np.cumsum(random.integers(-2, 4, ROWS)), pa.int32()),
            "x": random.normal(0, 1e6, ROWS),
            "u": random.choice(list("pqr"), ROWS),
            "flag": random.random(ROWS) < 0.04,
        }
    )


LOG = make_log()


@pytest.fixture
def log(tmp_path: Path) -> None:
    """The log as several files of many row groups."""
    (tmp_path / "log").mkdir()
    for i in range(FILES):
        pq.write_table(LOG.slice(i * FILE, FILE), tmp_path / "log" / f"{i}.parquet", row_group_size=100)


def arguments(window: str, key: Sequence[str], options: Options, aggregates: Sequence[str] | None) -> list[str]:
    """The same words for the command line as for the library."""
    args = ["-w", window, *CUT, *(word for name in key for word in ("-k", name))]
    args += [word for text in aggregates or () for word in ("-a", text)]
    for name, value in without(options, "calls").items():
        flag = "--" + name.replace("_", "-")
        values = value if isinstance(value, list) else [value]
        args += [flag] if value is True else [word for each in values for word in (flag, str(each))]
    return args


def called(options: Options) -> Sequence[str] | None:
    """The aggregates, where panes do not give rows."""
    return None if {"emit", "operator"} & set(options) else options.get("calls", AGGREGATES)


def by_library(window: str, key: Sequence[str], options: Options, aggregates: Sequence[str] | None) -> pa.Table:
    own = without(options, "calls")
    return aggregate(LOG, window, key=key, aggregates=aggregates, rejected="drop", **own)


def balanced(ran: Ran, out: Path, rows: int, windows: int) -> dict[str, Any]:
    """Check that every row is accounted for, and that the summary says so; return the account."""
    counts = manifest(out)["counts"]
    lost = counts["rejected"]
    kinds = [counts[name] for name in ("windowed", "filtered", "dropped_at_end", "held")]
    assert counts["rows_in"] == rows == sum(kinds) + sum(lost.values())
    words = [f"{rows:,} rows in, {windows:,} windows out, {sum(lost.values()):,} rejected"]
    words += [f" ({', '.join(f'{reason} {count:,}' for reason, count in lost.items())}), see _rejected"] if lost else []
    words += [f", {counts['filtered']:,} filtered"] if counts["filtered"] else []
    words += [f", {counts['dropped_at_end']:,} dropped at the end"] if counts["dropped_at_end"] else []
    assert ran.summary == "".join(words)
    return dict(counts)


def number_of_panes(result: pa.Table, key: Sequence[str]) -> int:
    """How many windows have rows in a result."""
    return len(result.filter(pc.is_valid(result["window"])).group_by([*key, "window"]).aggregate([]))


def same(got: pa.Table, want: pa.Table) -> None:
    assert got.schema == want.schema
    for name in want.column_names:
        assert got[name].equals(want[name]), name


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(("name", "where"), [(name, "spark_run" if name in ON_SPARK else "run") for name in CASES])
def test_command_and_library_give_the_same_result(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, where: str
) -> None:
    """The rows are the same, each row is accounted for, and those that come too late are set aside whole."""
    run: Run = request.getfixturevalue(where)
    window, key, options = CASES[name]
    calls = called(options)
    ran = run(*arguments(window, key, options, calls), "log", "out")
    assert ran.code == 0, ran.err
    got, want = table(tmp_path / "out"), by_library(window, key, options, calls)
    same(got, want)
    assert len(manifest(tmp_path / "out")["parts"]) > 4 or not key or "calls" in options
    counts = balanced(ran, tmp_path / "out", ROWS, number_of_panes(want, key))
    looks = want if calls == AGGREGATES else by_library(window, key, without(options, "emit", "sort_by"), AGGREGATES)
    assert counts["windowed"] == len(set(pc.list_flatten(looks["ids"]).to_pylist()))
    late = list(late_rows(window, **options)) if "event_time" in options and "order_by" not in options else []
    assert counts["rejected"] == ({"late": len(late)} if late else {})
    if late:
        whole = [(*row.values(), "late") for row in LOG.take(late).to_pylist()]
        found = sorted(rejected(tmp_path / "out", *LOG.column_names, "_reason"))
        at = datetime.fromisoformat
        assert [(row, at(ts), at(day), *rest) for row, ts, day, *rest in found] == whole


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_rows_in_order_are_scanned_where_they_stand(run: Run, spark_run: Run, tmp_path: Path, form: str) -> None:
    """A part for each chunk, rows in windows that span several of them, and one that is rejected in another."""
    gone = pa.array([i == ROWS // 2 for i in range(ROWS)])
    rows = LOG.sort_by("ts").select(["ts", "user", "x"])
    rows = rows.set_column(0, "ts", pc.if_else(gone, None, rows["ts"]))
    (tmp_path / "log").mkdir()
    for i in range(FILES):
        part = rows.slice(i * FILE, FILE)
        if form == "parquet":
            pq.write_table(part, tmp_path / "log" / f"{i}.parquet", row_group_size=20)
        else:
            csv.write_csv(part, tmp_path / "log" / f"{i}.csv")
    calls = ["sum(x)", "mean(x)", "last(user)", "count()"]
    for number, (window, parts) in enumerate((("delta(ts, 60)", 3), ("gap(ts, 3)", 3), ("delta(ts, 3000)", 1))):
        command = spark_run if form == "parquet" else run
        ran = command(*arguments(window, (), {}, calls), "log", f"out-{number}")
        assert ran.code == 0, ran.err
        want = aggregate(rows, window, aggregates=calls, rejected="drop")
        same(table(tmp_path / f"out-{number}").cast(want.schema), want)
        told = manifest(tmp_path / f"out-{number}")
        assert told["counts"]["rejected"] == {"null_order": 1}
        assert len(told["parts"]) >= parts


def without(options: Options, *names: str) -> Options:
    return {name: value for name, value in options.items() if name not in names}


@pytest.mark.usefixtures("log")
def test_an_operator_of_the_working_folder(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "moves.py").write_text(OPERATOR)
    monkeypatch.syspath_prepend(tmp_path)
    options: Options = {"operator": "moves:Moves"}
    ran = run(*arguments("delta(ts, 40)", USER, options, None), "log", "out")
    assert ran.code == 0, ran.err
    got, want = table(tmp_path / "out"), by_library("delta(ts, 40)", USER, options, None)
    same(got, want)
    ends = want.filter(pc.is_valid(want["_mark"]))
    assert 100 < len(ends) < len(want)
    balanced(ran, tmp_path / "out", ROWS, len(ends))


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("name", ["sliding time delta", "event time with gaps"])
def test_results_in_text(run: Run, tmp_path: Path, name: str, form: str) -> None:
    window, key, options = CASES[name]
    ran = run(*arguments(window, key, options, NUMBERS), "--output-format", form, "log", "out")
    assert ran.code == 0, ran.err
    nulls = ds.CsvFileFormat(convert_options=csv.ConvertOptions(strings_can_be_null=True))
    files = [str(path) for path in sorted((tmp_path / "out").glob("part-*"))]
    got = ds.dataset(files, format=nulls if form == "csv" else "json").to_table()
    want = by_library(window, key, options, NUMBERS)
    same(got.cast(want.schema), want)


def late_rows(window: str, lag: int, min_gap: int = 0, **_: Any) -> Iterator[int]:
    """Rows more than the discard age behind the watermark that was announced before them."""
    found = re.search(r"discardAge\((\d+)\)", window)
    age = int(found[1]) if found else 0
    announced = latest = None
    for index, now in enumerate(LOG["ts"].cast(pa.int64()).to_pylist()):
        if announced is not None and now < announced - age * 1_000_000:
            yield index
        latest = now if latest is None else max(latest, now)
        rise = latest - lag * 1_000_000
        if announced is None or (rise > announced and rise >= announced + min_gap * 1_000_000):
            announced = rise


# --- marks in the middle ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize("order", ["arrival", "ts"])
@pytest.mark.parametrize("key", [USER, ()], ids=["keyed", "unkeyed"])
def test_marks_between_the_rows_of_all_keys(
    run: Run, spark_run: Run, tmp_path: Path, key: tuple[str, ...], order: str
) -> None:
    """A column of marks, in the middle of files; and the ends of files, each behind the last of its rows in order."""
    last = [int(last_of(LOG.slice(i * FILE, FILE), order)) + i * FILE + 1 for i in range(FILES)]
    for where, marks, command in (("flag", "flag", run), ("files", last, spark_run)):
        ran = command(*arguments("punct()", key, {"order_by": [order]}, AGGREGATES), "--marks", where, "log", where)
        want = aggregate(LOG, "punct()", key=key, order_by=order, marks=marks, aggregates=AGGREGATES)
        same(table(tmp_path / where), want)
        balanced(ran, tmp_path / where, ROWS, number_of_panes(want, key))
    assert len(set(np.flatnonzero(LOG["flag"])) - {end - 1 for end in last}) > 20


def last_of(rows: pa.Table, order: str) -> int:
    """Which row is the last in order; ties are in order of arrival."""
    return len(rows) - 1 if order == "arrival" else np.lexsort([np.arange(len(rows)), rows[order].to_numpy()])[-1]


def emitted(result: pa.Table, keys: Sequence[str]) -> pa.Table:
    """A result in emission order: by what brought a pane out, then window, key and group; what the end did is last."""
    turn = ["_turn"] if "_turn" in result.column_names else []
    place = ["_row"] if "_row" in result.column_names else []
    names = ["_at", *turn, "_pos", "window", *keys, *place]
    return result.sort_by([(name, "ascending") for name in names])


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize("keys", [USER, ()], ids=["keyed", "unkeyed"])
def test_rows_of_panes_become_panes_again(run: Run, tmp_path: Path, keys: tuple[str, ...]) -> None:
    window = "sliding, time(60), time(40)"
    assert run(*arguments(window, USER, TS | {"emit": "rows"}, None), "log", "rows").code == 0
    assert run(*arguments("punct()", keys, {}, ["ids=collect(id)"]), "rows", "again").code == 0
    panes = by_library(window, USER, TS, ["ids=collect(id)"])
    if not keys:
        panes = emitted(panes, USER)
    assert table(tmp_path / "again")["ids"].to_pylist() == panes["ids"].to_pylist()
