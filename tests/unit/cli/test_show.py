"""``wincli show``: what a user sees of a result, a backfill, rejects and a state, and what programs get."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.in_process import done
from support.processes import WINCLI, environment, write
from wincli.cli.console.table import cell_width, head_line, lay_out, row_lines
from wincli.cli.inspection.explanation.panes_of_key import is_of_key
from wincli.cli.inspection.results.result import open_result_folder, open_rows, rejects_of
from wincli.cli.inspection.results.shown_rows import condition_of, parse_only
from wincli.readers.source import FileSource
from wincli.windowing.errors import DamagedError, InputError
from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.rows.projection import RowExpressions, make_projection, project

LOG = """ts,user,amount
2026-11-01T10:00:00,ann,5
2026-11-01T10:00:30,bob,7
2026-11-01T10:01:00,ann,3
,ann,9
2026-11-01T10:20:00,ann,4
"""
RESULT = """\
user  window  window_start         window_end           closed_by  count  sum_amount
ann        0  2026-11-01 10:00:00  2026-11-01 10:01:00  gap            2           8
ann        1  2026-11-01 10:20:00  2026-11-01 10:20:00  end            1           4
bob        0  2026-11-01 10:00:30  2026-11-01 10:00:30  end            1           7
"""


JOB = ("run", "-w", "gap(ts, 5m)", "-k", "user", "-a", "count()", "-a", "sum(amount)", "log.csv")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result ``out``, and a state ``st``, of a log with a row that is rejected."""
    path = tmp_path_factory.mktemp("shown")
    (path / "log.csv").write_text(LOG)
    for more in (["out"], ["held", "--state", "st"]):
        done(path, *JOB, *more)
    return path


def shown(folder: Path, *args: str) -> str:
    ran = done(folder, "show", *args)
    assert ran.err == ""
    return ran.out


def as_process(folder: Path, *args: str) -> str:
    ran = subprocess.run([WINCLI, "show", *args], cwd=folder, env=environment(), capture_output=True, check=True)
    return ran.stdout.decode()


OWN = "user,window,window_start,window_end,closed_by,count,sum_amount"


def test_a_result_is_a_table_of_which_head_where_only_and_columns_choose_rows_and_columns(folder: Path) -> None:
    assert shown(folder, "out", "--columns", OWN) == RESULT
    head, first, *_ = RESULT.splitlines()
    assert shown(folder, "out", "--head", "1", "--columns", OWN).splitlines() == [head, first]
    assert done(folder, "show", "out", "--head", "0", "--columns", OWN).out.split() == head.split()
    assert shown(folder, "out", "--only", "user=bob", "--columns", "window,user").split()[2:] == ["0", "bob"]
    where = ["--where", "sum_amount > 4", "--only", "user=ann", "--columns", "window"]
    assert shown(folder, "out", *where).split() == ["window", "0"]


def test_json_and_csv_have_the_values_of_the_result(folder: Path) -> None:
    lines = [json.loads(line) for line in as_process(folder, "out", "--json").splitlines()]
    rows = list(csv.DictReader(io.StringIO(as_process(folder, "out", "--csv"))))
    assert [(line["user"], line["window"], line["sum_amount"]) for line in lines] == [
        ("ann", 0, 8), ("ann", 1, 4), ("bob", 0, 7),
    ]  # fmt: skip
    assert [(row["user"], row["sum_amount"]) for row in rows] == [("ann", "8"), ("ann", "4"), ("bob", "7")]


def test_rejects_and_open_windows_are_rows_too(folder: Path) -> None:
    assert shown(folder, "out", "--rejects", "--columns", "reason,line").split() == [
        "reason",
        "line",
        "null_order",
        "5",
    ]
    opened = [line.split()[:3] for line in shown(folder, "st").splitlines()]
    assert opened == [["user", "window", "rows"], ["ann", "1", "1"], ["bob", "0", "1"]]


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl", "orc"])
def test_rows_come_in_order_and_in_the_types_of_the_manifest(folder: Path, form: str) -> None:
    more = ("--where", "ts is not null") if form == "csv" else ()
    done(folder, *JOB, f"as-{form}", "--output-format", form, *more)
    result = open_result_folder(str(folder / f"as-{form}"))
    found = pa.concat_tables(result.rows.tables(["user", "window", "window_start"]))
    assert found.schema.types == [pa.string(), pa.int64(), pa.timestamp("us")]
    assert (found["user"].to_pylist(), found["window"].to_pylist()) == (["ann", "ann", "bob"], [0, 1, 0])
    assert (rejects_of(result) is None) == bool(more)


