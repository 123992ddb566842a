"""``wincli why``: what a user reads of results of all kinds of jobs, and what a mistake or a changed file gives."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.in_process import done
from wincli.cli.inspection.explanation import panes_of_key
from wincli.cli.inspection.explanation.why import Explanation, explain
from wincli.cli.inspection.results.result import open_result_folder
from wincli.readers.source import FileSource

LOG = """ts,user,amount
2026-11-01T10:00:00.2,ann,5
2026-11-01T10:00:30,bob,7
2026-11-01T10:01:00,ann,3
,ann,9
2026-11-01T10:01:00.25,ann,4
2026-11-01T10:05:00,ann,1
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "log.csv").write_text(LOG)
    return tmp_path


def run(folder: Path, *words: str) -> None:
    done(folder, "run", *words)


def write_day(folder: Path, day: int, *lines: str, head: str = "ts,user") -> None:
    """Write the log of a day of November; lines begin with their time of day."""
    (folder / "days" / f"dt=2026-11-0{day}").mkdir(parents=True, exist_ok=True)
    dated = [line if line.startswith((",", "2026")) else f"2026-11-0{day}T{line}" for line in lines]
    (folder / "days" / f"dt=2026-11-0{day}" / "log.csv").write_text("\n".join([head, *dated, ""]))


def why(folder: Path, *words: str, code: int = 0) -> str:
    """What is answered; where that is an error, what is said."""
    ran = done(folder, "why", *words, code=code)
    assert (ran.err if code == 0 else ran.out) == ""
    return ran.out or ran.err


def test_a_window_is_told_with_its_rows_what_ended_it_and_what_came_close(folder: Path) -> None:
    run(folder, "--window", "delta(ts, 60)", "--key", "user", "log.csv", "out")
    assert (
        why(folder, "out", "--only", "user=ann", "--window", "0")
        == """\
window 0 of user=ann
  spec     tumbling, delta(ts, 60)
  result   window 0, window_start 2026-11-01 10:00:00.2, window_end 2026-11-01 10:01:00, closed_by delta, count 2
  opened   the row at 2026-11-01 10:00:00.2 opened it: no window of its key came before
  closed   2026-11-01 10:01:00.25 is 60.05 s after the window's first row, 2026-11-01 10:00:00.2; delta is 60 s (delta)
  close by the row at 2026-11-01 10:01:00 is farthest from the first row, by 59.8 s: with a smaller delta it is in the \
next window
  close by with a delta of 60.05 s or more the row at 2026-11-01 10:01:00.25 is in it, too

its 2 rows
  where      ts                     user  amount
  log.csv:2  2026-11-01 10:00:00.2  ann        5
  log.csv:4  2026-11-01 10:01:00    ann        3

rows named above that are not in it
  where      ts                      user  amount
  log.csv:6  2026-11-01 10:01:00.25  ann        4
"""
    )


TWO_OF_A_NAME = {
    "delta(a, 5) or delta(b, 3)": "b 9 of the row at 2 is 9 above the window's first row, b 0 of the row at 1",
    "gap(a, 5) or gap(b, 3)": "b 9 of the row at 2 is 9 above the row before it, b 0 of the row at 1",
    "change(c) or change(b)": "in the row at 2 b goes from 0 to 9",
    "punct(a > 5) or punct(b > 5)": "b > 5 is true for the row at 2, its last row",
    "reaches(sum(a), 50) or reaches(range(b), 9)": "with the row at 2 range(b) is 9, and 0 before it",
    "count(c + 4) or count(2)": "the row at 2 was its row number 2; count is 2",
}
OF_USERS = {
    "time(40) or calendar(day)": "(time)",  # each has a clock of its own
    "reaches(range(ts), 1m)": "range(ts) is 60.05 s, and 59.8 s before it; it closes at 60 s (reaches)",
}


KEYED = ("--key", "user", "log.csv", "out")


