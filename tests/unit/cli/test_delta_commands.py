"""Delta tables as IN and OUT of commands: ranges with a state, redo and late rows give what folders give."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from support.in_process import done
from wincli.readers.open import open_source
from wincli.readers.options import ReadOptions
from wincli.windowing.local_executor import LocalExecutor

WINDOW = ("-w", "gap(ts, 30m)", "-k", "user", "--agg", "n=count()", "--agg", "sum(amount)", "--progress", "none")
DAYS = [dt.date(2026, 11, day) for day in (1, 2, 3)]
SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("user", pa.string()), ("amount", pa.int64())])
Row = tuple[dt.datetime, str, int]


def log_of(day: dt.date, late: tuple[Row, ...] = ()) -> pa.Table:
    start = dt.datetime.combine(day, dt.time())
    rows = [(start + dt.timedelta(minutes=17 * n + n % 5), "abc"[n % 3], n) for n in range(60)]
    rows += [(start + dt.timedelta(hours=23, minutes=59), "a", 7), *late]
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=SCHEMA)


def late_rows() -> tuple[Row, ...]:
    """Rows of the third day that belong to the second."""
    return tuple((dt.datetime(2026, 11, 2, hour, 1), "b", hour) for hour in (3, 11, 23))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for day in DAYS:
        table = log_of(day, late_rows() if day == DAYS[2] else ())
        append_file(tmp_path, day, table)
        append_rows(tmp_path, day, table)
    return tmp_path


def append_file(home: Path, day: dt.date, rows: pa.Table, name: str = "a") -> None:
    from pyarrow import parquet

    folder = home / "files" / f"day={day}"
    folder.mkdir(parents=True, exist_ok=True)
    parquet.write_table(rows, folder / f"{name}.parquet")


def append_rows(home: Path, day: dt.date, rows: pa.Table) -> None:
    whole = rows.append_column("day", pa.array([day] * rows.num_rows))
    write_deltalake(str(home / "table"), whole, partition_by=["day"], mode="append")


def run(home: Path, given: str, out: str, *more: str, code: int = 0) -> str:
    form = ("--output-format", "delta") if "delta" in out else ()
    state = ("--state", f"state-{out}", "--start", "2026-11-01")
    return done(home, "run", *WINDOW, *state, *form, *more, given, out, code=code).err


def result(home: Path, out: str) -> list[tuple[object, ...]]:
    """The rows of the windows of a range, without the ids of arrival, which count files."""
    source = open_source([str(home / out)], ReadOptions(), LocalExecutor())
    names = ["user", "window", "window_start", "window_end", "closed_by", "n", "sum_amount", "_at", "day"]
    assert set(names) <= set(source.schema.names)
    tables = [source.read(split, names).rows for split in source.splits]
    return sorted(tuple(row.values()) for row in pa.concat_tables(tables).to_pylist())


OUTS = ({"delta-of-table": "table"}, {"delta": "files", "out-of-table": "table"})


@pytest.mark.parametrize("more", [OUTS[0], pytest.param(OUTS[1], marks=pytest.mark.nightly)])
def test_range_with_state_redo_and_late_rows_is_the_same_in_tables_and_folders(
    home: Path, more: dict[str, str]
) -> None:
    outs = {"out": "files", **more}
    for out, given in outs.items():
        run(home, given, out, "--late", "redo", "--end", "2026-11-03")
        run(home, given, out, "--late", "redo", "--end", "2026-11-04")
    expected = result(home, "out")
    assert expected
    assert [out for out in outs if result(home, out) != expected] == []
    append_file(home, DAYS[0], log_of(DAYS[0]).slice(5, 9), "b")
    append_rows(home, DAYS[0], log_of(DAYS[0]).slice(5, 9))
    for out, given in outs.items():
        err = run(home, given, out, "--late", "redo", "--end", "2026-11-04")
        assert "2026-11-01 is run again: its input is not what it was" in err
    assert result(home, "out") != expected
    assert [out for out in outs if result(home, out) != result(home, "out")] == []
    for out in [out for out in outs if "delta" in out]:
        assert "3 results" in done(home, "verify", out).out
        done(home, "verify", f"state-{out}")
        done(home, "status", out)


def test_version_that_touches_other_partitions_changes_no_unit(home: Path) -> None:
    run(home, "table", "delta", "--end", "2026-11-03")
    before = DeltaTable(str(home / "delta")).version()
    append_rows(home, DAYS[2], log_of(DAYS[2]))
    err = run(home, "table", "delta", "--end", "2026-11-03")
    assert "already done with the same input: 2026-11-01..2026-11-02" in err
    assert DeltaTable(str(home / "delta")).version() == before
    run(home, "table", "old", "--end", "2026-11-04", "--input-version", "2")
    run(home, "files", "out", "--end", "2026-11-04")
    assert result(home, "old") == result(home, "out")


def test_plain_runs_chain_over_tables_as_over_folders(home: Path) -> None:
    for out, form in (("one", ()), ("one-delta", ("--output-format", "delta"))):
        done(home, "run", *WINDOW, *form, "files/day=2026-11-01", out)
        assert "nothing to do" in done(home, "run", *WINDOW, *form, "files/day=2026-11-01", out).err
        chain = ("-w", "count(3)", "--agg", "first(user)", "--agg", "total=sum(n)", "--progress", "none", *form)
        done(home, "run", *chain, out, f"chain-{out}")
    done(home, "diff", "chain-one", "chain-one-delta")
    assert done(home, "show", "chain-one").out == done(home, "show", "chain-one-delta").out
    assert "window 1 of user=a" in done(home, "why", "one-delta", "--only", "user=a", "--window", "1").out


def test_partition_by_divides_a_unit_further(home: Path) -> None:
    more = ("--partition-by", "user,hour=cast(window_start as date)")
    more += ("--partition-by", "week=date_trunc('week', window_start)")
    run(home, "files", "delta", *more, "--end", "2026-11-03")
    run(home, "files", "delta", *more, "--end", "2026-11-03", "--redo")
    run(home, "files", "out", *more, "--end", "2026-11-03")
    table = DeltaTable(str(home / "delta"))
    assert table.metadata().partition_columns == ["day", "user", "hour", "week"]
    assert table.version() == 3
    assert result(home, "delta") == result(home, "out")
    found = table.to_pyarrow_table().select(["user", "n", "hour", "day", "week"]).to_pylist()
    assert sorted((row["user"], row["n"]) for row in found) == sorted((row[0], row[5]) for row in result(home, "out"))
    assert {row["week"] for row in found} <= {dt.datetime(2026, 10, 26), dt.datetime(2026, 11, 2)}
    done(home, "verify", "delta")
    show = [done(home, "show", f"{out}/day=2026-11-02").out for out in ("out", "delta")]
    assert sorted(show[0].split()) == sorted(show[1].split())
    err = run(home, "files", "delta", "--end", "2026-11-03", "--redo", code=2)
    assert "is partitioned by day and user and hour and week, and this result by day" in err


def test_rejected_rows_are_those_of_the_newest_result(home: Path) -> None:
    nulls = pa.table([[None, None], ["a", "b"], [1, 2]], schema=SCHEMA)
    append_file(home, DAYS[0], nulls, "nulls")
    run(home, "files", "delta", "--end", "2026-11-02")
    run(home, "files", "delta", "--end", "2026-11-02", "--redo")
    files = list((home / "delta" / "day=2026-11-01" / "_rejected").iterdir())
    assert len(files) == 2
    shown = done(home, "show", "delta/day=2026-11-01", "--rejects").out
    assert len(shown.splitlines()) == 3  # the names of columns, and two rows
    done(home, "verify", "delta")


def test_other_programs_read_the_rows_of_a_table(home: Path) -> None:
    import duckdb
    import polars

    run(home, "files", "delta", "--end", "2026-11-04")
    expected = sorted((row[0], row[5]) for row in result(home, "delta"))
    path = str(home / "delta")
    assert sorted(zip(*polars.read_delta(path)[["user", "n"]].to_dict(as_series=False).values(), strict=True)) == (
        expected
    )
    arrow = DeltaTable(path).to_pyarrow_table()
    assert sorted(duckdb.sql("SELECT user, n FROM arrow").fetchall()) == expected
    assert sorted(zip(arrow["user"].to_pylist(), arrow["n"].to_pylist(), strict=True)) == expected