def test_a_condition_leaves_out_the_parts_that_cannot_have_such_rows(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (part,) = (folder / "out").glob("part-*.parquet")
    pq.write_table(pq.read_table(part), tmp_path / "few.parquet", row_group_size=1)
    read, inner = list[object](), FileSource.read
    monkeypatch.setattr(FileSource, "read", lambda *args: (read.append(args[1]), inner(*args))[1])
    where = parse_expression("user = 'ann' and \"window\" >= 1")
    found = pa.concat_tables(open_rows(str(tmp_path / "few.parquet")).tables(["window"], where))
    assert (found["window"].to_pylist(), len(read)) == ([1], 1)


def test_what_is_no_result_and_a_part_that_is_gone_are_told(folder: Path, tmp_path: Path) -> None:
    for path in (folder, folder / "out" / "_wincli"):
        with pytest.raises(InputError, match="is no result of wincli"):
            open_result_folder(str(path))
    shutil.copytree(folder / "out", tmp_path / "out")
    next((tmp_path / "out").glob("part-*.parquet")).unlink()
    with pytest.raises(DamagedError, match="lacks part-"):
        open_result_folder(str(tmp_path / "out"))


def test_units_of_a_range_stand_one_after_the_other(folder: Path) -> None:
    for day in ("01", "02"):
        write(folder / "days" / f"dt=2026-11-{day}", log__csv=f"ts,user\n2026-11-{day}T10:00:00,ann\n")
    span = ("--start", "2026-11-01", "--end", "2026-11-03")
    done(folder, "run", "--window", "gap(ts, 5m)", "--key", "user", *span, "days", "by_day")
    out = shown(folder, "by_day", "--columns", "unit,user,count")
    assert out.split() == ["unit", "user", "count", "2026-11-01", "ann", "1", "2026-11-02", "ann", "1"]
    out = shown(folder, "by_day", "--where", "unit = '2026-11-02'", "--columns", "unit")
    assert out.split() == ["unit", "2026-11-02"]
    out = shown(folder, "by_day", "--unit", "2026-11-01", "--columns", "window_start")
    assert out.splitlines()[1] == "2026-11-01 10:00:00"


def test_a_drawing_has_a_bar_for_each_window_and_a_line_of_an_aggregate(folder: Path) -> None:
    axis, ann, sums, bob, _, scale = shown(folder, "out", "--draw", "--columns", "sum_amount").splitlines()
    assert axis.split() == ["2026-11-01", "10:00:00", "2026-11-01", "10:20:00"]
    # 20 minutes over the line: a bar of one minute, and one instant at the end
    assert ann.split()[1:] == ["[===]", "|"]
    assert sums.split()[1:] == ["█████", "▁"]
    assert bob.split()[1:] == ["|"]
    assert scale == "sum_amount: ▁ 4 to █ 8"


def test_windows_without_an_end_are_drawn_where_they_begin(tmp_path: Path) -> None:
    """The end of the data has closed windows of the stage before, which have no instant."""
    (tmp_path / "log.csv").write_text("k,a\n" + "".join(f"{'xyz'[n % 3]},{n}\n" for n in range(9)))
    (tmp_path / "job.yaml").write_text("""\
input: log.csv
output: out
stages:
- {name: one, window: "delta(a, 4)", key: [k], order_by: [a], agg: [count()]}
- {name: two, window: count(4), agg: [n=count()]}
""")
    done(tmp_path, "run", "job.yaml")
    ends = [json.loads(line)["window_end"] for line in as_process(tmp_path, "out", "--json").splitlines()]
    assert None in ends
    assert shown(tmp_path, "out", "--draw").splitlines()[1].split()[0] == "windows"


def test_a_table_fits_its_room_and_says_what_it_left_out() -> None:
    rows = pa.table(
        {"name": ["x" * 50, "日本語" * 9], "n": [1, None], "text": ["a\x1b[2J", "b"], "more": ["m" * 30] * 2}
    )
    layout = lay_out(rows, 36)
    lines = [head_line(layout), *row_lines(layout, rows)]
    assert all(cell_width(line) <= 36 for line in lines)
    assert layout.left_out == ("more",)
    assert "\x1b" not in "".join(lines)
    assert "…" in lines[1]


def test_a_terminal_gets_a_table_of_its_width_in_its_pager(folder: Path) -> None:
    controller, terminal = pty.openpty()
    env = environment({"PAGER": "head -c 10", "LINES": "3", "COLUMNS": "40", "NO_COLOR": "1"})
    process = subprocess.Popen([WINCLI, "show", "out"], cwd=folder, env=env, stdout=terminal, stderr=subprocess.PIPE)
    os.close(terminal)
    _, err = process.communicate()
    assert os.read(controller, 100).decode() == "user  wind"
    os.close(controller)
    assert b"has no room for" in err
    assert process.returncode == 0


KEYS = {
    "odd name": (["a'b", 'c"d'], "a'b"),
    "i": (pa.array([1, -2], pa.int8()), "1"),
    "b": ([True, False], "true"),
    "f": ([-0.0, 1.5], "0"),
    "far": ([float("-inf"), float("inf")], "-inf"),
    "none": (pa.array([float("nan"), 1], pa.float32()), "nan"),
    "d": (pa.array(["1.50", "2"]).cast(pa.decimal128(10, 2)), "1.5"),
    "tz": (pa.array([0, 1], pa.timestamp("ms", "Europe/Paris")), "1970-01-01T00:00:00"),
    "da": (pa.array([0, 1], pa.date32()), "1970-01-01"),
    "u": (pa.array([2**64 - 1, 1], pa.uint64()), str(2**64 - 1)),
}


@pytest.mark.parametrize("name", KEYS)
def test_a_value_is_named_by_its_text_whatever_its_type(name: str) -> None:
    values, text = KEYS[name]
    table = pa.table({name: values})
    only = parse_only([f"{name}={text}"], table.schema)
    projection = make_projection(table.schema, RowExpressions((), condition_of(None, only)))
    assert project(projection, table, [name])[1].tolist() == [True, False]  # type: ignore[union-attr]
    assert is_of_key(table, only).tolist() == [True, False]
