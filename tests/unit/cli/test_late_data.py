"""Nights with rows that belong to nights before, each window and way to run them: all together are one run over all."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import wincli.cli.run.incremental_run
from support.day_results import day, kept, put_day, records, rows_but, span, total
from support.in_process import done, wincli_here
from support.processes import manifest, tree, write
from wincli.writers.state.journal import commit_together

NIGHTS = 4
LASTING = ("time(4)", "--ends", "till", "--agg", "max_overlap()", "--agg", "part=sum(x * _share)")
WINDOWS = [
    "count(2)",
    "delta(ts, 3)",
    "time(4)",
    "sliding, time(5), time(2)",
    "within 4 every 2",
    "punct(flag)",
    "time(8) every 2",
    "match(low -> high+ (-> flagged)?, low = x < 4, high = x > 3, flagged = flag) within 6",
    "match(low+ . (more | .)?, low = x < 6, more = x > last(low.x)) within 4, overlapping",
]
EVENTS = ("timeInterval, intervalDuration(4), creationPeriod(2)", "--event-time", "ts")
AGGREGATES = ("-a", "n=count()", "-a", "ids=collect(id)", "-a", "x=first(x)", "--order-by", "ts")
STATE = ("--state", "st", "--late", "redo")


class KilledError(BaseException):
    """Stands for a kill: nothing catches it."""


def random_night(night: int, rng: random.Random, first: int) -> pa.Table:
    """Up to 8 rows, some of which belong up to 25 seconds before."""
    size = rng.randint(1, 8)
    late = [rng.randint(0, 25) if rng.random() < 0.4 else 0 for _ in range(size)]
    at = [max(0, night * 5 + rng.randint(0, 5) - back) * 10**6 for back in late]
    night_rows = {
        "ts": pa.array(at, pa.timestamp("us")),
        "u": [rng.choice("ab") for _ in range(size)],
        "id": range(first, first + size),
        "x": [rng.randint(0, 9) for _ in range(size)],
        "flag": [rng.random() < 0.3 for _ in range(size)],
    }
    till = [start + 10**6 * length for start, length in zip(at, night_rows["x"], strict=True)]
    return pa.table({**night_rows, "till": pa.array(till, pa.timestamp("us"))})


def write_log(folder: Path, seed: int) -> random.Random:
    rng, first = random.Random(seed), 0
    for n in range(1, NIGHTS + 1):
        night = random_night(n, rng, first)
        put_day(folder, n, night, row_group_size=3)
        first += night.num_rows
    return rng


def result(folder: Path) -> list[str]:
    return rows_but(folder, "_pos", "window")


def killed(cwd: Path, args: Sequence[str], commit: int, after: bool) -> bool:
    """Run up to a commit, and die before or after it; return whether the run got there."""
    commits = []
    real = commit_together

    def dying(*given: Any) -> Any:
        commits.append(1)
        if len(commits) == commit and not after:
            raise KilledError
        record = real(*given)
        if len(commits) == commit:
            raise KilledError
        return record

    with mock.patch.object(wincli.cli.run.incremental_run, "commit_together", dying):
        try:
            wincli_here("run", *args, cwd=cwd)
        except KilledError:
            return True
    return False


def night_of(night: int, plain: bool) -> tuple[str, ...]:
    """What to say for a night; the last one lets all out."""
    end = ("--at-end", "flush") if night == NIGHTS else ()
    if plain:
        return (f"log/dt={day(night)}", f"out/{night}", *end)
    return ("log", "out", *span(night, night), *end)


def check(cwd: Path, asked: Sequence[str]) -> None:
    done(cwd, "run", *asked, "log", "whole")
    assert result(cwd / "out") == result(cwd / "whole")
    counts, summed = manifest(cwd / "whole")["counts"], total(cwd / "st")
    names = ("rows_in", "windowed", "filtered", "rejected", "dropped_at_end", "held")
    assert {name: summed[name] for name in names} == {name: counts[name] for name in names}


@pytest.mark.parametrize(
    ("window", "plain"), [(each, at % 2 == 0) for at, each in enumerate([*WINDOWS, EVENTS, LASTING])]
)
def test_incremental_runs_with_late_rows_give_the_result_of_one_run(window: Any, plain: bool, tmp_path: Path) -> None:
    asked = ("-w", *([window] if isinstance(window, str) else window), *AGGREGATES, "-k", "u")
    write_log(tmp_path, seed=7)
    for night in range(1, NIGHTS + 1):
        done(tmp_path, "run", *asked, *STATE, *night_of(night, plain))
        before = tree(tmp_path)
        again = done(tmp_path, "run", *asked, *STATE, *night_of(night, plain))
        assert "nothing to do" in again.err
        assert tree(tmp_path) == before
    assert any(record["borrowed"] for record in records(tmp_path / "st").values())
    check(tmp_path, asked)


@pytest.mark.parametrize("window", ["time(4)", "count(2)"])
def test_late_rows_change_what_goes_on_from_window_to_window(window: str, tmp_path: Path) -> None:
    """Until the values are the same again."""
    calls = ("-a", "w=twa(x)", "-a", "i=integral(flag)", "-a", "f=locf(max(x) where flag)", "--order-by", "ts")
    asked = ("-w", window, *calls, *(("--empty", "row") if "time" in window else ()), "-k", "u", "-a", "n=count()")
    write_log(tmp_path, seed=5)
    for night in range(1, NIGHTS + 1):
        done(tmp_path, "run", *asked, *STATE, *night_of(night, plain=True))
    assert any(record["borrowed"] for record in records(tmp_path / "st").values())
    check(tmp_path, asked)


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize(("commit", "plain"), [(1, False), (2, True)])
def test_what_was_killed_is_completed_by_the_same_command(
    plain: bool, commit: int, after: bool, tmp_path: Path
) -> None:
    asked = ("-w", "delta(ts, 3)", *AGGREGATES)
    write_log(tmp_path, seed=3)
    kills = []
    for night in range(1, NIGHTS + 1):
        command = (*asked, *STATE, *night_of(night, plain))
        kills.append(killed(tmp_path, command, commit, after))
        done(tmp_path, "run", *command)
    assert any(kills)
    check(tmp_path, asked)


@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (3, 4, 5))])
def test_corrections_of_units_that_share_late_rows(seed: int, tmp_path: Path) -> None:
    asked = ("-w", "count(3)", *AGGREGATES)
    rng = write_log(tmp_path, seed)
    days = ("log", "out", *span(1, NIGHTS))
    done(tmp_path, "run", *asked, *STATE, *days, "--at-end", "hold")
    for night in rng.sample(range(1, NIGHTS + 1), 2):
        put_day(tmp_path, night, random_night(night, rng, 100 * night), row_group_size=3)
        done(tmp_path, "run", *asked, *STATE, *days, "--at-end", "hold")
    done(tmp_path, "run", *asked, *STATE, *night_of(NIGHTS, plain=False), "--redo")
    check(tmp_path, asked)


@pytest.mark.parametrize(("plain", "seed"), [(True, 3), (False, 7)])
def test_nights_taken_out_of_the_state_and_run_again_give_the_result_of_one_run(
    plain: bool, seed: int, tmp_path: Path
) -> None:
    asked = ("-w", "delta(ts, 3)", *AGGREGATES, "-k", "u")
    write_log(tmp_path, seed)
    for night in range(1, NIGHTS + 1):
        done(tmp_path, "run", *asked, *STATE, *night_of(night, plain))
    found = sorted(records(tmp_path / "st").values(), key=lambda each: int(each["ordinal"]))
    gone = {each["label"] for each in found[2:]}
    has_read = [each for each in found[:2] if any(rows["label"] in gone for rows in each["borrowed"])]
    ran = done(tmp_path, "state", "rollback", "st", found[1]["label"], "--yes")
    assert ("late rows of theirs were read by " in ran.out) == bool(has_read)
    for night in range(3, NIGHTS + 1):
        done(tmp_path, "run", *asked, *STATE, *night_of(night, plain), "--mode", "overwrite")
    if not plain:
        for night in (1, 3):
            done(tmp_path, "state", "forget", "st", day(night), "--yes")
            done(tmp_path, "run", *asked, *STATE, "log", "out", *span(1, NIGHTS), "--mode", "overwrite")
        done(tmp_path, "run", *asked, *STATE, *night_of(NIGHTS, plain=False))
    check(tmp_path, asked)


# What is told, and what is refused


COUNTS = ("run", "-w", "count(2)", "-a", "ids=collect(t)", "--order-by", "t", *STATE)


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """Rows of two nights in ``a`` and ``b``, and of one later and one late in ``c`` and ``d``."""
    for name, times in {"a": [1, 2, 9], "b": [3, 10, 4], "c": [20], "d": [5]}.items():
        pq.write_table(pa.table({"t": times}), tmp_path / f"{name}.parquet")
    return tmp_path


def test_reach_of_late_data_is_reported(two: Path) -> None:
    done(two, *COUNTS, "a.parquet", "one")
    ran = done(two, *COUNTS, "b.parquet", "two")
    assert ran.notes == [
        "2 rows of run-000002 belong to units before it, back to run-000001",
        "run-000001 is run again: it takes 2 late rows of run-000002",
        "rows are ordered by t: asked for",
        "run-000001: 5 rows in, 2 windows out, 0 rejected, 1 held",
    ]
    kept = records(two / "st")
    assert (kept["run-000002"]["lent"], kept["run-000001"]["lent"]) == (["run-000001"], [])
    (loan,) = kept["run-000001"]["borrowed"]
    assert (loan["label"], [Path(file["path"]).name for file in loan["files"]]) == ("run-000002", ["b.parquet"])
    assert [Path(file["path"]).name for file in kept["run-000001"]["inputs"]] == ["a.parquet"]


def refused(text: str, cwd: Path, *args: str, code: int = 2) -> None:
    before = {name: content for name, content in tree(cwd).items() if not name.startswith("st/.")}
    assert done(cwd, *args, "-q", code=code).err == f"wincli: error: {text}\n"
    assert {name: content for name, content in tree(cwd).items() if not name.startswith("st/.")} == before


def test_marks_at_the_ends_of_files_have_no_parts(two: Path) -> None:
    asked = ("run", "-w", "punct()", "--order-by", "t", *STATE)
    done(two, *asked, "a.parquet", "one")
    text = "2 rows of run-000002 belong to units before it, and its window marks are the ends of files, "
    text += "which say nothing of parts of a file; say --marks COLUMN, or reject late rows with --late reject"
    refused(text, two, *asked, "b.parquet", "two")


def test_a_state_that_is_no_longer_kept(two: Path) -> None:
    for name in ("a", "c"):
        done(two, *COUNTS, "--keep", "1", f"{name}.parquet", name)
    text = (
        "1 row of run-000003 belongs to run-000002 or before it, and the state of run-000001, which that begins from, "
    )
    text += "is no longer kept; reject late rows with --late reject; a higher --keep keeps more states"
    refused(text, two, *COUNTS, "d.parquet", "d")


def test_inputs_and_outputs_that_are_gone(two: Path) -> None:
    done(two, *COUNTS, "a.parquet", "one")
    (two / "a.parquet").rename(two / "moved")
    text = f"run-000001 has to be run again, and its input is gone: there is no file or folder {two}/a.parquet; "
    refused(f"{text}put its files back where they were", two, *COUNTS, "b.parquet", "two", code=3)
    (two / "moved").rename(two / "a.parquet")
    (two / "one").rename(two / "moved")
    text = (
        "run-000001 has to be run again, and one no longer holds its result; put that back, or reject late rows with "
    )
    refused(f"{text}--late reject", two, *COUNTS, "b.parquet", "two")
    (two / "moved").rename(two / "one")
    done(two, *COUNTS, "b.parquet", "two")


def test_folder_columns_of_earlier_runs_stay(tmp_path: Path) -> None:
    write_log(tmp_path, seed=7)
    asked = ("-w", "count(2)", *AGGREGATES, "-k", "dt")
    for night in range(1, NIGHTS + 1):
        end = ("--at-end", "flush") if night == NIGHTS else ()
        done(tmp_path, "run", *asked, *STATE, f"log/*={day(night)}", f"out/{night}", *end)
    check(tmp_path, asked)


# A row from the future, behind which all others are late

FUTURE = "2099-01-01T00:00:00"
SESSIONS = ("-w", "gap(ts, 5m)", "-k", "user")
PANES = ("-w", "timeInterval, intervalDuration(1h)", "--event-time", "ts", "-k", "user")
LET = ("-w", "gap(at, 5m)", "-k", "user", "--let", "at=ts + INTERVAL 1 HOUR", "--where", "v > 0")
MOST_LATE = "3 of 3 rows came late, behind {} 2099-01-01 0{}:00:00"


def write_csv_nights(folder: Path, *future: int) -> None:
    for night in range(1, 5):
        at = f"2026-11-0{night}T"
        lines = [f"{at}10:00:00,ann,1", f"{at}10:01:00,ann,2", f"{at}11:00:00,bob,3"]
        lines[1:1] = [f"{FUTURE},cid,9"] * (night in future)
        write(folder / "log" / f"dt={day(night)}", a__csv="\n".join(["ts,user,v", *lines, ""]))


@pytest.mark.parametrize("how", [SESSIONS, PANES, LET], ids=["sessions", "panes", "let"])
def test_nights_behind_a_row_from_the_future_name_it_and_end_well_once_it_is_corrected(
    tmp_path: Path, how: tuple[str, ...]
) -> None:
    write_csv_nights(tmp_path, 2)
    command = ("run", *how, "--state", "st", "log", "out")
    ran = done(tmp_path, *command, *span(1, 4))
    name, hour = ("at", 1) if how is LET else ("ts", 0)
    start = MOST_LATE.format(name, hour) + f" at {tmp_path}/log/dt={day(2)}/a.csv:3, 72 years after any other; "
    advice = f"correct the row and run the range again from {day(2)}: the units after it are run again, too"
    noted = [note for note in ran.notes if "came late" in note]
    if how is PANES:  # rows of the same night came late, too
        assert noted.pop(0).startswith(
            f"{day(2)}: 2 of 4 rows came late, behind ts 2099-01-01 00:00:00 at log/dt={day(2)}/"
        )
    assert [note.startswith(f"{day(n)}: {start}") for n, note in zip((3, 4), noted, strict=True)] == [True, True]
    assert all("or see --max-ahead" in note for note in noted)
    assert all(advice in note and ("--late redo" in note) == (how is not PANES) for note in noted)
    for place in ("st", "out"):
        told = done(tmp_path, "status", place).out
        assert f"late: more than half of the rows of {day(3)}, {day(4)} came late" in told
    write_csv_nights(tmp_path)
    assert "came late" not in done(tmp_path, *command, *span(2, 4)).err
    assert "late:" not in done(tmp_path, "status", "st").out
    done(tmp_path, "run", *how, "--state", "one", "log", "once", *span(1, 4))
    assert result(tmp_path / "out") == result(tmp_path / "once")


def test_a_row_from_the_future_is_named_in_plain_runs_and_by_its_unit_once_its_file_is_gone(tmp_path: Path) -> None:
    write_csv_nights(tmp_path, 1)
    for n in (1, 2):
        ran = done(tmp_path, "run", *SESSIONS, "--state", "st", f"log/dt={day(n)}", f"out-{n}")
        assert ("came late" in ran.err) == (n == 2)
    assert MOST_LATE.format("ts", 0) + f" at {tmp_path}/log/dt={day(1)}/a.csv:3, 72 years after any other; " in ran.err
    assert "run its input and what came after it again, on a new state" in ran.err
    command = ("run", *SESSIONS, "--state", "of-days", "log", "out")
    done(tmp_path, *command, *span(1, 1))
    (tmp_path / "log" / f"dt={day(1)}" / "a.csv").unlink()
    start = MOST_LATE.format("ts", 0) + f" of {day(1)}, whose files do not have it any more; "
    assert f"wincli: note: {day(2)}: {start}" in done(tmp_path, *command, *span(2, 2)).err


@pytest.mark.parametrize("order", [(), ("--order-by", "ts")])
def test_a_row_from_the_future_is_named_in_one_run_over_all(tmp_path: Path, order: tuple[str, ...]) -> None:
    write_csv_nights(tmp_path, 2)
    ran = done(tmp_path, "run", *PANES, *order, "log", "out")
    noted = (
        "8 of 13 rows came late, behind ts 2099-01-01 00:00:00 at log/dt=2026-11-02/a.csv:3, 72 years after any other; "
    )
    noted += "if that is a mistake, correct the row, or leave it out with --where, or see --max-ahead; "
    noted += "with --order-by ts no row is late\n"
    assert ran.err.count(noted) == ran.err.count("came late") == (not order)


@pytest.mark.parametrize(("other", "is_noted"), [(FUTURE, True), ("2026-11-01T11:30:00", False)])
def test_few_late_rows_get_a_note_where_what_they_came_behind_is_far_from_all_others(
    other: str, is_noted: bool, tmp_path: Path
) -> None:
    now = "2026-11-01T10:00:00,a,1\n"
    write(tmp_path, log__csv=f"ts,user,v\n{now * 9}2026-11-01T11:00:00,b,1\n{other},a,1\n{now}{now}")
    ran = done(tmp_path, "run", *PANES, "log.csv", "out")
    assert "2 rejected (late 2)" in ran.err
    noted = "2 of 13 rows came late, behind ts 2099-01-01 00:00:00 at log.csv:12, 72 years after any other; "
    assert (noted in ran.err) == ("came late" in ran.err) == is_noted


@pytest.mark.parametrize(("far", "apart"), [(2_000, "1,995"), (2_000.5, "1,995.5")])
def test_how_far_a_number_is_ahead_is_a_number(far: float, apart: str, tmp_path: Path) -> None:
    write(tmp_path, log__csv="".join(f"{n}\n" for n in ("t", *range(6), far, 0, 1)))
    window = ("-w", "timeInterval, intervalDuration(2)", "--event-time", "t")
    noted = f"2 of 9 rows came late, behind t {far} at log.csv:8, {apart} after any other; "
    assert noted in done(tmp_path, "run", *window, "log.csv", "out").err


# The same row, where it is known how far ahead rows may be


@pytest.mark.parametrize("how", [SESSIONS, PANES], ids=["sessions", "panes"])
def test_a_state_is_repaired_by_max_ahead_from_the_bad_night_on(tmp_path: Path, how: tuple[str, ...]) -> None:
    write_csv_nights(tmp_path, 2)
    for night in (1, 3, 4):  # enough rows for panes to believe
        path = tmp_path / "log" / f"dt={day(night)}" / "a.csv"
        path.write_text(path.read_text() + "".join(f"2026-11-0{night}T11:00:{s:02},bob,3\n" for s in range(1, 20)))
    command, ahead = ("run", *how, "--state", "st", "log", "out"), ("--max-ahead", "2d")
    assert "came late" in done(tmp_path, *command, *span(1, 4)).err
    repaired = done(tmp_path, *command, *ahead, *span(2, 4), "--redo")
    assert "came late" not in repaired.err
    assert "late" not in total(tmp_path / "st")["rejected"]
    told = manifest(tmp_path / "out" / f"dt={day(2)}")
    file = f"log/dt={day(2)}/a.csv"
    assert told["ahead"] == {"rows": 1, "first": {"file": file, "line": 3, "value": "2099-01-01 00:00:00"}}
    assert told["counts"]["rejected"] == ({"ahead": 1} if how is SESSIONS else {})
    assert manifest(tmp_path / "out" / f"dt={day(3)}")["ahead"] == {"rows": 0, "first": None}
    done(tmp_path, "run", *how, *ahead, "--state", "one", "log", "once", *span(1, 4))
    assert result(tmp_path / "out") == result(tmp_path / "once")
    for other in ((), ("--max-ahead", "3d")):
        refused = wincli_here(*command, *other, *span(4, 4), "--redo", cwd=tmp_path)
        assert refused.code == 2
        assert "its max_ahead is 172800, not" in refused.err
    doctor = done(tmp_path, "doctor", "--no-spark", "--store", str(tmp_path / "out" / f"dt={day(2)}")).out
    assert f"1 row ahead of its time: 2099-01-01 00:00:00 at {file}, line 3" in " ".join(doctor.split())


def test_a_state_of_plain_runs_is_rolled_back_and_goes_on_with_max_ahead(tmp_path: Path) -> None:
    write_csv_nights(tmp_path, 2)
    for n in (1, 2, 3):
        done(tmp_path, "run", *SESSIONS, "--state", "st", f"log/dt={day(n)}", f"out-{n}")
    done(tmp_path, "state", "rollback", "st", "run-000001", "--yes")
    plan = ("plan", *SESSIONS, "--state", "st", "--max-ahead", "2d", f"log/dt={day(2)}", "out-2")
    words = f"1 row ahead of its time: 2099-01-01 00:00:00 at log/dt={day(2)}/a.csv, line 3"
    assert words in " ".join(done(tmp_path, *plan, "--mode", "overwrite").out.split())
    for n in (2, 3):
        more = ("--max-ahead", "2d", "--mode", "overwrite")
        ran = done(tmp_path, "run", *SESSIONS, *more, "--state", "st", f"log/dt={day(n)}", f"out-{n}")
        assert ("1 rejected (ahead 1)" if n == 2 else "0 rejected") in ran.err
    assert total(tmp_path / "st")["rejected"] == {"ahead": 1}


def test_late_rows_go_to_their_unit_whose_rows_ahead_stay_rejected(tmp_path: Path) -> None:
    write_csv_nights(tmp_path, 1)
    how = (*SESSIONS, "--max-ahead", "2d")
    path = tmp_path / "log" / f"dt={day(2)}" / "a.csv"
    path.write_text(path.read_text() + "2026-11-01T10:02:00,ann,7\n")
    for n in range(1, 5):
        done(tmp_path, "run", *how, "--state", "st", "--late", "redo", "log", "out", *span(n, n))
    assert total(tmp_path / "st")["rejected"] == {"ahead": 1}
    done(tmp_path, "run", *how, "--at-end", "drop", "log", "at-once")
    assert result(tmp_path / "out") == result(tmp_path / "at-once")


# Many nights, and one row that belongs to the second


MANY = 8
GAPS = ("-w", "gap(ts, 2)", "-k", "u", "--order-by", "ts")


def write_nights(folder: Path, count: int = MANY) -> None:
    for night in range(1, count + 1):
        write_seconds(folder, night, [night * 20 + second for second in (0, 1, 9, 15, 16)])


def write_seconds(folder: Path, night: int, seconds: Sequence[int], name: str = "a") -> None:
    log = pa.table({"ts": pa.array([at * 10**6 for at in seconds], pa.timestamp("us")), "u": ["a"] * len(seconds)})
    put_day(folder, night, log, name)


def test_one_late_row_runs_its_night_again_and_no_other(tmp_path: Path) -> None:
    write_nights(tmp_path)
    command = (*GAPS, *STATE, "log", "out")
    first = done(tmp_path, "run", *command, *span(1, MANY))
    assert not any("no longer kept" in note for note in first.notes)
    before = {label: record["run"] for label, record in records(tmp_path / "st").items()}
    write_seconds(tmp_path, MANY, [2 * 20 + 12], "late")
    planned = wincli_here("plan", *command, *span(MANY, MANY), "--effect", cwd=tmp_path)
    assert f"2 units would run again: {day(2)}, {day(MANY)}" in planned.out
    assert "1 window would differ: 0 changed, 0 gone, 1 new" in planned.out
    ran = done(tmp_path, "run", *command, *span(1, MANY))
    after = {label: record["run"] for label, record in records(tmp_path / "st").items()}
    assert [label for label in after if after[label] != before[label]] == [day(2), day(MANY)]
    assert f"windows of {day(3)} and later keep their numbers" in ran.notes
    assert "nothing to do" in done(tmp_path, "run", *command, *span(1, MANY)).err
    done(tmp_path, "run", *GAPS, "--at-end", "hold", "--state", "st-one", "log/*", "one")
    assert result(tmp_path / "out") == result(tmp_path / "one")


def test_a_window_more_leaves_later_numbers_until_the_rest_is_redone(tmp_path: Path) -> None:
    write_nights(tmp_path)
    command = (*GAPS, "--state", "st", "log", "out")
    done(tmp_path, "run", *command, *span(1, MANY))
    write_seconds(tmp_path, 2, [2 * 20 + 12], "more")
    ran = done(tmp_path, "run", *command, *span(1, MANY))
    how = f"--start {day(3)} --end {day(MANY + 1)} --redo numbers them anew"
    assert f"windows of {day(3)} and later keep their numbers; {how}" in ran.notes
    again = done(tmp_path, "run", *command, *span(3, MANY), "--redo")
    assert not any("keep their numbers" in note for note in again.notes)
    numbers = sorted(ds.dataset(tmp_path / "out", format="parquet").to_table(columns=["window"])["window"].to_pylist())
    assert numbers == list(range(len(numbers)))


def test_states_that_are_dropped_and_what_that_means_are_named(tmp_path: Path) -> None:
    write_nights(tmp_path, 16)
    command = ("run", *GAPS, *STATE, "log", "out")
    few = done(tmp_path, *command, *span(1, 5), "--keep", "3")
    begin = f"a correction can begin with {day(4)} or later, or with all from {day(1)} on; a higher --keep keeps more"
    assert f"the window state of {day(1)}..{day(2)} is no longer kept: {begin}" in few.notes
    many = done(tmp_path, *command, *span(6, 16))
    assert any(f"the window state of {day(3)}..{day(4)} is no longer kept" in note for note in many.notes)
    done(tmp_path, *command, *span(16, 16), "--redo")
    assert kept(tmp_path / "st") == [day(night) for night in range(5, 17)]


def test_late_rows_that_were_rejected_are_named_and_taken_up_by_redo(tmp_path: Path) -> None:
    write_nights(tmp_path)
    write_seconds(tmp_path, 6, [3 * 20 + 12, 4 * 20 + 12], "late")
    command = (*GAPS, "--state", "st", "log", "out")
    done(tmp_path, "run", *command, *span(1, 6))
    ran = done(tmp_path, "run", *command, "--late", "redo", *span(7, 7))
    how = f"--start {day(6)} --end {day(7)} --late redo --redo"
    told = f"2 rows that {day(6)} rejected as late under --late reject stay rejected; {how} takes up what belongs"
    assert any(note.startswith(told) for note in ran.notes)
    done(tmp_path, "run", *command, "--late", "redo", "--redo", *span(6, 6))
    assert total(tmp_path / "st")["rejected"] == {}
    again = done(tmp_path, "run", *command, "--late", "redo", *span(6, 6))
    assert not any("rejected as late" in note for note in again.notes)


def test_a_late_row_does_not_bring_out_a_complete_pane_again(tmp_path: Path) -> None:
    """Its event time comes before that of the row that completed the pane; an open pane has rows of both."""
    asked = ("-w", *EVENTS, "-a", "n=count()", "--order-by", "ts", "--state", "st")
    found = []
    for night, times in enumerate(([1, 2], [3, 0], [9])):
        pq.write_table(pa.table({"ts": pa.array(times, pa.timestamp("s"))}), tmp_path / f"{night}.parquet")
        done(tmp_path, "run", *asked, f"{night}.parquet", f"out{night}")
        rows = ds.dataset(tmp_path / f"out{night}").to_table().to_pylist()
        found.append([(row["window"], row["window_end"].second, row["n"]) for row in rows])
    assert found == [[(0, 2, 1)], [], [(1, 4, 3), (2, 6, 2)]]
    assert manifest(tmp_path / "out1")["counts"]["rejected"] == {"late": 1}


@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_run_on_a_state_over_folders_of_days_asks_for_the_range(tmp_path: Path, command: str) -> None:
    write_nights(tmp_path)
    before = tree(tmp_path)
    ran = done(tmp_path, command, "-q", *GAPS, "--state", "st", "log", "out", code=2)
    what = (
        f"log holds folders of days such as dt={day(1)}, and on a state these are units of a range; nothing was written"
    )
    assert ran.err == f"wincli: error: {what}; say --start and --end, or for one run say log/*\n"
    assert tree(tmp_path) == before
    done(tmp_path, "run", *GAPS, "--state", "st", "log", "out", *span(1, 2))
    ran = done(tmp_path, "run", "-q", *GAPS, "--state", "st", "log", "out", code=2)
    assert "say --start and --end for days" in ran.err