@pytest.mark.parametrize("spec", [*TWO_OF_A_NAME, *OF_USERS])
def test_of_several_policies_the_one_that_ended_the_window_is_explained(folder: Path, spec: str) -> None:
    (folder / "numbers.csv").write_text("id,a,b,c\n1,0,0,0\n2,1,9,0\n3,2,9,0\n")
    is_keyed = spec in OF_USERS
    closed = ("--closed", "right") if spec.startswith("time") else ()
    run(folder, "--window", spec, *closed, *(KEYED if is_keyed else ("--order-by", "id", "numbers.csv", "out")))
    out = why(folder, "out", *(("--only", "user=ann") if is_keyed else ()), "--window", "0")
    assert {**TWO_OF_A_NAME, **OF_USERS}[spec] in out
    assert "with a delta of 1 " not in out
    assert "with a gap of 1 " not in out


def test_a_time_finds_its_window_and_json_has_the_numbers(folder: Path) -> None:
    run(folder, "--window", "gap(ts, 2m)", "--key", "user", "log.csv", "out")
    out = why(folder, "out", "--only", "user=ann", "--at", "2026-11-01T10:00:20", "--json", "--rows", "2")
    found = json.loads(out)
    assert (found["window"], found["key"], found["rows"]) == (0, {"user": "ann"}, 3)
    assert [each["where"] for each in found["shown"]] == ["log.csv:2", "log.csv:6"]
    (closed,) = [each for each in found["facts"] if each["kind"] == "closed"]
    assert (closed["rule"], closed["row"], closed["numbers"]) == ("gap", 5, {"distance": "239.75", "limit": "120"})


def test_a_time_needs_an_order_column(folder: Path) -> None:
    run(folder, "--window", "match(a, a = amount > 3)", "--key", "user", "--order-by", "arrival", "log.csv", "out")
    said = why(folder, "out", "--only", "user=ann", "--at", "2026-11-01T10:01:00", code=2)
    assert "--at is a value of the order column, and this result has none: its rows are in arrival order" in said
    assert "say --window NUMBER, or run the job with --order-by" in said


def test_for_a_key_without_the_window_it_says_where_the_rows_went(folder: Path) -> None:
    run(folder, "--window", "gap(ts, 2m)", "--key", "user", "--where", "amount > 3", "log.csv", "out")
    pq.write_table(pa.table({"ts": [1, 2, 3], "x": [float("nan"), 0.5, float("nan")]}), folder / "floats.parquet")
    run(folder, "--window", "count(2)", "--key", "x", "--order-by", "ts", "floats.parquet", "floats")

    def lines(*words: str) -> list[str]:
        return [line.strip() for line in why(folder, *words).splitlines()]

    found = lines("out", "--only", "user=ann", "--window", "7")
    assert found[0] == "there is no window 7 of user=ann"
    told = {"rows     5 rows of this key in the input", "2 windowed", "2 left out by --where", "1 rejected, null_order"}
    assert told <= set(found)
    assert "rows     0 rows of this key in the input" in lines("out", "--only", "user=eve", "--window", "0")
    at = lines("out", "--only", "user=ann", "--at", "2026-11-02")
    assert at[0] == "there is no window at 2026-11-02 00:00:00 of user=ann"
    of_nan = lines("floats", "--only", "x=nan", "--window", "0")
    assert of_nan[2:4] == ["rows     2 rows of this key in the input", "2 rejected, null_key"]


@pytest.mark.parametrize("kept", ["visits", None])
def test_a_later_stage_is_told_by_the_windows_of_the_stage_before(folder: Path, kept: str | None) -> None:
    output = f"\n    output: {kept}" if kept else ""
    (folder / "job.yaml").write_text(f"""input: log.csv
output: out
stages:
  - name: visits
    window: delta(ts, 60)
    key: user{output}
  - name: pairs
    window: count(2)
    key: user
""")
    run(folder, "job.yaml")
    out = why(folder, "out", "--only", "user=ann", "--window", "0")
    assert "its rows are windows of stage visits" in out
    assert "was its row number 2; count is 2 (count)" in out
    assert out.count("part-00000.parquet:") == 3


