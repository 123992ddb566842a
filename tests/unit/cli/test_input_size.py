"""Which jobs may run without Spark: a quick look at their input says so, and what they ask of Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wincli.cli import launch
from wincli.cli.launch import is_small
from wincli.cli.run.request import parse_job

MIB = 1 << 20


def asks(*paths: str, **options: Any) -> bool:
    return is_small(parse_job({"paths": (*paths, "out"), "window": "gap(ts, 60)", **options}))


def put(path: Path, nbytes: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(nbytes)


def test_bytes_of_all_files_decide(tmp_path: Path) -> None:
    put(tmp_path / "log" / "a.csv", 8 * MIB)
    put(tmp_path / "log" / "deep" / "b.csv", 8 * MIB)
    put(tmp_path / "log" / "deep" / "c.csv", 1)
    log = str(tmp_path / "log")
    assert not asks(log)
    assert asks(f"{log}/a.csv")
    assert asks(f"{log}/a.csv", f"{log}/deep/c.csv")
    assert not asks(f"{log}/*/b.csv")
    (tmp_path / "log" / "deep" / "c.csv").unlink()
    assert asks(log)


def test_units_of_a_range_count_on_average(tmp_path: Path) -> None:
    for day in ("01", "02"):
        put(tmp_path / "log" / f"dt=2026-11-{day}" / "a.csv", 12 * MIB)
    log = str(tmp_path / "log")
    assert not asks(log)
    assert asks(log, start="2026-11-01", end="2026-11-03")
    assert asks(f"{log}/dt={{date}}", start="2026-11-01", end="2026-11-03")


def test_what_cannot_be_listed_is_left_to_the_reader(tmp_path: Path) -> None:
    assert asks(str(tmp_path / "nowhere"))


def test_many_files_are_not_counted_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "_MOST_FILES", 3)
    for number in range(3):
        put(tmp_path / "log" / f"{number}.csv", 1)
    assert asks(str(tmp_path / "log"))
    put(tmp_path / "log" / "3.csv", 1)
    assert not asks(str(tmp_path / "log"))


@pytest.mark.parametrize(
    "options",
    [
        {"master": "local[2]"},
        {"spark_conf": ["spark.ui.enabled=true"]},
        {"agg": ["own.module:function(ts)"]},
        {"enrich": ["q=quotes on user"]},
        {"jobs": 2, "start": "2026-11-01", "end": "2026-11-03"},
    ],
)
def test_who_asks_something_of_spark_gets_spark(tmp_path: Path, options: dict[str, Any]) -> None:
    put(tmp_path / "log" / "a.csv", 1)
    assert asks(str(tmp_path / "log"))
    assert not asks(str(tmp_path / "log"), **options)


def test_input_elsewhere_is_not_looked_at() -> None:
    assert not asks("s3://bucket/log")


@pytest.mark.parametrize("is_small_there", [True, False])
def test_stdin_is_waited_for_only_where_nothing_else_asks_for_spark(tmp_path: Path, is_small_there: bool) -> None:
    asked = []

    def look() -> bool:
        asked.append(1)
        return is_small_there

    put(tmp_path / "log" / "a.csv", MIB)
    job = {"paths": ("-", "out"), "window": "gap(ts, 60)"}
    assert is_small(parse_job(job), look) == is_small_there
    assert asked == [1]
    assert not asks("-")
    assert not is_small(parse_job({**job, "master": "local[2]"}), look)
    assert is_small(parse_job({**job, "paths": (str(tmp_path / "log"), "out")}), look)
    assert asked == [1]
