"""``wincli show``: what a user sees of a result, a backfill, rejects and a state, and what programs get."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

from support.in_process import wincli_here
from support.processes import WINCLI, environment
from wincli.cli.console.table import cell_width, head_line, lay_out, row_lines
from wincli.cli.inspection.explanation.panes_of_key import is_of_key
from wincli.cli.inspection.results.shown_rows import condition_of, parse_only
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result ``out``, and a state ``st``, of a log with a row that is rejected."""
    path = tmp_path_factory.mktemp("shown")
    (path / "log.csv").write_text(LOG)
    words = ["run", "--window", "gap(ts, 5m)", "--key", "user", "--agg", "count()", "--agg", "sum(amount)"]
    for more in (["log.csv", "out"], ["--state", "st", "log.csv", "held"]):
        ran = wincli_here(*words, *more, cwd=path)
        assert ran.code == 0, ran.err
    return path


def shown(folder: Path, *args: str) -> tuple[int, str, str]:
    ran = wincli_here("show", *args, cwd=folder)
    return ran.code, ran.out, ran.err


def as_process(folder: Path, *args: str) -> str:
    done = subprocess.run([WINCLI, "show", *args], cwd=folder, env=environment(), capture_output=True, check=True)
    return done.stdout.decode()


OWN = "user,window,window_start,window_end,closed_by,count,sum_amount"


def test_a_result_is_a_table(folder: Path) -> None:
    assert shown(folder, "out", "--columns", OWN) == (0, RESULT, "")


def test_head_where_only_and_columns_choose_rows_and_columns(folder: Path) -> None:
    head, *_ = RESULT.splitlines()
    assert shown(folder, "out", "--head", "1", "--columns", OWN)[1].splitlines() == RESULT.splitlines()[:2]
    assert shown(folder, "out", "--head", "0", "--columns", OWN)[1].split() == head.split()
    assert shown(folder, "out", "--only", "user=bob", "--columns", "window,user")[1].split()[2:] == ["0", "bob"]
    where = ["--where", "sum_amount > 4", "--only", "user=ann", "--columns", "window"]
    assert shown(folder, "out", *where)[1].split() == ["window", "0"]


def test_json_and_csv_have_the_values_of_the_result(folder: Path) -> None:
    lines = [json.loads(line) for line in as_process(folder, "out", "--json").splitlines()]
    rows = list(csv.DictReader(io.StringIO(as_process(folder, "out", "--csv"))))
    assert [(line["user"], line["window"], line["sum_amount"]) for line in lines] == [
        ("ann", 0, 8), ("ann", 1, 4), ("bob", 0, 7),
    ]  # fmt: skip
    assert [(row["user"], row["sum_amount"]) for row in rows] == [("ann", "8"), ("ann", "4"), ("bob", "7")]


def test_rejects_and_open_windows_are_rows_too(folder: Path) -> None:
    _, out, _ = shown(folder, "out", "--rejects", "--columns", "reason,line")
    assert out.split() == ["reason", "line", "null_order", "5"]
    _, out, _ = shown(folder, "st")
    assert [line.split()[:3] for line in out.splitlines()] == [
        ["user", "window", "rows"], ["ann", "1", "1"], ["bob", "0", "1"],
    ]  # fmt: skip


def test_units_of_a_range_stand_one_after_the_other(folder: Path) -> None:
    days = folder / "days"
    for day in ("01", "02"):
        (days / f"dt=2026-11-{day}").mkdir(parents=True, exist_ok=True)
        (days / f"dt=2026-11-{day}" / "log.csv").write_text(f"ts,user\n2026-11-{day}T10:00:00,ann\n")
    words = ["run", "--window", "gap(ts, 5m)", "--key", "user", "--start", "2026-11-01", "--end", "2026-11-03"]
    assert wincli_here(*words, "days", "by_day", cwd=folder).code == 0
    _, out, _ = shown(folder, "by_day", "--columns", "unit,user,count")
    assert out.split() == ["unit", "user", "count", "2026-11-01", "ann", "1", "2026-11-02", "ann", "1"]
    _, out, _ = shown(folder, "by_day", "--where", "unit = '2026-11-02'", "--columns", "unit")
    assert out.split() == ["unit", "2026-11-02"]
    _, out, _ = shown(folder, "by_day", "--unit", "2026-11-01", "--columns", "window_start")
    assert out.splitlines()[1] == "2026-11-01 10:00:00"


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["log.csv"], 3, "no state and no result"),
        (["nope"], 3, "no file or folder nope"),
        (["out", "--unit", "x"], 2, "a single result"),
        (["out", "--columns", "usr"], 2, "did you mean 'user'?"),
        (["out", "--only", "user"], 2, "say it as NAME=VALUE"),
        (["out", "--only", "window=first"], 2, "'first' is no int64"),
        (["out", "--where", "count >"], 2, "cannot end with"),
        (["out", "--json", "--csv"], 2, "three forms"),
        (["out", "--stage", "x"], 2, "no state"),
        (["st", "--rejects"], 2, "rejected rows are in outputs"),
        (["st", "--unit", "x"], 2, "no unit 'x'"),
        (["st", "--draw"], 2, "no windows with bounds"),
        (["out", "--draw", "--columns", "user"], 2, "no column of numbers"),
    ],
)
def test_a_mistake_is_one_line(folder: Path, args: list[str], code: int, says: str) -> None:
    found, out, err = shown(folder, *args)
    assert (found, out) == (code, "")
    assert says in err


def test_a_drawing_has_a_bar_for_each_window_and_a_line_of_an_aggregate(folder: Path) -> None:
    _, out, _ = shown(folder, "out", "--draw", "--columns", "sum_amount")
    axis, ann, sums, bob, _, scale = out.splitlines()
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
    assert wincli_here("run", "job.yaml", cwd=tmp_path).code == 0
    ends = [json.loads(line)["window_end"] for line in as_process(tmp_path, "out", "--json").splitlines()]
    code, out, err = shown(tmp_path, "out", "--draw")
    assert (code, err) == (0, "")
    assert None in ends
    assert out.splitlines()[1].split()[0] == "windows"


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
    done = subprocess.Popen([WINCLI, "show", "out"], cwd=folder, env=env, stdout=terminal, stderr=subprocess.PIPE)
    os.close(terminal)
    _, err = done.communicate()
    assert os.read(controller, 100).decode() == "user  wind"
    os.close(controller)
    assert b"has no room for" in err
    assert done.returncode == 0


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