def test_enriched_rows_are_told_with_what_they_were_given(folder: Path) -> None:
    (folder / "teams.csv").write_text("user,team\nann,red\nbob,red\n")
    run(folder, "--enrich", "t=teams.csv on user", "--window", "count(2)", "--key", "t_team", "log.csv", "out")
    out = why(folder, "out", "--only", "t_team=red", "--window", "1")
    assert out.count("red") >= 3
    assert "log.csv:4" in out
    assert "log.csv:6" in out


def test_a_window_over_several_units_of_a_state_has_the_rows_of_all(folder: Path) -> None:
    write_day(folder, 1, "10:00:00,ann", "23:58:00,ann")
    write_day(folder, 2, "00:01:00,ann", "12:00:00,ann")
    write_day(folder, 3, "00:01:00,ann")
    words = ["--window", "gap(ts, 5m)", "--key", "user", "--start", "2026-11-01", "--end", "2026-11-04"]
    run(folder, *words, "--state", "st", "days", "out")
    out = why(folder, "out", "--unit", "2026-11-02", "--only", "user=ann", "--window", "1")
    assert "2026-11-02 12:00:00 is 43140 s after the row before it, 2026-11-02 00:01:00" in out
    assert "dt=2026-11-01/log.csv:3" in out
    assert "dt=2026-11-02/log.csv:2" in out
    assert "out holds 3 results; say --unit" in why(folder, "out", "--only", "user=ann", "--window", "1", code=2)
    run(folder, *words, "days", "apart")
    out = why(folder, "apart", "--unit", "2026-11-02", "--only", "user=ann", "--window", "0")
    assert "log.csv:2" in out


def test_late_panes_are_told_with_all_outputs(folder: Path) -> None:
    (folder / "late.csv").write_text("t\n1\n2\n11\n3\n12\n30\n")
    words = ["--window", "timeInterval, intervalDuration(10), discardAge(10)", "--event-time", "t"]
    run(folder, *words, "--order-by", "arrival", "late.csv", "out")
    out = why(folder, "out", "--window", "1")
    assert "outputs  output 0, window 0, has 2 rows\n" in out
    assert "outputs  this output has 3 rows, late; 1 row came since the one before\n" in out
    assert "the row with arrival position 4 raised the watermark" in out


def test_only_the_row_groups_next_to_a_window_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = pa.array([row * 1_000_000 for row in range(1000)], pa.timestamp("us"))
    pq.write_table(pa.table({"ts": times, "n": range(1000)}), folder / "long.parquet", row_group_size=10)
    run(folder, "--window", "count(5)", "--order-by", "ts", "long.parquet", "out")
    result, read = open_result_folder(str(folder / "out")), []
    inner = FileSource.read

    def noted(self: FileSource, split: object, *args: object) -> object:
        read.append(split)
        return inner(self, split, *args)  # type: ignore[arg-type]

    monkeypatch.chdir(folder)
    monkeypatch.setattr(FileSource, "read", noted)
    explain(result, (), 100)
    assert sum(split.rows for split in read if split.rows == 10) <= 40  # type: ignore[attr-defined]


def test_an_input_that_is_gone_or_has_changed_is_an_error(folder: Path) -> None:
    run(folder, "--window", "gap(ts, 2m)", "--key", "user", "log.csv", "out")
    (folder / "log.csv").write_text(LOG + "2026-11-01T10:09:00,ann,1\n")
    assert "log.csv has changed since" in why(folder, "out", "--only", "user=ann", "--window", "0", code=3)
    (folder / "log.csv").unlink()
    assert "log.csv, which this result was made of, is gone" in why(
        folder, "out", "--only", "user=ann", "--window", "0", code=3
    )


