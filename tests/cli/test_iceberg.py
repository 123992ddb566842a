"""Commands over Iceberg tables: the rows are those of folders, whatever has been run, redone or come late."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.iceberg_catalog import Lake
from support.in_process import wincli_here

WINDOW = ("--window", "delta(ts, 60)", "--key", "user", "--agg", "sum(n)")
RANGE = ("--start", "2026-11-01", "--end", "2026-11-04")
DAYS = {
    "2026-11-01": ("00:00:01,a,1", "00:00:02,a,2", "01:00:02,b,3"),
    "2026-11-02": ("00:00:01,a,1", "00:00:02,c,2"),
    "2026-11-03": ("00:00:09,c,2",),
}


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    lake = Lake(tmp_path / "lake")
    lake.set_environment(monkeypatch)
    lake.make()
    for day, rows in DAYS.items():
        write(tmp_path, day, *rows)
    return lake


def write(folder: Path, day: str, *rows: str) -> None:
    file = folder / "in" / f"day={day}" / "x.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("ts,user,n\n" + "".join(f"{day}T{row}\n" for row in rows))


def ok(folder: Path, *args: str) -> str:
    ran = wincli_here(*args, cwd=folder)
    assert ran.code == 0, ran.err
    return ran.out + ran.err


def fails(folder: Path, code: int, *args: str) -> str:
    ran = wincli_here(*args, cwd=folder)
    assert ran.code == code, ran.err
    assert ran.err.count("\n") == 1, ran.err
    return ran.err


def test_range_with_state_redo_and_late_rows_is_that_of_folders(lake: Lake, tmp_path: Path) -> None:
    for out, state in ((lake.address("days"), "st"), ("days", "st2")):
        ok(tmp_path, "run", *WINDOW, *RANGE, "--state", state, "--at-end", "hold", "in", out)
    assert "equal: 2 rows" in ok(tmp_path, "diff", lake.address("days"), "days")
    write(tmp_path, "2026-11-02", *DAYS["2026-11-02"], "00:00:40,a,5")
    for out, state in ((lake.address("days"), "st"), ("days", "st2")):
        ok(tmp_path, "run", *WINDOW, *RANGE, "--state", state, "--at-end", "hold", "--redo", "in", out)
    assert "equal: " in ok(tmp_path, "diff", lake.address("days"), "days")
    write(tmp_path, "2026-11-04", "00:00:01,d,1")
    late = tmp_path / "in" / "day=2026-11-04" / "late.csv"
    late.write_text("ts,user,n\n2026-11-02T00:00:50,c,7\n")
    later = ("--start", "2026-11-01", "--end", "2026-11-05", "--late", "redo")
    for out, state in ((lake.address("days"), "st"), ("days", "st2")):
        ok(tmp_path, "run", *WINDOW, *later, "--state", state, "--at-end", "hold", "in", out)
    assert "equal: " in ok(tmp_path, "diff", lake.address("days"), "days")
    for checked in (lake.address("days"), "st"):
        assert "all as it was written" in ok(tmp_path, "verify", checked)
    assert "2026-11-04" in ok(tmp_path, "status", "st")


def test_chain_of_ranges_over_a_table_is_that_over_folders(lake: Lake, tmp_path: Path) -> None:
    second = ("--window", "count(1)", "--agg", "sum(sum_n)")
    for first, then in ((lake.address("one"), lake.address("two")), ("one", "two")):
        ok(tmp_path, "run", *WINDOW, *RANGE, "in", first)
        ok(tmp_path, "run", *second, *RANGE, first, then)
    assert "equal: " in ok(tmp_path, "diff", lake.address("two"), "two")
    assert "nothing to do" in ok(tmp_path, "run", *second, *RANGE, lake.address("one"), lake.address("two"))
    write(tmp_path, "2026-11-02", "00:00:01,a,9")
    ok(tmp_path, "run", *WINDOW, *RANGE, "in", lake.address("one"))
    again = ok(tmp_path, "run", *second, *RANGE, lake.address("one"), lake.address("two"))
    assert "1 unit done (1 again), 2 skipped" in again


def test_snapshot_is_read_as_it_was(lake: Lake, tmp_path: Path) -> None:
    ok(tmp_path, "run", *WINDOW, "in/day=2026-11-01", lake.address("one"))
    then = lake.table("one").current_snapshot().snapshot_id
    ok(tmp_path, "run", *WINDOW, "--mode", "overwrite", "in/day=2026-11-03", lake.address("one"))
    count = ("--window", "count(1)", "--agg", "count()")
    assert "1 row in" in ok(tmp_path, "run", *count, lake.address("one"), "newest")
    assert "2 rows in" in ok(tmp_path, "run", *count, "--input-snapshot", str(then), lake.address("one"), "former")
    assert "no snapshot 7" in fails(tmp_path, 3, "run", *count, "--input-snapshot", "7", lake.address("one"), "x")
    both = ("--input-snapshot", "7", "--input-version", "7")
    assert "say one" in fails(tmp_path, 2, "run", *count, *both, lake.address("one"), "x")
    assert "files have no versions" in fails(tmp_path, 2, "run", *count, "--input-snapshot", "7", "in", "x")


def test_mistakes_are_said_in_one_line(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    day, one = "in/day=2026-11-01", lake.address("one")
    ok(tmp_path, "run", *WINDOW, day, one)
    assert "nothing to do" in ok(tmp_path, "run", *WINDOW, day, one)
    assert "already holds a result" in fails(tmp_path, 2, "run", *WINDOW, "in/day=2026-11-02", one)
    assert "is the input" in fails(tmp_path, 2, "run", *WINDOW, one, one)
    wide = (*WINDOW, "--agg", "count()", "--mode", "overwrite")
    assert "the table lacks count (long)" in fails(tmp_path, 2, "run", *wide, day, one)
    assert "whose files are Parquet" in fails(
        tmp_path, 2, "run", *WINDOW, "--output-format", "csv", day, lake.address("x")
    )
    assert "leave --partition-by out" in fails(
        tmp_path, 2, "run", *WINDOW, "--partition-by", "user", day, lake.address("x")
    )
    assert "no table logs.x" in fails(tmp_path, 3, "run", *WINDOW, lake.address("x"), "y")
    assert "did you mean 'lake'" in fails(tmp_path, 2, "run", *WINDOW, "iceberg://lakes/logs.one", "y")
    assert "no namespace sql" in fails(tmp_path, 2, "run", *WINDOW, day, "iceberg://lake/sql.one")
    assert "is no address" in fails(tmp_path, 2, "run", *WINDOW, day, "iceberg://lake")
    monkeypatch.setenv("PYICEBERG_CATALOG__FAR__URI", "http://user:secret@127.0.0.1:9")
    for args in (("iceberg://far/logs.one", "y"), (day, "iceberg://far/logs.one")):
        said = fails(tmp_path, 3, "run", *WINDOW, *args)
        assert "no answer from 127.0.0.1:9" in said
        assert "secret" not in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "lake"]
    ok(tmp_path, "run", *wide, "--evolve-schema", day, one)
    assert lake.rows("one").column_names[-1] == "count"
