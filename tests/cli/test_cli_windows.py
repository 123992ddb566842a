"""What each option of a window does, from the command line to the rows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.processes import Ran, rows, table, write

Run = Callable[..., Ran]


def test_many_keys_one_key_and_none(run: Run, tmp_path: Path) -> None:
    write(tmp_path, log__csv='id,u,"v,w"\n1,b,1\n2,a,2\n3,a,1\n4,b,1\n')
    for keys, wanted in (
        (("-k", 'u,"v,w"'), [[3], [2], [1, 4]]),
        (("-k", "u", "-k", '"v,w"'), [[3], [2], [1, 4]]),
        (("-k", "u"), [[2, 3], [1, 4]]),
        ((), [[1, 2, 3, 4]]),
    ):
        args = ("-w", "count(9)", *keys, "-a", "ids=collect(id)", "--mode", "overwrite")
        assert run(*args, "log.csv", "out").code == 0
        assert rows(tmp_path / "out", "ids") == wanted


def test_windows_of_a_key_are_numbered_and_come_in_order(run: Run, tmp_path: Path) -> None:
    write(tmp_path, log__csv="id,u\n1,b\n2,a\n3,b\n4,a\n5,b\n")
    assert run("-w", "count(2)", "-k", "u", "-a", "ids=collect(id)", "log.csv", "out").code == 0
    names = ("u", "window", "ids", "closed_by", "_pos", "_mark")
    assert table(tmp_path / "out").schema.names == [
        *("u", "window", "window_start", "window_end", "closed_by", "ids", "_at", "_pos", "_mark")
    ]
    assert rows(tmp_path / "out", *names) == [
        ("a", 0, [2, 4], "count", 3, "window"),
        ("b", 0, [1, 3], "count", 2, "window"),
        ("b", 1, [5], "end", None, "window"),
    ]


@pytest.fixture
def two_files(tmp_path: Path) -> None:
    #   a.csv: 1 2m 3 |   b.csv: 4m 5 |        m: a true row, |: the end of a file
    write(tmp_path / "log", a__csv="ts,m\n1,false\n2,true\n3,false\n", b__csv="ts,m\n4,true\n5,\n")


MARKS = {
    "auto": ((), "the end of each file", [[1, 2, 3], [4, 5]]),
    "files": (("--marks", "files"), "the end of each file", [[1, 2, 3], [4, 5]]),
    "none": (("--marks", "none"), "nowhere", [[1, 2, 3, 4, 5]]),
    "column": (("--marks", "m"), "column m", [[1, 2], [3, 4], [5]]),
}


@pytest.mark.usefixtures("two_files")
@pytest.mark.parametrize("case", MARKS)
def test_marks(run: Run, tmp_path: Path, case: str) -> None:
    args, where, wanted = MARKS[case]
    ran = run("-w", "punct()", *args, "-a", "ts=collect(ts)", "log", "out")
    assert (ran.code, ran.notes[1]) == (0, f"window marks come from {where}")
    assert rows(tmp_path / "out", "ts") == wanted


@pytest.mark.usefixtures("two_files")
def test_null_in_the_column_of_punct_is_not_true(run: Run, tmp_path: Path) -> None:
    ran = run("-w", "punct(m)", "-a", "ts=collect(ts)", "log", "out")
    assert ran.summary == "5 rows in, 3 windows out, 0 rejected"
    assert rows(tmp_path / "out", "ts", "closed_by") == [([1, 2], "punct"), ([3, 4], "punct"), ([5], "end")]


@pytest.mark.usefixtures("two_files")
def test_a_chain_sees_the_marks_of_the_stage_before(run: Run, tmp_path: Path) -> None:
    """count(2) closes [1 2] and [3 4]; [5] is still open at the end. Each is a mark for the next stage."""
    assert run("-w", "count(2)", "-a", "s=sum(ts)", "log", "one").code == 0
    ran = run("-w", "punct()", "-a", "s=collect(s)", "one", "two")
    assert ran.notes[1] == "window marks come from the result that is read"
    assert rows(tmp_path / "two", "s") == [[3], [7], [5]]
    assert run("-w", "punct()", "--marks", "none", "-a", "s=collect(s)", "one", "three").code == 0
    assert rows(tmp_path / "three", "s") == [[3, 7, 5]]
    plain = run("-w", "count(2)", "-a", "s=sum(ts)", "--plain", "log", "plain")
    assert plain.code == 0
    assert table(tmp_path / "plain").schema.names[-1] == "s"
    assert run("-w", "punct()", "-a", "s=collect(s)", "plain", "four").notes[1].endswith("the end of each file")


def test_mark_only_rows_are_marks_for_the_next_stage_and_no_rows(run: Run, tmp_path: Path) -> None:
    """time(10): [1 2] tick 10, nothing at 20, [23] open."""
    write(tmp_path, log__csv="ts\n1\n2\n23\n")
    args = ("-w", "time(10)", "--order-by", "ts", "-a", "ts=collect(ts)")
    for empty, wanted in (
        ("skip", [(0, [1, 2], 10, -1, "window"), (1, [23], None, None, "window")]),
        ("row", [(0, [1, 2], 10, -1, "window"), (1, None, 20, -1, "window"), (2, [23], None, None, "window")]),
        ("mark", [(0, [1, 2], 10, -1, "window"), (1, [23], None, None, "window"), (None, None, 20, -1, "only")]),
    ):
        assert run(*args, "--empty", empty, "log.csv", empty).code == 0
        got = rows(tmp_path / empty, "window", "ts", "_at", "_pos", "_mark")
        assert [(w, ts or None, *rest) for w, ts, *rest in got] == wanted
    ran = run("-w", "punct()", "-a", "n=count()", "mark", "next")
    assert ran.summary == "2 rows in, 2 windows out, 0 rejected"
    assert rows(tmp_path / "next", "n", "_mark") == [(1, "window"), (1, "window"), (None, "only")]
    assert run(*args, "--empty", "mark", "--plain", "log.csv", "plain").code == 0
    assert rows(tmp_path / "plain", "window", "ts") == [(0, [1, 2]), (1, [23])]


ORIGINS = {"0": 0, "5": 5, "-3": -3, "1970-01-01T00:00:07": 7, "1970-01-01T01:00:08+01:00": 8}


def test_origin_moves_the_grid(run: Run, tmp_path: Path) -> None:
    stamps = pa.array([12, 14, 16], pa.timestamp("s"))
    pq.write_table(pa.table({"ts": stamps}), tmp_path / "log.parquet")
    for origin, start in ORIGINS.items():
        args = ("-w", "time(100)", f"--origin={origin}", "--mode", "overwrite", "log.parquet", "out")
        assert run(*args).code == 0
        assert [
            at.timestamp() for at in table(tmp_path / "out")["window_start"].cast(pa.timestamp("s", "UTC")).to_pylist()
        ] == [start if start <= 12 else start - 100]


def test_what_is_open_at_the_end(run: Run, tmp_path: Path) -> None:
    write(tmp_path, log__csv="ts\n1\n2\n9\n")
    flush = run("-w", "gap(ts,3)", "-a", "ts=collect(ts)", "log.csv", "flush")
    assert flush.summary == "3 rows in, 2 windows out, 0 rejected"
    assert rows(tmp_path / "flush", "ts", "closed_by") == [([1, 2], "gap"), ([9], "end")]
    drop = run("-w", "gap(ts,3)", "-a", "ts=collect(ts)", "--at-end", "drop", "log.csv", "drop")
    assert drop.summary == "3 rows in, 1 window out, 0 rejected, 1 dropped at the end"
    assert rows(tmp_path / "drop", "ts") == [[1, 2]]


def test_falling_number_in_arrival_order_is_reported(run: Run, tmp_path: Path) -> None:
    write(tmp_path, log__csv="ts\n5\n1\n7\n3\n")
    ran = run("-w", "delta(ts,10)", "-a", "ts=collect(ts)", "log.csv", "out")
    assert ran.notes == [
        "rows are ordered by arrival: no time to order by is named by the window",
        "the window's attribute goes down 2 times in arrival order; if that is not meant, say --order-by COLUMN",
    ]
    assert run("-w", "delta(ts,10)", "--order-by", "ts", "-a", "ts=collect(ts)", "log.csv", "out2").notes == [
        "rows are ordered by ts: asked for"
    ]
    assert rows(tmp_path / "out2", "ts") == [[1, 3, 5, 7]]


def test_a_user_function_of_the_working_folder(run: Run, tmp_path: Path) -> None:
    write(tmp_path, log__csv="x,u\n1,a\n2,bb\n4,c\n", spreads__py=(
        "def spread(values):\n    return float(values.max() - values.min())\n\n"
        "def longest(texts) -> str:\n    return max(texts.to_pylist(), key=len)\n"
    ))  # fmt: skip
    ran = run("-w", "count(2)", "-a", "s=spreads:spread(x)", "-a", "l=spreads:longest(u)", "log.csv", "out")
    assert (ran.code, ran.out, ran.summary) == (0, "", "3 rows in, 2 windows out, 0 rejected")
    assert rows(tmp_path / "out", "s", "l") == [(1.0, "bb"), (0.0, "c")]


MERGING = """
import numpy as np
import pyarrow as pa

