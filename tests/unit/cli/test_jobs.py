"""Units of a range at the same time (``--jobs``): the result of one after the other, also when some fail."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.day_results import day, put_day, span
from support.in_process import done, wincli_here
from support.processes import Ran, tree
from wincli.cli.run.parallel_units import SharedBoot, SharedProgress, UnitRunner
from wincli.cli.run.steps import UnitStep
from wincli.conf.ranges import Unit, unit_at
from wincli.windowing.errors import DataError
from wincli.windowing.spark.boot import Progress
from wincli.windowing.spark.session import Background

DAYS = 6
JOB = (
    *("-w", "gap(ts, 20)", "-k", "user", "--order-by", "ts", "-a", "s=sum(x)", "-a", "m=median(x)"),
    *("--slice-size", "1KiB", "--split-size", "512B", "--master", "local[2]"),
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Six days; the fourth has no rows."""
    for n in range(1, DAYS + 1):
        ts = [1000 * n + (37 * at * n) % 600 for at in range(120 if n != 4 else 0)]
        columns = {"ts": ts, "user": ["abc"[at % 3] for at in range(len(ts))], "x": [at / 7 for at in ts]}
        types = pa.schema([("ts", pa.int64()), ("user", pa.string()), ("x", pa.float64())])
        put_day(tmp_path, n, pa.table(columns, types), row_group_size=31)
    return tmp_path


def run(folder: Path, jobs: int, *more: str, out: str = "out", days: int = DAYS) -> Ran:
    return wincli_here("run", *JOB, *span(1, days), "--jobs", str(jobs), *more, "log", out, cwd=folder)


def content(out: Path) -> dict[str, Any]:
    """All files of results; of manifests what does not differ from run to run."""
    return {
        name: _same_each_time(json.loads(data)) if data and name.endswith("manifest.json") else data
        for name, data in tree(out).items()
        if not name.endswith((".crc",))
    }


def _same_each_time(told: dict[str, Any]) -> dict[str, Any]:
    job = {key: value for key, value in told["job"].items() if key not in ("jobs", "output", "mode", "redo")}
    left_out = ("run", "place", "seconds", "checksum", "started", "finished", "created", "job")
    return {**{key: value for key, value in told.items() if key not in left_out}, "job": job}


@pytest.mark.parametrize("jobs", [2, 50])
def test_results_are_those_of_one_unit_after_the_other(jobs: int, log: Path) -> None:
    assert run(log, 1).code == 0
    ran = run(log, jobs, out="beside")
    assert ran.code == 0, ran.err
    assert content(log / "beside") == content(log / "out")
    done = sorted(note.partition(":")[0] for note in ran.notes if " rows in" in note)
    assert done == [day(n) for n in range(1, DAYS + 1)]
    assert sum("rows are ordered by" in note for note in ran.notes) == 1
    assert ran.summary.startswith("6 units done, 600 rows in")


def test_a_unit_that_fails_is_named_and_what_ran_beside_it_is_kept(log: Path) -> None:
    broken = log / "log" / f"dt={day(3)}" / "a.parquet"
    good = broken.read_bytes()
    broken.write_bytes(b"junk")
    ran = run(log, 3)
    assert ran.code == 3
    assert ran.err.splitlines()[-1].startswith(f"wincli: error: {day(3)}: ")
    left = sorted(path.name for path in (log / "out").iterdir())
    assert left[:2] == [f"dt={day(1)}", f"dt={day(2)}"]
    assert f"dt={day(3)}" not in left
    assert f"done before that, and kept: {day(1)}..{day(2)}" in ran.err
    broken.write_bytes(good)
    assert run(log, 3).summary.startswith(f"{DAYS - len(left)} unit")
    assert len(list((log / "out").iterdir())) == DAYS


