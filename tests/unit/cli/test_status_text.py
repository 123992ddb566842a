"""What ``wincli status`` prints of states and results, to the letter."""

from __future__ import annotations

import io
import json
import os
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.docs_pages import rows_of
from wincli.cli.console.messages import Messages
from wincli.cli.console.row_account import WORDS, are_joined, equation, sum_consecutive
from wincli.cli.inspection.results.status import print_status
from wincli.conf.ranges import unit_at, unit_of_plain_run
from wincli.windowing.errors import ConfigError
from wincli.windowing.ports import Counts, InputFile
from wincli.writers.places.lock import Owner
from wincli.writers.state.journal import commit_together
from wincli.writers.state.state import open_state
from wincli.writers.state.unit_record import OpenWindows, StageRecord, UnitRecord

ME = Owner(os.getpid(), os.uname().nodename, "2026-11-07T02:00:00+00:00")
NO_OPEN = OpenWindows(0, 0, None)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def counts(rows_in: int, carried: int, held: int, **rejected: int) -> dict[str, Any]:
    """An account in which all other rows are windowed, but for ten that are filtered."""
    windowed = rows_in + carried - held - 10 - sum(rejected.values())
    return {
        "rows_in": rows_in, "carried": carried, "windowed": windowed, "filtered": 10, "dropped_at_end": 0,
        "held": held, "rejected": rejected,
    }  # fmt: skip


def stage(told: dict[str, Any], windows: int, left: OpenWindows = NO_OPEN, name: str = "window") -> StageRecord:
    return StageRecord(name, {}, {}, told, windows, (), left)


def add(ordinal: int, *stages: StageRecord, plain: bool = False) -> None:
    """Commit a unit, a day unless it is a plain run, onto the state ``st``."""
    unit = unit_of_plain_run(ordinal - 1 if ordinal else None) if plain else unit_at(ordinal, "day")
    started = "2026-11-07T02:00:00+00:00"
    with open_state("st", ME) as state, state.begin(unit.label, ordinal, []) as staging:
        record = UnitRecord(
            unit.label, ordinal, None, None, None, (InputFile("in/a.csv", 1, None),), (), stages, "", started,
            f"2026-11-07T02:00:0{ordinal % 10}+00:00", {}, {}, "", None, {},
        )  # fmt: skip
        commit_together(staging, record, [], 10)


def printed(capsys: pytest.CaptureFixture[str], path: str = "st", is_a: str = "a state") -> list[str]:
    stream = io.StringIO()
    print_status(path, False, Messages(1, stream=stream))
    assert stream.getvalue() == f"wincli: detail: {path} is {is_a}\n"
    return capsys.readouterr().out.splitlines()


def as_json(capsys: pytest.CaptureFixture[str], path: str = "st") -> dict[str, Any]:
    print_status(path, True, Messages())
    return dict(json.loads(capsys.readouterr().out))


# States


def test_a_state_of_days(capsys: pytest.CaptureFixture[str]) -> None:
    add(0, stage(counts(1000, 0, 12, late=3, null_key=1), 300))
    add(1, stage(counts(20, 12, 0), 7))
    add(4, stage(counts(1500, 0, 40), 290, OpenWindows(12, 7, "2026-11-05 23:10:00")))
    assert printed(capsys) == [
        "st: 3 units, 1970-01-01..1970-01-05",
        "unit        rows in  windows out  held  rejected",
        "1970-01-01    1,000          300    12  late 3, null_key 1",
        "1970-01-02       20            7     0  0",
        "1970-01-05    1,500          290    40  0",
        "gaps: 1970-01-03..1970-01-04",
        "open: 12 windows of 7 keys, the oldest from 2026-11-05 23:10:00",
        "row accounting: 2,520 rows in = 2,446 windowed + 30 filtered + 4 rejected + 0 dropped at the end + 40 held",
    ]


def test_status_of_a_chain_lists_each_stage(capsys: pytest.CaptureFixture[str]) -> None:
    left = OpenWindows(1, 1, None)
    add(0, stage(counts(100, 0, 5, late=2), 30, left, "sites"), stage(counts(30, 0, 1, null_key=1), 3, left, "all"))
    assert printed(capsys) == [
        "st: 1 unit, 1970-01-01",
        "unit        rows in  windows out  held  rejected",
        "1970-01-01      100            3     6  late 2, null_key 1",
        "open in stage sites: 1 window of 1 key",
        "open in stage all: 1 window of 1 key",
        "row accounting of stage sites: "
        "100 rows in = 83 windowed + 10 filtered + 2 rejected + 0 dropped at the end + 5 held",
        "row accounting of stage all: 30 rows in = 18 windowed + 10 filtered + 1 rejected "
        "+ 0 dropped at the end + 1 held",
    ]


