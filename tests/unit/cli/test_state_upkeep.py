"""``wincli state``: units listed and taken out again, old window states deleted; in a folder and in a store."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.in_process import done, wincli_here
from support.processes import Ran, table, tree

RUN = ("run", "-w", "gap(ts, 30m)", "-k", "user", "-a", "n=count()", "log/{date}.csv", "out/{date}")
DAYS = ("--start", "2026-11-01", "--end", "2026-11-06")


@pytest.fixture(params=["folder", "store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A state after five days, whose sessions go on past midnight."""
    (tmp_path / "log").mkdir()
    for day in range(1, 6):
        write_day(tmp_path, day)
    path = "st" if request.param == "folder" else f"{request.getfixturevalue('s3').uri}/states/st"
    assert backfill(tmp_path, path).code == 0
    return path


def write_day(folder: Path, day: int, user: str = "b") -> None:
    rows = [f"a,2026-11-0{day}T10:00:00", f"{user},2026-11-0{day}T23:50:00", f"a,2026-11-0{day}T00:05:00"]
    (folder / f"log/2026-11-0{day}.csv").write_text("user,ts\n" + "\n".join([*rows, ""]))


def backfill(folder: Path, state: str, *more: str) -> Ran:
    return wincli_here(*RUN, *DAYS, "--state", state, *more, cwd=folder)


def act(folder: Path, *words: str) -> str:
    """What a command of states prints; it says nothing else."""
    ran = done(folder, "state", *words)
    assert ran.err == ""
    return ran.out


def refused(folder: Path, text: str, *words: str) -> None:
    ran = done(folder, "state", *words, code=2)
    assert ran.err == f"wincli: error: {text}\n"


def units(folder: Path, state: str, key: str = "unit") -> list[Any]:
    return [unit[key] for unit in json.loads(act(folder, "list", state, "--json"))["units"]]


def results(folder: Path) -> dict[str, list[Any]]:
    """The rows of each result."""
    found = {out.name: table(out).to_pylist() for out in sorted((folder / "out").iterdir())}
    assert any(found.values())
    return found


def check_as_one_range(folder: Path, state: str) -> None:
    """Check that what is there is what one range over all days leaves."""
    again = results(folder)
    shutil.rmtree(folder / "out")
    assert backfill(folder, "fresh").code == 0
    assert again == results(folder)
    for key in ("unit", "open"):
        assert units(folder, state, key) == units(folder, "fresh", key)


def test_what_is_listed_or_not_confirmed_stays(place: str, tmp_path: Path) -> None:
    listed = act(tmp_path, "list", place)
    first, head, *lines = listed.splitlines()
    assert re.fullmatch(rf"{place}: 5 units, 5 with a window state, [\d.]+ KiB", first)
    assert head.split() == ["unit", "ordinal", "finished", "open", "windows", "bytes", "id"]
    for day, line in enumerate(lines, 1):
        assert re.fullmatch(
            rf"2026-11-0{day} +{20757 + day} +\d{{4}}-\d\d-\d\dT[\d:+]+ +2 +[\d.]+ KiB  [0-9a-f]{{12}}", line
        )
    told = json.loads(act(tmp_path, "list", place, "--json"))
    assert [unit["kept"] for unit in told["units"]] == [True] * 5
    assert [unit["began"] for unit in told["units"][1:]] == [unit["state"] for unit in told["units"][:-1]]
    assert told["forgotten"] == {}
    for words in (["rollback", place, "2026-11-03"], ["forget", place, "2026-11-03"], ["gc", place, "--keep", "1"]):
        refused(tmp_path, "nothing was changed, as nobody can be asked here; say --yes to go on", *words)
        assert wincli_here("state", *words, cwd=tmp_path).out
    kept = act(tmp_path, "gc", place, "--yes")
    assert kept == f"nothing to do: {place} keeps what its ranges need to be corrected; --keep N keeps less\n"
    assert act(tmp_path, "list", place) == listed


def test_a_rollback_leaves_the_state_as_it_was_after_the_unit(place: str, tmp_path: Path) -> None:
    before, written = units(tmp_path, place), results(tmp_path)
    assert act(tmp_path, "rollback", place, "2026-11-03", "--yes").splitlines() == [
        f"the state {place} will be as it was after 2026-11-03: it forgets 2 units, 2026-11-04..2026-11-05",
        "2 results stay as written (out/2026-11-04, out/2026-11-05): run again with --mode overwrite, which replaces "
        "these",
        "done",
    ]
    assert units(tmp_path, place) == before[:3]
    assert results(tmp_path) == written
    again = act(tmp_path, "rollback", place, "2026-11-03", "--yes")
    assert again == f"nothing to do: 2026-11-03 is the last unit of {place}\n"
    ran = backfill(tmp_path, place)
    assert (ran.code, "output out/2026-11-04 already holds a result" in ran.err) == (2, True)
    write_day(tmp_path, 4, "c")
    assert "2 units done, 3 skipped" in backfill(tmp_path, place, "--mode", "overwrite").err
    check_as_one_range(tmp_path, place)


