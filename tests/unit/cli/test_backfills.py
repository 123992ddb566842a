"""The whole command over ranges of days onto a state: which days a correction touches, and that all else stays."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.day_results import as_one, day, in_order, kept, records, span, total
from support.in_process import done, wincli_here
from support.month_log import ALL, DAYS, Log, Seen, added, changed, corrections, moved
from support.processes import Ran, manifest, rows, write


def closing(ran: Ran) -> str:
    """The counts of the closing line, which is that of the range."""
    found = re.fullmatch(r"wincli: (.*), \d+\.\d s, [\d,]+ rows?/s -> out", ran.err.splitlines()[-1])
    assert found, ran.err
    return found[1]


# Twelve days


@pytest.fixture(scope="module")
def done_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Log, Path]:
    """Days that were done, and a copy of all of it."""
    folder = tmp_path_factory.mktemp("days") / "here"
    log = Log(folder)
    for n in ALL:
        log.write(n)
    ran = log.run(*span(1, DAYS), "--keep", "30")
    assert closing(ran) == "12 units done, 72 rows in, 47 windows out, 0 rejected"
    shutil.copytree(folder, folder.with_name("copy"), copy_function=shutil.copy2)
    return log, folder.with_name("copy")


@pytest.fixture
def days(done_once: tuple[Log, Path]) -> Iterator[Log]:
    """Days that were done; what a test does to them is undone."""
    log, copy = done_once
    yield log
    shutil.rmtree(log.folder)
    shutil.copytree(copy, log.folder, copy_function=shutil.copy2)


def test_all_days_are_one_run_and_a_second_time_does_nothing(days: Log) -> None:
    before = Seen.of(days)
    again = days.run(*span(1, DAYS), "--keep", "30", "--exit-code-noop", "99", code=99)
    assert again.err.splitlines() == [
        f"wincli: note: already done with the same input: {day(1)}..{day(DAYS)}",
        "wincli: nothing to do -> out",
    ]
    assert before.touched(days) == []
    assert days.is_that_of_one_run()
    assert total(days.state) == {
        **{"rows_in": 72, "carried": 0, "windowed": 70, "filtered": 0, "dropped_at_end": 0, "panes_hidden": 0},
        **{"held": 2, "rejected": {}},
    }


CORRECTIONS = {
    "a time within a session that ends on that day": (moved("09:00", "08:40"), [5], (5, 5)),
    "a value that the next day shows": (changed("20:00"), [5, 6], (5, 5)),
    "a session more that the next day shows": (added(("23:30", "a", 1)), [5, 6], (1, DAYS)),
    "a session less": (lambda lines: [line for line in lines if line[0] != "12:00"], [5], (5, 5)),
}


@pytest.mark.parametrize("case", CORRECTIONS)
def test_a_correction_touches_the_days_it_reaches_and_no_other(days: Log, case: str) -> None:
    change, reached, asked = CORRECTIONS[case]
    before, runs = Seen.of(days), records(days.state)
    days.write(5, change)
    ran = days.run(*span(*asked), "--keep", "30")
    assert before.touched(days) == [*reached]
    now = records(days.state)
    assert [label for label, record in now.items() if record["run"] != runs[label]["run"]] == [*map(day, reached)]
    assert all(manifest(days.folder / f"out/dt={day(n)}")["run"] == now[day(n)]["run"] for n in ALL)
    last = reached[-1]
    beyond = f"{day(last + 1)}..{day(DAYS)} stay as they were" if last < DAYS else "no unit was done after it"
    assert corrections(ran) == [f"the correction reached {day(last)}; {beyond}"]
    assert days.is_that_of_one_run(but=("window",) if "session" in case else ())


def test_a_file_more_and_a_file_less(days: Log) -> None:
    more = days.folder / "log" / f"dt={day(10)}" / "b.csv"
    more.write_text(f"ts,user,x\n{day(10)}T03:00:00,c,1\n{day(10)}T09:00:00,c,1\n")
    before = Seen.of(days)
    days.run(*span(1, DAYS), "--keep", "30")
    assert before.touched(days) == [10, 11, 12]
    assert days.is_that_of_one_run()
    more.unlink()
    days.run(*span(10, 10), "--keep", "30")
    assert days.is_that_of_one_run()


# Five days


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = Log(tmp_path)
    for n in range(1, 6):
        log.write(n)
    return log


def test_a_missing_day_that_arrives_late(log: Log) -> None:
    (log.folder / "log" / f"dt={day(3)}").rename(log.folder / "later")
    ran = log.run(*span(1, 5))
    assert closing(ran) == "4 units done, 1 gap, 24 rows in, 16 windows out, 0 rejected"
    assert f"no input, passed over: {day(3)}" in ran.notes
    assert log.is_that_of_one_run()
    (log.folder / "later").rename(log.folder / "log" / f"dt={day(3)}")
    before = Seen.of(log)
    arrived = log.run(*span(1, 5))
    assert before.touched(log) == [3, 4]
    assert closing(arrived) == "2 units done (1 again), 3 skipped, 12 rows in, 8 windows out, 0 rejected"
    assert corrections(arrived) == [f"the correction reached {day(4)}; {day(5)} stays as it was"]
    assert log.is_that_of_one_run(but=("window",))
    log.run(*span(5, 5), "--redo")
    assert log.is_that_of_one_run()


def test_states_that_are_not_kept_cannot_be_begun_from(log: Log) -> None:
    log.run(*span(1, 5), "--keep", "2")
    assert kept(log.state) == [day(4), day(5)]
    text = (
        f"{day(3)} begins from the state of {day(2)}, which is no longer kept; nothing was written for it; "
        f"start with {day(5)} or later, or redo all from the first unit, {day(1)}, on; "
        "a higher --keep keeps more states"
    )
    log.fails(2, text, *span(3, 3), "--redo", "--keep", "2")
    before = Seen.of(log)
    log.run(*span(5, 5), "--redo", "--keep", "2")
    assert before.touched(log) == [5]
    log.run(*span(1, 5), "--redo", "--keep", "2")
    assert kept(log.state) == [day(4), day(5)]
    assert log.is_that_of_one_run()


def test_a_correction_whose_input_is_gone(log: Log) -> None:
    log.run(*span(1, 5))
    shutil.rmtree(log.folder / "log" / f"dt={day(4)}")
    assert log.run(*span(1, 5), "--exit-code-noop", "9", code=9).err.splitlines()[-1] == "wincli: nothing to do -> out"
    log.write(3, changed("20:00"))
    why = "the state before it is not the one that it began from"
    ran = log.run(*span(1, 5), code=3)
    what = f"{day(4)} has to be run again ({why}), and its input is gone"
    assert ran.err.splitlines()[-1] == f"wincli: error: {what}; put its files back where they were"
    assert f"done before that, and kept: {day(3)}" in ran.notes
    log.write(4)
    assert corrections(log.run(*span(5, 5))) == [f"the correction reached {day(4)}; {day(5)} stays as it was"]
    assert log.is_that_of_one_run()


def test_a_day_that_fails_is_named_and_those_before_it_stay(log: Log) -> None:
    log.write(3, added(("13:00", "a", 2**63 - 1), ("13:30", "a", 5)))
    ran = log.run(*span(1, 5), code=4)
    assert ran.err.splitlines()[-1].startswith(
        f"wincli: error: {day(3)}: sum(x) does not fit int64 in window 5 of key "
    )
    assert f"done before that, and kept: {day(1)}..{day(2)}" in ran.notes
    assert (sorted(records(log.state)), len(log.outputs())) == ([day(1), day(2)], 2)
    told = wincli_here("status", "st", cwd=log.folder).out.splitlines()[-1]
    assert re.match(rf"last error: {day(3)} at \S+: .*sum\(x\) does not fit int64", told)
    log.write(3)
    log.run(*span(1, 5))
    assert log.is_that_of_one_run()
    assert "last error" not in wincli_here("status", "st", cwd=log.folder).out


# Hours


def test_hours_and_templates(tmp_path: Path) -> None:
    for hour in (22, 23, 24):
        n, clock = 1 + hour // 24, hour % 24
        lines = [f"{day(n)}T{clock:02}:{minute:02}:00" for minute in (0, 10, 50)]
        write(tmp_path / "in" / f"{day(n)}", **{f"h{clock:02}__csv": "\n".join(["ts", *lines, ""])})
    hours = ("--unit", "hour", "--start", f"{day(1)}T22", "--end", f"{day(2)}T01")
    paths = ("in/{date:%Y-%m-%d/h%H}.csv", "out/{date:%Y%m%d/%H}")
    command = ("run", "-w", "gap(ts, 15m)", *paths, "--state", "st", *hours, "-a", "n=count()")
    done(tmp_path, *command)
    units = list(records(tmp_path / "st").values())
    assert [unit["label"] for unit in units] == [f"{day(1)}T22", f"{day(1)}T23", f"{day(2)}T00"]
    outputs = [tmp_path / "out" / name for name in ("20261101/22", "20261101/23", "20261102/00")]
    assert [rows(output, "window", "n") for output in outputs] == [[(0, 2)], [(1, 3)], [(2, 3)]]
    assert as_one(in_order(outputs), units)["_pos"].to_pylist() == [2, 5, 8]