def test_plain_runs_have_no_gaps_and_a_run_is_counted_with_the_rows_that_it_began_from(
    capsys: pytest.CaptureFixture[str],
) -> None:
    add(0, stage(counts(100, 0, 5), 30), plain=True)
    add(1, stage(counts(100, 5, 7), 30), plain=True)
    told = as_json(capsys)
    assert [unit["label"] for unit in told["units"]] == ["run-000001", "run-000002"]
    assert [unit["stages"][0]["carried"] for unit in told["units"]] == [0, 5]
    assert (told["gaps"], told["accounts"][0]["balanced"]) == ([], True)


def test_a_state_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    add(0, stage(counts(100, 0, 5, late=2), 30, OpenWindows(3, 2, "9")))
    account = {
        "rows_in": 100, "carried": 0, "windowed": 83, "filtered": 10, "rejected": {"late": 2}, "dropped_at_end": 0,
        "held": 5, "balanced": True,
    }  # fmt: skip
    assert as_json(capsys) == {
        "path": "st",
        "what": "state",
        "units": [
            {
                "label": "1970-01-01",
                "finished": "2026-11-07T02:00:00+00:00",
                "rows_in": 100,
                "windows_out": 30,
                "rejected": {"late": 2},
                "held": 5,
                "stages": [{"name": "window", **account}],
            }
        ],
        "gaps": [],
        "mostly_late": [],
        "open": [{"stage": "window", "windows": 3, "keys": 2, "oldest": "9"}],
        "accounts": [{"stage": "window", **account}],
        "at_work": None,
        "to_complete": None,
        "killed": None,
        "last_error": None,
        "lost": [],
        "damage": [],
    }


def test_rows_that_are_missing_are_reported_and_the_last_error_until_its_unit_is_done(
    capsys: pytest.CaptureFixture[str],
) -> None:
    add(0, stage(counts(100, 0, 5), 30))
    with open_state("st", ME) as state:
        state.fail("1970-01-02", "sum(x) overflows; use a float", "2026-11-07T02:00:09+00:00")
    line = "last error: 1970-01-02 at 2026-11-07T02:00:09+00:00: sum(x) overflows; use a float"
    assert printed(capsys)[-1] == line
    assert "balance" not in printed(capsys)[-2]
    add(1, stage(counts(100, 4, 0), 30))
    assert line not in printed(capsys)
    assert printed(capsys)[-1].endswith("; this does not balance")


def test_status_shows_a_running_process(capsys: pytest.CaptureFixture[str]) -> None:
    with open_state("st", ME) as state, state.begin("1970-01-01", 0, []):
        told = printed(capsys)
    assert told == ["st: 0 units", f"at work: process {ME.pid} on {ME.host}, started {ME.started}"]


LEFT: dict[str, tuple[dict[str, Any], str]] = {
    ".running.json": (
        {"unit": "1970-01-02", "outputs": []},
        "killed: 1970-01-02 was not finished, and nothing of it was written; run it again",
    ),
    ".journal.json": (
        {"label": "1970-01-02", "run": "0" * 12, "keep": 10, "outputs": []},
        "commit: 1970-01-02 was killed while it was put in place; run again",
    ),
}


@pytest.mark.parametrize("name", LEFT)
def test_status_shows_what_a_killed_run_left_and_changes_nothing(capsys: pytest.CaptureFixture[str], name: str) -> None:
    """It leaves its lock, signed by a process that is no more, and a file."""
    add(0, stage(counts(100, 0, 0), 30))
    gone = Owner(2**22 + 1, ME.host, ME.started)  # beyond the largest process id
    Path("st/.wincli-lock").write_bytes(gone.to_json())
    Path("st", name).write_text(json.dumps(LEFT[name][0]))
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*")}
    assert printed(capsys)[-1] == LEFT[name][1]
    assert {path: path.stat().st_mtime_ns for path in Path().rglob("*")} == before
    assert (as_json(capsys)["to_complete"] == "1970-01-02") == (name == ".journal.json")


# Results


def write_result(out: str, rows: int, told: dict[str, Any], stages: list[dict[str, Any]] | None = None) -> None:
    names = [{"name": each["name"]} for each in stages or []] + [{"name": "last"}]
    manifest = {
        "job": {"unit": "day", "stages": names}, "counts": told, "rows_out": rows, "stages": stages or [],
        "parts": [{"name": "part-00000.csv", "rows": rows, "bytes": 2}], "rejects": [], "inputs": [],
    }  # fmt: skip
    Path(out, "_wincli").mkdir(parents=True)
    Path(out, "part-00000.csv").write_text("a\n")
    Path(out, "_SUCCESS").touch()
    Path(out, "_wincli/manifest.json").write_text(json.dumps(manifest))