def way(x):
    return [int(x[0]), int(x[-1]), int(np.abs(np.diff(x)).sum())]

def merge_ways(states):
    first, last, total = np.array(states.to_pylist()).T
    return [int(first[0]), int(last[-1]), int(total.sum() + np.abs(first[1:] - last[:-1]).sum())]

def total(state) -> int:
    return state[2]

way.pyarrow_type = pa.list_(pa.int64())
way.merge, way.finish = merge_ways, total

def top(x) -> int:
    return int(x.max())

def merge_tops(states):
    raise ValueError(f"{len(states) > 2} of {states.dtype}")

top.merge = merge_tops
"""
CUT_SMALL = ("--split-size", "2KiB", "--slice-size", "2KiB")


def test_parts_of_a_window_are_merged_by_the_users_function(run: Run, tmp_path: Path) -> None:
    """One window of 3,000 rows behind one of a single row, whole and in many segments; then a merge that fails."""
    steps = [(i * 7919) % 1009 for i in range(3001)]
    lines = "".join(f"{i + 5000 * (i > 0)},a,{x}\n" for i, x in enumerate(steps))
    write(tmp_path, log__csv=f"ts,k,x\n{lines}", merging__py=MERGING)
    window = ("-w", "gap(ts, 9)", "-k", "k")
    want = [0, sum(abs(b - a) for a, b in pairwise(steps[1:]))]
    way = ("-a", "way=merging:way(x)")
    whole = run(*window, *way, "-a", "merging:top(x)", "log.csv", "whole")
    cut = run(*window, *way, *CUT_SMALL, "log.csv", "cut")
    for out, ran in (("whole", whole), ("cut", cut)):
        assert (ran.code, ran.summary) == (0, "3,001 rows in, 2 windows out, 0 rejected")
        assert rows(tmp_path / out, "way") == want
    failed = run(*window, "-a", "merging:top(x)", *CUT_SMALL, "log.csv", "tops")
    assert failed.code == 4
    assert "merging:top(x): merge failed in window 1 of key k='a': ValueError: True of int64" in failed.err
    assert not (tmp_path / "tops").exists()