def test_units_after_a_forgotten_one_are_run_again_as_far_as_their_windows_change(place: str, tmp_path: Path) -> None:
    assert act(tmp_path, "forget", place, "2026-11-02", "--yes").splitlines() == [
        f"the state {place} forgets 2026-11-02, as if it had never been run",
        "after it there are 3 units, 2026-11-03..2026-11-05, of which 2026-11-03 began from it: the next run of a "
        "range runs again those whose windows change, and replaces their results; until then they stay",
        "1 result stays as written (out/2026-11-02): run again with --mode overwrite, which replaces that",
        "done",
    ]
    assert units(tmp_path, place) == ["2026-11-01", "2026-11-03", "2026-11-04", "2026-11-05"]
    assert act(tmp_path, "list", place).splitlines()[-1] == "forgotten, and not run since: 2026-11-02"
    again = act(tmp_path, "forget", place, "2026-11-02")
    assert again == f"nothing to do: 2026-11-02 of {place} is forgotten already\n"
    (tmp_path / "log/2026-11-02.csv").unlink()
    shutil.rmtree(tmp_path / "out/2026-11-02")
    again = backfill(tmp_path, place)
    assert again.code == 0, again.err
    assert "2026-11-03 is run again: the state before it is not the one that it began from" in again.err
    assert "windows of 2026-11-04 and later keep their numbers" in again.err
    assert backfill(tmp_path, place, "--start", "2026-11-04", "--redo").code == 0
    check_as_one_range(tmp_path, place)


def test_the_last_unit_is_forgotten_and_run_again(place: str, tmp_path: Path) -> None:
    act(tmp_path, "forget", place, "2026-11-05", "--yes")
    assert "1 unit done, 4 skipped" in backfill(tmp_path, place, "--mode", "overwrite").err
    check_as_one_range(tmp_path, place)


def test_garbage_is_what_old_units_and_killed_runs_left(place: str, tmp_path: Path) -> None:
    if place == "st":
        (tmp_path / "st/.new-0123456789ab").mkdir()
        (tmp_path / "st/.new-0123456789ab/part").write_bytes(b"x" * 2048)
    look = act(tmp_path, "gc", place, "--keep", "2", "--dry-run")
    left = [".new-0123456789ab was left by a killed run and is deleted, 2.0 KiB"] if place == "st" else []
    *said, deleted, nothing = look.splitlines()
    assert said == left
    assert re.fullmatch(
        r"the window states of 3 units, 2026-11-01..2026-11-03 are deleted, [\d.]+ KiB: "
        "the last 2 can still be corrected",
        deleted,
    )
    assert nothing == "nothing was deleted: this was a look"
    assert act(tmp_path, "list", place).startswith(f"{place}: 5 units, 5 with a window state")
    assert act(tmp_path, "gc", place, "--keep", "2", "--yes").splitlines() == [*left, deleted, "done"]
    assert not (tmp_path / "st/.new-0123456789ab").exists()
    assert act(tmp_path, "list", place).startswith(f"{place}: 5 units, 2 with a window state")
    again = act(tmp_path, "gc", place, "--keep", "2")
    assert again == f"nothing to do: {place} keeps no more than the window states of 2 units\n"
    text = (
        f"{place} no longer keeps the window state of 2026-11-02, so no unit could begin from it; nothing was changed; "
    )
    text += "roll back to one of 2026-11-04..2026-11-05; a higher --keep keeps more"
    refused(tmp_path, text, "rollback", place, "2026-11-02", "--yes")
    text = f"{place} no longer keeps the window state of 2026-11-02, from which 2026-11-03 began; nothing was changed; "
    text += "units after 2026-11-04 can be forgotten; a higher --keep keeps more"
    refused(tmp_path, text, "forget", place, "2026-11-03", "--yes")
    act(tmp_path, "rollback", place, "2026-11-04", "--yes")


def test_a_state_from_which_a_correction_goes_on_is_no_garbage(place: str, tmp_path: Path) -> None:
    act(tmp_path, "forget", place, "2026-11-02", "--yes")
    act(tmp_path, "gc", place, "--keep", "1", "--yes")
    assert units(tmp_path, place, "kept") == [True, False, False, True]
    assert backfill(tmp_path, place, "--mode", "overwrite").code == 0
    check_as_one_range(tmp_path, place)


# What is refused, and what a state of plain runs does


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A state of three plain runs."""
    for number in range(1, 4):
        (tmp_path / f"{number}.csv").write_text(f"ts\n{number}\n")
        done(tmp_path, "run", "-w", "count(2)", f"{number}.csv", f"out{number}", "--state", "st")
    return tmp_path


def test_of_plain_runs_only_the_last_is_forgotten(plain: Path) -> None:
    text = "run-000002 is a plain run, from which run-000003 began, and plain runs do not run again by themselves; "
    text += "nothing was changed; forget run-000003 first, or go back with wincli state rollback st run-000001"
    refused(plain, text, "forget", "st", "run-000002", "--yes")
    act(plain, "forget", "st", "run-000003", "--yes")
    ran = wincli_here("run", "-w", "count(2)", "3.csv", "new3", "--state", "st", cwd=plain)
    assert (ran.code, units(plain, "st")[-1]) == (0, "run-000003")
    assert table(plain / "out3") == table(plain / "new3")


def test_a_rollback_of_plain_runs_lets_their_files_be_read_again(plain: Path) -> None:
    for action in ("rollback", "forget"):
        text = "the state st has no unit 'run-00003'; did you mean 'run-000003'?"
        refused(plain, text, action, "st", "run-00003", "--yes")
    act(plain, "rollback", "st", "run-000001", "--yes")
    ran = wincli_here("run", "-w", "count(2)", "2.csv", "3.csv", "both", "--state", "st", cwd=plain)
    assert (ran.code, units(plain, "st")) == (0, ["run-000001", "run-000002"])


def test_what_is_no_state_is_refused_and_not_made_one(tmp_path: Path) -> None:
    for words in (["list", "st"], ["rollback", "st", "x"], ["forget", "st", "x", "--yes"], ["gc", "st", "--yes"]):
        refused(tmp_path, "there is no state in st; name the folder that --state names", *words)
    assert tree(tmp_path) == {}