def test_an_input_that_is_gone_stops_before_its_unit_and_the_units_before_it_are_done(log: Path) -> None:
    (log / "two").mkdir()
    (log / "two" / f"{day(1)}.parquet").write_bytes((log / "log" / f"dt={day(2)}" / "a.parquet").read_bytes())
    flags = [*JOB, *span(1, 3), "--jobs", "3", "log/dt={date}/*.parquet", "two/{date}.parquet", "out"]
    ran = done(log, "run", *flags, code=3)
    assert f"wincli: error: {day(2)}: log/dt={{date}}/*.parquet has files for {day(2)}" in ran.err
    assert [path.name for path in (log / "out").iterdir()] == [f"dt={day(1)}"]


def test_on_a_state_units_that_need_spark_run_one_after_the_other_and_a_note_says_so(log: Path) -> None:
    ran = run(log, 4, "--state", "st", "--spark-conf", "spark.ui.enabled=false")
    assert ran.notes[0].startswith("units run one after the other: they need Spark")
    labels = [note.partition(":")[0] for note in ran.notes if " rows in" in note]
    assert labels == [day(n) for n in range(1, DAYS + 1)]


def test_a_plan_says_which_units_may_run_at_the_same_time(log: Path) -> None:
    def plan(*more: str) -> str:
        told = wincli_here("plan", *JOB, *span(1, DAYS), *more, "--rows", "0", "log", "out", cwd=log).out
        return " ".join(told.split())  # lines are wrapped to the terminal

    assert "no unit needs another: --jobs N runs up to N at the same time" in plan()
    assert "no unit needs another: up to 4 run at the same time" in plan("--jobs", "4")
    assert "units may be computed beforehand: --jobs N runs up to N" in plan("--state", "st")
    told = json.loads(plan("--jobs", "4", "--state", "st", "--having", "window > 2", "--json"))
    assert (told["jobs"], told["why_one_by_one"][:38]) == (1, "the job asks for the numbers of window")
    told = json.loads(plan("--jobs", "4", "--json"))
    assert (told["jobs"], told["why_one_by_one"]) == (4, None)


# The parts by themselves


def units(count: int) -> list[Unit]:
    return [unit_at(ordinal, "day") for ordinal in range(20_000, 20_000 + count)]


@given(st.integers(1, 4), st.integers(0, 9))
@settings(max_examples=15, deadline=None)
def test_as_many_as_asked_run_at_the_same_time_and_never_more(jobs: int, count: int) -> None:
    lock, full = threading.Lock(), threading.Event()
    now, most, ran = 0, 0, []

    def call(step: UnitStep) -> Any:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
            ran.append(step.unit.ordinal)
            if now == min(jobs, count):
                full.set()
        assert full.wait(30)  # the first wait until as many run as may, and then for one too many
        time.sleep(0.02 if len(ran) <= jobs else 0)
        with lock:
            now -= 1

    with UnitRunner(call, jobs) as runner:
        for unit in units(count):
            assert runner.run(UnitStep(unit, "run")) is None
    assert most == min(jobs, count)
    assert sorted(ran) == [unit.ordinal for unit in units(count)]


@given(st.integers(1, 4), st.sets(st.integers(0, 7), min_size=1))
@settings(max_examples=15, deadline=None)
def test_the_oldest_error_is_raised_and_no_unit_begins_after_one_has_failed(jobs: int, failing: set[int]) -> None:
    began: list[int] = []

    def call(step: UnitStep) -> Any:
        at = step.unit.ordinal - 20_000
        began.append(at)
        if at in failing:
            raise DataError(step.label, "")

    def run_all() -> None:
        with UnitRunner(call, jobs) as runner:
            for unit in units(8):
                runner.run(UnitStep(unit, "run"))

    with pytest.raises(DataError) as raised:
        run_all()
    failed = sorted(failing & set(began))
    assert raised.value.what == units(8)[failed[0]].label
    assert failed[0] == min(failing)
    assert max(began) < min(failing) + jobs


