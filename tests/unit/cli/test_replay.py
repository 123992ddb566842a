"""``wincli verify --replay``: units run again from the state before them leave what was recorded, or are named."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.day_results import day, records, span
from support.in_process import done
from support.month_log import Log, added
from support.processes import manifest, tree, write
from support.strategies import examples
from wincli.windowing.columns.row_digest import digest_of_all
from wincli.windowing.support.checksum import seal


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Four days on a state."""
    log = Log(tmp_path)
    for n in range(1, 5):
        log.write(n)
    log.run(*span(1, 4))
    return log


def replayed(folder: Path, which: str, code: int = 0, state: str = "st") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done(folder, "verify", state, "--replay", which, "--json", code=code).out)
    assert found["as_recorded"] == (code == 0)
    return found


def told(found: dict[str, Any]) -> list[str]:
    return [f"{unit['unit']}: {line}" for unit in found["units"] for line in (*unit["differences"], *unit["notes"])]


def test_units_that_are_as_they_were_recorded_give_one_line_and_nothing_is_changed(log: Log) -> None:
    before = tree(log.folder)
    found = replayed(log.folder, f"{day(2)}..{day(4)}")
    assert tree(log.folder) == before
    assert told(found) == []
    of_days = [records(log.state)[day(n)] for n in (2, 3, 4)]
    digests = [digest for record in of_days for digest in record["digests"]]
    assert digests == [manifest(log.folder / f"out/dt={day(n)}")["digest"] for n in (2, 3, 4)]
    (stage,) = of_days[-1]["stages"]
    assert found["results"] == digest_of_all(digests)
    assert found["state"] == stage["digest"] == digest_of_all(part["digest"] for part in stage["parts"])
    rows_in = sum(record["stages"][0]["counts"]["rows_in"] for record in of_days)
    line = (
        f"replayed {day(2)}..{day(4)}: 3 units, {rows_in} rows in, results {found['results']}, state {found['state']}"
    )
    assert done(log.folder, "verify", "st", "--replay", f"{day(2)}..{day(4)}").out == (
        f"{line}: as recorded (job {found['jobs'][0]}, wincli {found['wincli']})\n"
    )
    shutil.rmtree(log.folder / f"out/dt={day(1)}")  # a digest needs no result
    assert replayed(log.folder, day(1))["results"] == records(log.state)[day(1)]["digests"][0]


def reseal(path: Path, change: Any) -> None:
    """Change a record or a manifest as nothing but a mistake of a run could: its checksum is right."""
    content = {name: value for name, value in json.loads(path.read_text()).items() if name != "checksum"}
    change(content)
    path.write_text(json.dumps(seal(content)))


def test_a_unit_that_does_not_leave_what_is_recorded_is_named_with_what_differs(log: Log) -> None:
    def lie(content: dict[str, Any]) -> None:
        (stage,) = content["stages"]
        stage["counts"]["windowed"] += 1
        stage["registers"]["clock"] = 5
        part = next(part for part in stage["parts"] if part["name"].startswith("rows-"))
        part["digest"] = f"rows1:{1:032x}"
        content["digests"] = [f"rows1:{2:032x}"]

    reseal(log.state / day(2) / "unit.json", lie)
    shutil.rmtree(log.folder / f"out/dt={day(2)}")
    found = replayed(log.folder, f"{day(1)}..{day(3)}", code=1)
    lines = told(found)
    assert all(line.startswith(f"{day(2)}: ") for line in lines)
    for part in ("row account: windowed is", "clock and watermark are", "state, table rows: ", "recorded rows1:000"):
        assert any(part in line for line in lines), part
    assert f"recorded rows1:{2:032x}; that result is no longer there" in lines[-1]
    assert ": 1 not as recorded (job " in found["line"]


