"""What a report says of results of all kinds is what a list of their rows says."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from support.report_logs import DAYS, RANGE, run, write_days, write_log
from wincli.cli.console.lanes import Lane
from wincli.cli.inspection.report.gather import read_folder, report_of
from wincli.cli.inspection.report.page import Report, page_of
from wincli.cli.inspection.results.open_windows import open_windows
from wincli.cli.inspection.results.result import open_result_folder

RUNS: dict[str, tuple[str, ...]] = {
    "gap": ("-w", "gap(ts, 1h)", "-k", "user"),
    "csv": ("-w", "gap(ts, 1h)", "-k", "user", "--output-format", "csv"),
    "jsonl": ("-w", "gap(ts, 1h)", "-k", "user", "--output-format", "jsonl"),
    "two_keys": ("-w", "time(1h)", "-k", "user,shop"),
    "no_key": ("-w", "time(2h)", "--agg", "n=count()", "--agg", "sum(amount)"),
    "no_count": ("-w", "time(2h)", "-k", "user", "--agg", "sum(amount)"),
    "arrival": ("-w", "count(4)", "-k", "user", "--order-by", "arrival"),
    "groups": ("-w", "time(3h)", "-k", "user", "--group-by", "shop"),
    "rows": ("-w", "gap(ts, 1h)", "-k", "user", "--emit", "rows"),
    "sliding": ("-w", "sliding, time(3h), count(2)", "-k", "user", "--partial"),
    "number": ("-w", "delta(amount, 3)", "-k", "user", "--order-by", "amount"),
    "late": ("-w", "timeInterval, intervalDuration(1h), discardAge(20h)", "-k", "user"),
    "plain": ("-w", "gap(ts, 1h)", "-k", "user", "--plain"),
}
Pane = tuple[tuple[Any, ...], int, Any, Any, int]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reports")
    write_log(path / "log.csv")
    for name, words in RUNS.items():
        run(path, *words, "log.csv", name)
    return path


def panes(result: Path, keys: tuple[str, ...]) -> Iterator[Pane]:
    """Yield key, number, start, end and rows of each pane, row at a time."""
    found: dict[tuple[Any, ...], Pane] = {}
    for table in open_result_folder(str(result)).rows.tables():
        for row in table.to_pylist():
            if row["window"] is not None:
                key = tuple(row[name] for name in keys)
                count = row["_row"] is not None if "_row" in row else row.get("n", row.get("count", 0))
                before = found.get((key, row["window"]), (*[None] * 4, 0))[4]
                pane = (key, row["window"], row["window_start"], row["window_end"], before + int(count))
                found[key, row["window"]] = pane
    yield from found.values()


def gather_report(path: str, only: Sequence[str] = ()) -> Report:
    return report_of(path, read_folder(path), only)


def measure(value: Any) -> Any:
    """Microseconds since 1970, or the number itself."""
    if isinstance(value, dt.datetime):
        return (value - dt.datetime(1970, 1, 1, tzinfo=value.tzinfo)) // dt.timedelta(microseconds=1)
    return value


@pytest.mark.parametrize("name", RUNS)
def test_lanes_totals_and_distributions_are_those_of_the_rows(folder: Path, name: str) -> None:
    words = RUNS[name]
    keys = tuple(words[words.index("-k") + 1].split(",")) if "-k" in words else ()
    found, expected = gather_report(str(folder / name)), [*panes(folder / name, keys)]
    lanes = found["lanes"]
    assert found["totals"]["windows"] == sum(n for _, n in found["reasons"]) == len(expected)
    by_key = defaultdict(list)
    for pane in expected:
        by_key[", ".join(map(str, pane[0]))].append(pane)
    assert lanes["keys"] == len(by_key)
    is_placed = lanes["axis"]["scale"] != "window"
    for lane in lanes["lanes"]:
        check_lane(lane, by_key[lane.key], found, is_placed)
    weights = {key: sum(p[4] if lanes["is_by_rows"] else 1 for p in lot) for key, lot in by_key.items()}
    drawn = [weights[lane.key] for lane in lanes["lanes"]]
    assert drawn == sorted(weights.values(), reverse=True)[: len(drawn)]
    for told, values in (
        (found["lengths"], [measure(pane[3]) - measure(pane[2]) for pane in expected] if is_placed else []),
        (found["sizes"], [pane[4] for pane in expected] if lanes["is_by_rows"] else []),
    ):
        if not values:
            assert told is None
            continue
        sums = [told[name] for name in ("count", "least", "most", "total")]
        assert sums == [len(values), min(values), max(values), sum(values)]
        for bar in told["bars"]:
            assert bar["count"] == sum(bar["low"] <= value < bar["high"] for value in values)


def check_lane(lane: Lane, expected: list[Pane], found: Report, is_placed: bool) -> None:
    assert lane.windows == len(expected)
    if is_placed:
        assert lane.starts.tolist() == [measure(pane[2]) for pane in expected]
        assert lane.ends.tolist() == [measure(pane[3]) for pane in expected]
    else:
        assert lane.starts.tolist() == [pane[1] for pane in expected]
    if lane.values is None:
        assert "the result does not say how many rows" in found["notes"][-1]
    else:
        assert lane.values.tolist() == [pane[4] for pane in expected]
        assert lane.rows == sum(pane[4] for pane in expected)


def test_rejects_have_their_place_in_time(folder: Path) -> None:
    over_time = gather_report(str(folder / "gap"))["over_time"]
    sums = {series["name"]: sum(series["values"]) for series in over_time["series"]}
    assert (sums["late rows"], sums["other rejects"], sums["rows in windows"]) == (0, 1, 60)
    assert over_time["apart"] == "1 rejected row has no place in time."


def test_chosen_keys_come_first(folder: Path) -> None:
    lanes = gather_report(str(folder / "two_keys"), ["user=cy", "shop=s1", "shop=s2"])["lanes"]["lanes"]
    chosen = [lane.key for lane in lanes if lane.is_chosen]
    assert chosen
    assert [lane.key for lane in lanes][: len(chosen)] == chosen
    assert set(chosen) <= {"cy, s1", "cy, s2"}


def test_secrets_are_not_in_a_page(folder: Path) -> None:
    secret = "spark.hadoop.fs.s3a.secret.key=Zm9vYmFyYmF6cXV4"
    run(folder, *RUNS["gap"], "--spark-conf", secret, "log.csv", "secret")
    page = page_of(gather_report(str(folder / "secret")))
    assert "fs.s3a.secret.key=***" in page
    assert "Zm9v" not in page


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("days")
    write_days(path / "log")
    run(path, *DAYS, "out/{date}", "--state", "st", *RANGE)
    return path


def test_a_state_and_its_results_have_one_calendar(days: Path) -> None:
    state, results = gather_report(str(days / "st")), gather_report(str(days / "out"))
    for found in (state, results):
        cells = found["calendar"]["cells"]
        assert [cell["label"] for cell in cells] == [f"2026-11-0{day}" for day in range(1, 6)]
        assert [cell["gaps"] for cell in cells] == [0, 0, 1, 0, 0]
        assert [cell["rows_in"] for cell in cells] == [23, 26, 0, 34, 35]
        assert [(cell["late"], cell["rejected"]) for cell in cells] == [(0, 0), (0, 0), (0, 0), (1, 1), (0, 0)]
        series = {each["name"]: each["values"] for each in found["over_time"]["series"]}
        assert series["late rows"] == [0, 0, 0, 1, 0]
    lanes, others = state["lanes"]["lanes"], results["lanes"]["lanes"]
    assert [lane.windows for lane in lanes] == [lane.windows for lane in others]
    assert state["totals"]["open windows"] == 5
    assert all(lane.held is None for lane in others)
    assert {lane.key: lane.held for lane in lanes if lane.held} == {
        row["user"]: (measure(row["first"]), measure(row["last"]), row["rows"])
        for table in open_windows(str(days / "st"), None, None).tables()
        for row in table.to_pylist()
    }


def test_results_that_are_gone_are_told(days: Path, tmp_path: Path) -> None:
    run(days, *DAYS, f"{tmp_path}/out/{{date}}", "--state", "st2", *RANGE)
    for file in (tmp_path / "out" / "2026-11-02").glob("part-*"):
        file.unlink()
    found = gather_report(str(days / "st2"))
    assert any("2026-11-02" in note for note in found["notes"])
    assert found["lanes"] is not None


def test_units_of_a_correction_show_as_run_again(days: Path) -> None:
    path = days / "log" / "2026-11-04.csv"
    path.write_text(path.read_text() + "2026-11-04T23:50:00,u1\n")
    for name in ("again", "once"):
        run(days, *DAYS, f"{name}/{{date}}", "--state", f"{name}-state", *RANGE)
    path.write_text(path.read_text() + "2026-11-04T23:55:00,u1\n")
    run(days, *DAYS, "again/{date}", "--state", "again-state", *RANGE)
    again, once = (gather_report(str(days / f"{name}-state"))["calendar"] for name in ("again", "once"))
    assert [cell["redone"] for cell in again["cells"]] == [0, 0, 0, 1, 1]
    assert [cell["redone"] for cell in once["cells"]] == [0] * 5


def test_a_window_is_told_in_the_sentences_of_a_plan(folder: Path) -> None:
    found = gather_report(str(folder / "gap"))
    assert [text for _, text in found["clauses"]] == [
        "Each user has windows of its own.",
        "A window ends before a row whose ts is more than 1 h after that of the row before it.",
        "Each window gives one row: count = count().",
        "Windows that are open at the end of the data come out.",
    ]