def test_a_signal_ends_the_units_that_run_and_waits_for_them() -> None:
    stopped, ended = threading.Event(), []

    def call(step: UnitStep) -> Any:
        assert stopped.wait(30)
        ended.append(step.unit)

    def until_a_signal() -> None:
        with UnitRunner(call, 2, shared=SharedBoot(Mock(close=stopped.set))) as runner:
            runner.run(UnitStep(units(1)[0], "run"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        until_a_signal()
    assert ended == units(1)


def test_spark_ends_for_a_unit_that_failed_when_the_others_have_ended_or_a_signal_has_come() -> None:
    for has_signal in (False, True):
        spark, step = Mock(), UnitStep(units(1)[0], "run")
        boot = SharedBoot(spark)
        for _ in range(3):
            boot.begin(step)
        first, second = Background(boot.close), Background(boot.close)
        assert not first.finished(0.05)
        assert (boot.is_failing(), spark.close.call_count) == (True, 0)
        boot.stop() if has_signal else boot.end(step)
        assert first.finished(30)
        assert second.finished(30)
        assert spark.close.call_count == 1


def test_progress_of_several_units_is_shown_as_one() -> None:
    seen: list[Progress] = []
    show = SharedProgress(seen.append)
    show(Progress("2026-11-02: scan", 1, 4, 1, 1, 100))
    show(Progress("2026-11-01: exchange and scan", 2, 8, 2, 2, 50))
    show(Progress("2026-11-03: scan", 0, 1, 1, 1, 7))
    show.end(unit_at(20_758, "day").label)
    assert unit_at(20_758, "day").label == "2026-11-01"
    show(Progress("2026-11-03: scan", 1, 1, 1, 1, 7))
    assert seen == [
        Progress("2026-11-02: scan", 1, 4, 1, 1, 100),
        Progress("2026-11-01, 2026-11-02: exchange and scan", 3, 12, 2, 2, 150),
        Progress("2026-11-01 and 2 more units: exchange and scan", 3, 13, 2, 2, 157),
        Progress("2026-11-02, 2026-11-03: scan", 2, 5, 1, 1, 107),
    ]


def test_units_at_the_same_time_in_an_object_store(log: Path, s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3.env.items():
        monkeypatch.setenv(name, value)
    assert run(log, 1, out="whole", days=2).code == 0
    ran = run(log, 2, "--lineage", "l.jsonl", out=f"{s3.uri}/some/{{date}}", days=2)
    assert ran.code == 0, ran.err
    for n in range(1, 3):
        found = [name for name in s3.names(f"some/{day(n)}/part-") if name.endswith(".parquet")]
        there = [s3.client.get_object(Bucket=s3.name, Key=name)["Body"].read() for name in found]
        assert there == [path.read_bytes() for path in sorted((log / "whole" / f"dt={day(n)}").glob("part-*"))]
    told = json.loads((log / "l.jsonl").read_text().splitlines()[-2])
    assert [(each["namespace"], each["name"]) for each in told["outputs"]] == [(s3.uri, "some")]
    assert run(log, 2, out=f"{s3.uri}/some/{{date}}", days=2).err.endswith(f"nothing to do -> {s3.uri}/some/{{date}}\n")


def test_units_at_the_same_time_are_partitions_of_one_delta_table(log: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    for jobs, out in ((1, "whole"), (3, "beside")):
        ran = run(log, jobs, "--output-format", "delta", out=f"{out}/day={{date}}", days=5)
        assert ran.code == 0, ran.err
    tables = [deltalake.DeltaTable(str(log / out)) for out in ("whole", "beside")]
    assert [table.version() for table in tables] == [4, 4]
    found = [
        pa.table(table.to_pyarrow_dataset().to_table()).sort_by(
            [("day", "ascending"), ("user", "ascending"), ("window", "ascending")]
        )
        for table in tables
    ]
    assert found[0].num_rows > 100
    assert found[0].equals(found[1])