def test_rows_of_a_result_that_was_changed_are_counted(log: Log) -> None:
    one, other = (log.folder / f"out/dt={day(n)}" for n in (2, 3))
    run = manifest(one)["run"]
    shutil.rmtree(one)
    shutil.copytree(other, one)
    reseal(one / "_wincli/manifest.json", lambda content: content.update(run=run, place=content["place"]))
    reseal(log.state / day(2) / "unit.json", lambda content: content.update(digests=manifest(one)["digest"] and [None]))
    (line,) = told(replayed(log.folder, day(2), code=1))
    assert "windows would differ: " in line


def test_what_cannot_be_replayed_is_named_with_the_reason(log: Log) -> None:
    def fails(which: str, says: str, code: int) -> None:
        assert says in done(log.folder, "verify", "st", "--replay", which, code=code).err

    file = log.folder / f"log/dt={day(3)}/a.csv"
    content = file.read_bytes()
    for n in (2, 3):
        log.write(n, added(("13:00", "c", 1)))
    fails(f"{day(1)}..{day(3)}", f"{day(2)} cannot be replayed: {log.folder}/log/dt={day(2)}/a.csv has changed", 3)
    file.unlink()
    fails(day(3), f"{day(3)} cannot be replayed: its input is gone", 3)
    (log.folder / f"log/dt={day(4)}/more.csv").write_bytes(content)
    fails(day(4), f"{day(4)} cannot be replayed: {log.folder}/log/dt={day(4)}/more.csv was not there when it ran", 3)
    fails("2026-12-01", f"the state st has no unit '2026-12-01'; it has {day(1)}..{day(4)}", 2)
    fails(f"{day(3)}..{day(2)}", "is no span of units", 2)
    assert "is no state" in done(log.folder, "verify", "out", "--replay", day(1), code=2).err
    done(log.folder, "state", "gc", "st", "--keep", "1", "--yes")
    fails(day(3), f"{day(3)} cannot be replayed: the state of {day(2)}, from which it began, is no longer kept", 3)


def test_a_state_that_is_damaged_is_named_and_not_its_copy(log: Log) -> None:
    file = log.state / day(2) / "window/keys-00000.parquet"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 4
    file.write_bytes(content)
    found = done(log.folder, "verify", "st", "--replay", day(3), code=3).err
    assert f"{day(3)}: st/{day(2)}/window/keys-00000.parquet is damaged: its checksum is " in found


def test_the_types_of_releases_without_digests_are_compared_by_rows(log: Log) -> None:
    def as_of_0_21(content: dict[str, Any]) -> None:
        content["format"] = 2
        del content["digests"], content["bases"], content["stages"][0]["digest"]
        for part in content["stages"][0]["parts"]:
            del part["digest"]

    for n in (2, 3):
        reseal(log.state / day(n) / "unit.json", as_of_0_21)
    assert told(replayed(log.folder, f"{day(2)}..{day(4)}")) == [
        f"{day(n)}: state: its record has no digest: its rows were compared" for n in (2, 3)
    ]
    other = log.state / day(3) / "window/position.parquet"
    shutil.copy(log.state / day(2) / "window/position.parquet", other)
    content = other.read_bytes()

    def with_other(content_of: dict[str, Any]) -> None:
        part = next(part for part in content_of["stages"][0]["parts"] if part["name"] == "position.parquet")
        part.update(nbytes=len(content))
        part.pop("checksum")

    reseal(log.state / day(3) / "unit.json", with_other)
    assert told(replayed(log.folder, day(3), code=1)) == [f"{day(3)}: state: its rows are not those that were recorded"]


@pytest.mark.parametrize("template", ["{date}", "dt={date}"])
def test_units_of_releases_that_recorded_no_folders_of_columns_have_those_columns(
    tmp_path: Path, template: str
) -> None:
    for n in (1, 2):
        write(tmp_path / "days" / template.format(date=day(n)) / f"k={n}", a__csv=f"ts,x\n{n},1\n")
    job = ("-w", "count(2)", "-k", "k", "--order-by", "ts", "--emit", "rows", "--state", "st", *span(1, 2))
    done(tmp_path, "run", *job, f"{tmp_path}/days/{template}", "out")
    for n in (1, 2):
        reseal(tmp_path / "st" / day(n) / "unit.json", lambda content: content.pop("bases"))
    assert told(replayed(tmp_path, f"{day(1)}..{day(2)}")) == []


