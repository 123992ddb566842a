"""Ranges of days, with and without a state: what is run, skipped, missing and corrected, and that it is exact."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from tests.cli.running import Ran, manifest, rows, tree, write

Run = Callable[..., Ran]
Fails = Callable[..., None]
DAYS = 6
SESSIONS = ("-w", "gap(ts, 2h)", "-k", "user", "-a", "n=count()", "-a", "ids=collect(id)")
COUNTS = ("-w", "count(2)", "-a", "ids=collect(id)")


def write_day(folder: Path, day: int, first: int = 0) -> None:
    """A day of guests who stay for an hour or two, and of one user who stays from day 1 to day 3, 12:00.

    That user comes back at 02:00 of each day after it, so that the long session comes out on day 4.
    """
    hours = [hour for hour in range(24) if day < 3 or (day == 3 and hour < 12) or (day > 3 and hour == 2)]
    stays = [hour for hour in range(24) if hour % 8 < 3]
    users = ["stays"] * len(hours) + [f"guest {hour // 8}" for hour in stays]
    at = [((day - 1) * 24 + hour) * 3_600_000_000 + 1 for hour in (*hours, *stays)]
    ids = [day * 1000 + first + n for n in range(len(users))]
    folder.joinpath(f"dt=2026-11-{day:02}").mkdir(parents=True, exist_ok=True)
    log = pa.table({"ts": pa.array(at, pa.timestamp("us")), "user": users, "id": ids})
    pq.write_table(log, folder / f"dt=2026-11-{day:02}" / "a.parquet")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    for day in range(1, DAYS + 1):
        write_day(tmp_path / "log", day)
    return tmp_path / "log"


def day(n: int) -> str:
    return f"2026-11-{n:02}"


def span(first: int, last: int) -> tuple[str, ...]:
    """The flags of a range of days, the last one included."""
    return "--start", day(first), "--end", day(last + 1)


def done(ran: Ran, code: int = 0) -> Ran:
    assert ran.code == code, ran.err
    return ran


def closing(ran: Ran) -> str:
    """The counts of the closing line, which is that of the range."""
    found = re.fullmatch(r"wincli: (.*), \d+\.\d s, [\d,]+ rows?/s -> out", ran.err.splitlines()[-1])
    assert found, ran.err
    return found[1]


def windows(out: Path) -> list[tuple[Any, ...]]:
    """All windows below a folder, whichever day they came out."""
    read = ds.dataset(out, format="parquet", exclude_invalid_files=False).to_table()
    columns = ("user", "window", "window_start", "window_end", "n", "ids", "_at", "_mark")
    return sorted(zip(*(read[name].to_pylist() for name in columns), strict=True), key=str)


# Without a state


def test_days_are_done_once_and_again_when_their_files_change(run: Run, tmp_path: Path) -> None:
    for n in (1, 2, 4):
        write(tmp_path / "in" / f"dt={day(n)}", a__csv=f"id\n{n}\n{n}0\n{n}00\n")
    command = (*COUNTS, "in", "out", *span(1, 5), "--exit-code-noop", "99")
    first = done(run(*command))
    assert closing(first) == "3 units done, 2 gaps, 9 rows in, 6 windows out, 0 rejected"
    assert f"no input, passed over: {day(3)}, {day(5)}" in first.notes
    assert [rows(tmp_path / "out" / f"dt={day(n)}", "ids") for n in (1, 4)] == [[[1, 10], [100]], [[4, 40], [400]]]
    assert manifest(tmp_path / "out" / f"dt={day(2)}")["counts"]["rows_in"] == 3
    before = tree(tmp_path)
    second = done(run(*command), 99)
    assert second.err.splitlines()[-1] == "wincli: nothing to do -> out"
    assert f"already done with the same input: {day(1)}..{day(2)}, {day(4)}" in second.notes
    assert tree(tmp_path) == before
    write(tmp_path / "in" / f"dt={day(2)}", b__csv="id\n7\n")
    write(tmp_path / "in" / f"dt={day(3)}", a__csv="id\n3\n")
    third = done(run(*command))
    assert closing(third) == "2 units done (1 again), 2 skipped, 1 gap, 5 rows in, 3 windows out, 0 rejected"
    assert rows(tmp_path / "out" / f"dt={day(2)}", "ids") == [[2, 20], [200, 7]]


def test_templates_name_input_and_output(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "in/2026/11", d01__csv="id\n1\n", d02__csv="id\n2\n")
    done(run(*COUNTS, "in/{date:%Y/%m/d%d}.csv", "out/{date:%Y%m%d}", *span(1, 2)))
    assert [rows(tmp_path / "out" / name, "ids") for name in ("20261101", "20261102")] == [[[1]], [[2]]]


def test_a_unit_that_fails_is_named_and_those_before_it_stay(run: Run, tmp_path: Path) -> None:
    write(
        tmp_path / "in",
        d20261101__csv="id\n1\n",
        d20261102__csv="id\n9223372036854775807\n1\n",
        d20261103__csv="id\n3\n",
    )
    ran = done(run("-w", "count(9)", "-a", "s=sum(id)", "in/d{date:%Y%m%d}.csv", "out/{date}", *span(1, 3)), 4)
    assert ran.err.splitlines()[-1].startswith(f"wincli: error: {day(2)}: ")
    assert f"done before that, and kept: {day(1)}" in ran.notes
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [day(1)]


def test_ranges_that_cannot_be(fails: Fails, tmp_path: Path) -> None:
    write(tmp_path / "in", a__csv="id\n1\n")
    fails(
        2,
        "in has no {date}, and holds no folders of days such as dt=2026-11-02; "
        "write {date} where the day stands in the path",
        *(*COUNTS, "in", "out", *span(1, 2)),
    )
    fails(3, "there is no file or folder inn; did you mean in?", *COUNTS, "inn/{date}.csv", "out", *span(1, 2))


# With a state


def test_days_with_a_state_are_one_run_over_all(run: Run, log: Path, tmp_path: Path) -> None:
    state = ("--state", "st")
    done(run(*SESSIONS, "log", "out", *state, *span(1, 2)))
    done(run(*SESSIONS, "log", "out", *state, *span(1, DAYS - 1)))
    done(run(*SESSIONS, "log", "out", *state, *span(DAYS, DAYS), "--at-end", "flush"))
    done(run(*SESSIONS, "log", "whole"))
    assert windows(tmp_path / "out") == windows(tmp_path / "whole")


def test_a_correction_goes_as_far_as_it_reaches_and_no_further(run: Run, log: Path, tmp_path: Path) -> None:
    command = (*SESSIONS, "log", "out", "--state", "st")
    done(run(*command, *span(1, DAYS)))
    beyond = {n: tree(tmp_path / "out" / f"dt={day(n)}") for n in range(5, DAYS + 1)}
    times = {path: path.stat().st_mtime_ns for n in beyond for path in (tmp_path / "out" / f"dt={day(n)}").rglob("*")}
    write_day(log, 2, first=500)
    ran = done(run(*command, *span(2, 2)))
    notes = [note for note in ran.notes if "again" in note or "correction" in note]
    assert notes == [
        f"{day(2)} is run again: its input is not what it was",
        f"{day(3)} is run again: the state before it is not the one that it began from",
        f"{day(4)} is run again: the state before it is not the one that it began from",
        f"the correction reached {day(4)}; {day(5)}..{day(6)} stay as they were",
    ]
    assert {n: tree(tmp_path / "out" / f"dt={day(n)}") for n in beyond} == beyond
    assert {path: path.stat().st_mtime_ns for path in times} == times
    done(run(*SESSIONS, "log", "again", "--state", "st2", *span(1, DAYS)))
    assert windows(tmp_path / "out") == windows(tmp_path / "again")


def test_a_day_that_arrives_late_and_a_redo(run: Run, log: Path, tmp_path: Path) -> None:
    command = (*SESSIONS, "log", "out", "--state", "st")
    (log / f"dt={day(2)}").rename(tmp_path / "late")
    assert f"no input, passed over: {day(2)}" in done(run(*command, *span(1, DAYS))).notes
    (tmp_path / "late").rename(log / f"dt={day(2)}")
    arrived = done(run(*command, *span(1, DAYS)))  # windows of all later days have other numbers now
    assert f"the correction reached {day(DAYS)}; no unit was done after it" in arrived.notes
    redone = done(run(*command, *span(4, 5), "--redo"))
    assert f"the correction reached {day(5)}; {day(6)} stay as they were" in redone.notes
    done(run(*SESSIONS, "log", "again", "--state", "st2", *span(1, DAYS)))
    assert windows(tmp_path / "out") == windows(tmp_path / "again")


def test_plain_runs_onto_a_state_read_each_file_once(run: Run, log: Path, tmp_path: Path) -> None:
    one, two = (f"log/dt={day(n)}/a.parquet" for n in (1, 2))
    done(run(*SESSIONS, one, "out/1", "--state", "st"))
    before = tree(tmp_path)
    again = done(run(*SESSIONS, one, "out/1", "--state", "st", "--exit-code-noop", "9"), 9)
    assert again.err.splitlines()[-1].startswith("wincli: nothing to do")
    assert tree(tmp_path) == before
    done(run(*SESSIONS, two, "out/2", "--state", "st"))
    ran = run(*SESSIONS, one, "out/3", "--state", "st")
    assert (ran.code, ran.err.splitlines()[-1]) == (
        2,
        f"wincli: error: {one} was read by run-000001 of this state already; "
        "name only new files, or use {date} with --start and --end",
    )