def test_a_window_whose_amount_asks_for_the_window_before_is_computed_from_the_first_row(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans: list[Any] = []
    inner = panes_of_key.read_key
    monkeypatch.setattr(panes_of_key, "read_key", lambda *args: (spans.append(args[-1]), inner(*args))[1])
    run(folder, "--window", "gap(ts, 10 + previous(count(), 50))", "--key", "user", "log.csv", "out")
    out = why(folder, "out", "--only", "user=ann", "--window", "0")
    assert "the row before it, 2026-11-01 10:01:00.25; the gap follows from the window before (gap)" in out
    out = why(folder, "out", "--only", "user=ann", "--window", "1")
    assert "the end of the data brought it out" in out
    assert spans == [panes_of_key.ALL, panes_of_key.ALL]


LATE_JOBS = {
    "gap": ["--window", "gap(ts, 40m)", "--key", "user"],
    "sums": ["--window", "reaches(sum(n), 60)", "--key", "user", "--order-by", "ts"],
    "grid": ["--window", "time(3h)", "--key", "user", "--order-by", "ts"],
    "sliding": ["--window", "sliding, count(3), count(2)", "--key", "user", "--order-by", "ts"],
    "condition": ["--window", "gap(at, 40m)", "--key", "user", "--let", "at=ts + INTERVAL 1 HOUR", "--where", "n <> 5"],
    "event time": ["--window", "timeInterval, intervalDuration(3h)", "--key", "user", "--event-time", "ts"],
}


def write_days_with_late_rows(folder: Path) -> None:
    """Five days of two users; on the third day each has rows of the first two, of the fourth one without a time."""
    for day in range(1, 6):
        times = [f"{minutes // 60:02}:{minutes % 60:02}:00" for minutes in range(600, 900, 50)]
        late = [f"2026-11-0{back}T{hour}:07:00" for back in (1, 2) for hour in (10, 14)] if day == 3 else []
        lines = [
            f"{at},{('ann', 'bob')[n % 2]},{day * 100 + n}" for n, at in enumerate([*times[:2], *late, *times[2:]])
        ]
        write_day(folder, day, *lines, *([",ann,1"] if day == 4 else []), head="ts,user,n")


@pytest.mark.parametrize(("job", "keep"), [*((job, "1") for job in LATE_JOBS), ("gap", "10"), ("sliding", "10")])
def test_units_of_a_state_that_rejected_late_rows_are_explained_without_these(
    folder: Path, monkeypatch: pytest.MonkeyPatch, job: str, keep: str
) -> None:
    write_days_with_late_rows(folder)
    words = [*LATE_JOBS[job], "--agg", "rows=collect(n)", "--start", "2026-11-01", "--end", "2026-11-06"]
    run(folder, *words, "--state", "st", "--keep", keep, "days", "out")
    monkeypatch.chdir(folder)
    explained = 0
    for day in range(1, 6):
        result = open_result_folder(f"out/dt=2026-11-0{day}")
        for row in pq.read_table(f"out/dt=2026-11-0{day}", partitioning=None).to_pylist():
            found = explain(result, [f"user={row['user']}"], row["window"], rows=100)
            assert isinstance(found, Explanation)
            assert sorted(found.rows.table["n"].to_pylist()) == sorted(row["rows"])
            explained += 1
    assert explained > 10


def test_late_rows_of_a_key_are_counted_where_it_has_no_such_window(folder: Path) -> None:
    write_days_with_late_rows(folder)
    words = ["--window", "gap(ts, 40m)", "--key", "user", "--start", "2026-11-01", "--end", "2026-11-06"]
    run(folder, *words, "--state", "st", "days", "out")
    out = why(folder, "out", "--unit", "2026-11-05", "--only", "user=ann", "--window", "99")
    assert "2 rejected, late\n" in out
    assert "1 rejected, null_order\n" in out
    assert "of them: the others came out in other units\n" in out


def test_windows_that_keep_their_numbers_after_a_correction_are_explained(folder: Path) -> None:
    for day in range(1, 5):
        write_day(folder, day, "00:00:00,a", "00:00:10,a", "00:00:20,a")
    words = ["--window", "gap(ts, 5)", "--key", "user", "--start", "2026-11-01", "--end", "2026-11-05"]
    run(folder, *words, "--state", "st", "days", "out")
    write_day(folder, 1, "00:00:00,a", "00:00:10,a", "00:00:16,a", "00:00:22,a")
    run(folder, *words, "--state", "st", "days", "out")
    for day in (3, 4):
        for row in pq.read_table(folder / f"out/dt=2026-11-0{day}", partitioning=None).to_pylist():
            asked = ("--unit", f"2026-11-0{day}", "--only", "user=a", "--window", str(row["window"]))
            out = why(folder, "out", *asked)
            assert f"result   window {row['window']}, window_start {row['window_start']}" in out


CLICKS = """ts,user,page,p
1,ann,cart,3
2,ann,see,4
3,ann,cart,5
5,ann,see,1
9,ann,cart,9
10,ann,see,2
11,ann,pay,2
12,ann,cart,7
40,ann,cart,4
"""
PAID = "match(cart -> pay, cart = page = 'cart', pay = page = 'pay') within 5"
RISE = "match(low high+ paid, low = page = 'cart', high = p > mean(low.p) * 1.1, paid = page = 'pay')"
NO_MATCH = [
    (PAID, 1, "the row at 1 begins no match: up to its limit of 5 s it waits for pay"),
    (PAID, 2, "the row at 2 begins no match: it is not cart"),
    (PAID, 40, "the row at 40 begins no match: at the end of the data it still waits for pay"),
    (RISE, 1, "the row at 1 begins no match: all ways end with the row at 5, which is not high or paid"),
    (RISE, 3, "the row at 3 begins no match: all ways end with the row at 5, which is not high"),
    ("match(see{2} | see . pay, see = page = 'see', pay = page = 'pay')", 5,
     "the row at 5 begins no match: all ways end with the row at 10, which is not pay"),
]  # fmt: skip


@pytest.mark.parametrize(("window", "at", "says"), NO_MATCH)
def test_a_row_that_begins_no_match_is_told_how_far_it_comes(folder: Path, window: str, at: int, says: str) -> None:
    (folder / "clicks.csv").write_text(CLICKS)
    run(folder, "--window", window, "--key", "user", "--order-by", "ts", "clicks.csv", "out")
    assert says in why(folder, "out", "--only", "user=ann", "--at", str(at)).splitlines()[-1]


def test_a_row_of_a_match_that_is_not_in_the_result_is_told_so(folder: Path) -> None:
    (folder / "clicks.csv").write_text(CLICKS)
    run(folder, "--window", PAID, "--key", "user", "--order-by", "ts", "--having", "count > 2", "clicks.csv", "out")
    for at, says in ((10, "is passed over by"), (11, "is in")):
        last = why(folder, "out", "--only", "user=ann", "--at", str(at)).splitlines()[-1]
        assert f"the row at {at} {says} the match that begins with the row at 9" in last
        assert last.endswith(", as pay") == (at == 11)


SHOTS = {
    "trades.csv": "k,t,x\n1,1,10\n1,4,20\n1,8,30\n2,5,1\n",
    "quotes.csv": "k,t,v\n1,1,1\n1,2,2\n1,3,3\n1,5,4\n1,9,5\n2,50,6\n",
}
JOINED = [
    ("full", "around(2, 1)", ("--only", "k=1", "--window", "1"),
     ["it is of the row at 4 of the left, which has 3 partners among 3 right rows of its key from 2 to 5",
      "the clock passed 5: no row to come can be a partner of it (time)",
      "the row at 1 of the right is 1 before 2", "the row at 9 of the right is 4 after 5"]),
    ("full", "around(2, 1)", ("--only", "k=2", "--at", "50"),
     ["it is of the row at 50 of the right, which has 0 partners among 0 left rows of its key from 49 to 52",
      "the end of the data brought it out (end)", "the row at 5 of the left is 44 before 49"]),
    ("inner", "around(1, 0)", ("--only", "k=1", "--at", "8"),
     ["the row at 8 of the left has 0 partners among 0 right rows of its key from 7 to 8",
      "the row at 5 of the right is 2 before 7", "the row at 9 of the right is 1 after 8"]),
    ("inner", "around(1, 0, prevailing)", ("--only", "k=1", "--window", "2"),
     ["which has 0 partners among 0 right rows of its key from 7 to 8, and the row at 5, the newest before",
      "the row at 9 of the right is 1 after 8"]),
    ("left", "at(-1, 2, -9) within 1", ("--only", "k=1", "--window", "2"),
     ["it is of the row at 8 of the left",
      "at offset -1 the row at 5 is the newest right row of its key, and too old: more than 1 before",
      "at offset 2 the row at 9 is the newest right row of its key",
      "at offset -9 there is no right row of its key"]),
    ("inner", "at(0)", ("--only", "k=2", "--at", "5"), ["at offset 0 there is no right row of its key"]),
]  # fmt: skip


@pytest.mark.parametrize(("how", "window", "of", "says"), JOINED)
def test_a_pane_of_a_join_says_which_rows_are_partners_and_which_came_close(
    tmp_path: Path, how: str, window: str, of: tuple[str, ...], says: list[str]
) -> None:
    for name, text in SHOTS.items():
        (tmp_path / name).write_text(text)
    run(tmp_path, "--join", f"r=quotes.csv on k by t {how}", "--window", window, "trades.csv", "out")
    told = [line[11:] for line in why(tmp_path, "out", *of).splitlines() if line[2:10].strip()]
    assert [text for text in says if not any(line.endswith(text) for line in told)] == []
    assert sum(" of the right is " in line or " of the left is " in line for line in told) == sum(
        " of the right is " in text or " of the left is " in text for text in says
    )


def test_pairs_that_do_not_match_are_counted(tmp_path: Path) -> None:
    for name, text in SHOTS.items():
        (tmp_path / name).write_text(text)
    run(tmp_path, "--join", "r=quotes.csv on k by t left", "--window", "around(2, 1)", "--match", "r_v > 3",
        "trades.csv", "out")  # fmt: skip
    text = why(tmp_path, "out", "--only", "k=1", "--window", "1")
    assert "which has 1 partner among 3 right rows of its key from 2 to 5" in text
    assert "its 2 rows" in text
    assert 'spec     around(2, 1) --join "r=quotes.csv on k by t left" --match "r_v > 3"\n' in text
    text = why(tmp_path, "out", "--only", "k=1", "--window", "0")
    assert "which has 0 partners among 2 right rows of its key from -1 to 2" in text


def test_a_window_of_each_side_says_what_a_row_met_and_of_which_side_rows_are(tmp_path: Path) -> None:
    for name, text in SHOTS.items():
        (tmp_path / name).write_text(text)
    join = ("--join", "r=quotes.csv on k by t left", "--window", "sliding, count(1) join count(2)")
    run(tmp_path, *join, "--match", "r_v > 1", "trades.csv", "out")
    text = why(tmp_path, "out", "--only", "k=1", "--at", "9")
    assert "the row at 9 of the right has 1 partner among 1 left row there when it came" in text
    assert re.search(r"_side .*\n.* left .*\n.* right ", text)
    text = done(tmp_path, "why", "out", "--only", "k=1", "--at", "1").out
    assert (
        "the row at 1 of the right has 0 partners among 1 left row there with it; 1 does not match; it was there"
        in text
    )
    assert "with left, a left row without a partner comes out once, with nulls" in text


def test_rows_without_a_key_say_that_it_equals_nothing(tmp_path: Path) -> None:
    (tmp_path / "trades.csv").write_text("k,t,x\n1,1,10\n,4,20\n")
    (tmp_path / "quotes.csv").write_text("k,t,v\n1,1,1\n,4,2\n")
    for window in ("time(5)", "sliding, count(1) join count(1)", "around(1, 1)"):
        run(
            tmp_path,
            "--join",
            "r=quotes.csv on k by t left",
            "--window",
            window,
            "trades.csv",
            "out",
            "--mode",
            "overwrite",
        )
        text = why(tmp_path, "out", "--only", "k=", "--window", "0")
        assert "its key is null or NaN, and equals nothing" in text
        assert "window 0 of k=-" in text


def test_rows_of_one_window_that_come_out_nowhere_say_why(tmp_path: Path) -> None:
    for name, text in SHOTS.items():
        (tmp_path / name).write_text(text)
    run(tmp_path, "--join", "r=quotes.csv on k by t", "--window", "time(5)", "trades.csv", "out")
    text = why(tmp_path, "out", "--only", "k=2", "--at", "5")
    assert "the row at 5 of the left has 0 partners among 0 right rows in the window" in text
    assert "the row at 50 of the right comes after it" in text
    assert "with inner, only pairs come out" in text