def test_late_rows_that_moved_between_units_are_replayed_where_they_went(log: Log) -> None:
    late = log.folder / "log" / f"dt={day(4)}" / "late.csv"
    late.write_text(f"ts,user,x\n{day(2)}T10:00:00,a,5\n")
    log.run(*span(1, 4), "--late", "redo")
    assert records(log.state)[day(2)]["borrowed"]
    assert told(replayed(log.folder, f"{day(1)}..{day(4)}")) == []
    assert told(replayed(log.folder, day(4))) == []


def test_units_after_a_correction_that_keep_their_numbers_are_as_recorded(log: Log) -> None:
    log.write(1, added(("04:00", "a", 1)))
    log.run(*span(1, 1))
    found = replayed(log.folder, f"{day(1)}..{day(4)}")
    assert any("its window numbers go on from those that" in line for line in told(found))


def test_plain_runs_are_replayed_by_the_files_that_they_read(tmp_path: Path) -> None:
    job = ("run", "-q", "-w", "gap(ts, 5)", "-k", "user", "--order-by", "ts", "--state", "st", "--keep", "9")
    write(tmp_path / "in", a__csv="ts,user\n1,a\n4,a\n")
    done(tmp_path, *job, "in/*.csv", "out/1")
    write(tmp_path / "in", b__csv="ts,user\n9,a\n20,b\n")
    done(tmp_path, *job, "in/b.csv", "out/2")
    assert told(replayed(tmp_path, "run-000001..run-000002")) == []
    assert told(replayed(tmp_path, "run-000002")) == []


@pytest.mark.parametrize("form", ["csv", "jsonl", "delta", "folders"])
def test_results_in_any_form_are_replayed(tmp_path: Path, form: str) -> None:
    log = Log(tmp_path)
    for n in (1, 2):
        log.write(n)
    more = ("--partition-by", "user") if form == "folders" else ("--output-format", form)
    log.run(*span(1, 2), *more)
    assert told(replayed(tmp_path, f"{day(1)}..{day(2)}")) == []


DAYS = 4
_ROWS = st.lists(st.tuples(st.integers(0, 23), st.sampled_from("ab"), st.integers(0, 9)), min_size=1, max_size=6)
_WINDOWS = st.sampled_from(
    [("gap(ts, 2h)",), ("count(2)",), ("sliding, time(4h), count(1)",), ("delta(x, 3)", "--late", "redo")]
)


@examples(20)
@given(days=st.lists(_ROWS, min_size=DAYS, max_size=DAYS), job=_WINDOWS, first=st.integers(1, DAYS), data=st.data())
def test_every_span_of_any_log_is_as_it_was_recorded_however_it_is_cut(
    days: list[Any], job: tuple[str, ...], first: int, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for n, rows in enumerate(days, 1):
            lines = [f"{day(n)}T{hour:02}:00:00,{user},{x}" for hour, user, x in rows]
            write(folder / "log" / f"dt={day(n)}", a__csv="\n".join(["ts,user,x", *lines, ""]))
        run = (
            "run",
            "-q",
            "-w",
            *job,
            "-k",
            "user",
            "--order-by",
            "ts",
            "-a",
            "s=sum(x)",
            "log",
            "out",
            "--state",
            "st",
        )
        done(folder, *run, "--keep", "9", *span(1, DAYS))
        last = data.draw(st.integers(first, DAYS))
        assert told(replayed(folder, f"{day(first)}..{day(last)}")) == []
        done(folder, *run[:-1], "again", "--keep", "9", *span(1, DAYS), "--mode", "overwrite", "--split-size", "1 KiB")
        one, other = (records(folder / state) for state in ("st", "again"))
        for label, record in one.items():
            assert record["digests"] == other[label]["digests"]
            assert record["stages"][0]["digest"] == other[label]["stages"][0]["digest"]