def test_outputs_of_a_range(capsys: pytest.CaptureFixture[str]) -> None:
    write_result("out/dt=2026-11-01", 30, counts(1000, 0, 0, late=3))
    write_result("out/dt=2026-11-04", 8, counts(100, 0, 0))
    assert printed(capsys, "out", "a folder of results") == [
        "out: 2 units, 2026-11-01..2026-11-04",
        "unit        rows in  rows out  held  rejected",
        "2026-11-01    1,000        30     0  late 3",
        "2026-11-04      100         8     0  0",
        "gaps: 2026-11-02..2026-11-03",
        "row accounting: 1,100 rows in = 1,077 windowed + 20 filtered + 3 rejected + 0 dropped at the end + 0 held",
    ]
    assert as_json(capsys, "out")["what"] == "range"


def test_a_result(capsys: pytest.CaptureFixture[str]) -> None:
    before = {"name": "sites", "counts": counts(500, 0, 0, late=1)}
    write_result("out", 5, counts(20, 0, 0), [before])
    assert printed(capsys, "out", "a result") == [
        "unit  rows in  rows out  held  rejected",
        "out       500         5     0  late 1",
        "row accounting of stage sites: "
        "500 rows in = 489 windowed + 10 filtered + 1 rejected + 0 dropped at the end + 0 held",
        "row accounting of stage last: "
        "20 rows in = 10 windowed + 10 filtered + 0 rejected + 0 dropped at the end + 0 held",
    ]
    assert as_json(capsys, "out/")["what"] == "result"


def test_a_state_of_a_newer_version() -> None:
    Path("st").mkdir()
    Path("st/.wincli-state").write_text('{"format": 99}')
    with pytest.raises(ConfigError, match="newer wincli"):
        print_status("st", False, Messages())


# Accounts

ROWS = st.integers(0, 20)
NIGHTS = st.lists(st.tuples(ROWS, ROWS, ROWS, st.dictionaries(st.sampled_from(["late", "null_key"]), ROWS)), min_size=1)


@given(NIGHTS)
def test_row_accounting_of_consecutive_runs_is_that_of_one_run(
    nights: list[tuple[int, int, int, dict[str, int]]],
) -> None:
    accounts = []
    carried = 0
    for rows, windowed, filtered, rejected in nights:
        rows_in = rows + windowed + filtered + sum(rejected.values())
        held = rows + carried
        accounts.append(Counts(rows_in, windowed, filtered, 0, held, rejected, carried))
        carried = held
    total = sum_consecutive(accounts)
    assert all(account.balanced for account in [*accounts, total, sum(accounts, Counts())])
    assert (total.carried, total.held) == (0, sum(rows for rows, *_ in nights))
    assert are_joined(accounts)


def test_row_accounting_of_disjoint_runs_does_not_balance_and_an_older_version_carries_nothing() -> None:
    one, other = Counts(5, 2, held=3), Counts(5, 7, carried=2)
    assert all(each.balanced for each in (one, other, one + other))
    assert not are_joined([one, other])
    assert not any(each.balanced for each in (sum_consecutive([one, other]), Counts(5, 2, held=2)))
    told = {"rows_in": 3, "windowed": 1, "filtered": 1, "dropped_at_end": 0, "held": 0, "rejected": {"late": 1}}
    assert Counts.of(told) == Counts(3, 1, 1, rejected={"late": 1})


# The words of the row account


def test_a_row_account_has_one_word_for_each_count_and_none_on_both_sides() -> None:
    assert [name for name in WORDS if name not in {field.name for field in fields(Counts)}] == []
    words = list(WORDS.values())
    assert len({word.split()[0] for word in words}) == len(words)
    account = Counts(5, 4, 1, 0, 1, {"late": 1, "null_key": 1}, 3)
    assert account.balanced
    text = "5 rows in + 3 carried in = 4 windowed + 1 filtered + 2 rejected + 0 dropped at the end + 1 held"
    assert equation(account) == text
    assert equation(replace(account, rows_in=1, carried=0)).startswith("1 row in = 4 windowed + ")


def test_the_words_of_the_row_account_are_those_of_its_page() -> None:
    assert {row[0]: row[1] for row in rows_of("results", "Row accounting")} == WORDS
