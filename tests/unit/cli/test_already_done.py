"""What was done before: same inputs, same job, whole results; and what a range tells at its end."""

from __future__ import annotations

import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from support.fake_records import FakeRecord, FakeStage
from wincli.cli.console.messages import Messages
from wincli.cli.run.backfills import is_done, may_replace, read_result, result_record
from wincli.cli.run.fingerprint import already_done, same_inputs, same_job
from wincli.cli.run.range_run import BackfillOutcome, report_backfill
from wincli.conf.ranges import Unit, unit_at
from wincli.windowing.errors import ConfigError
from wincli.windowing.ports import InputFile

A, B, C = (InputFile(f"in/{name}.csv", 4, "2026-11-01T00:00:00+00:00") for name in "abc")
STAGE = {"name": "window", "window": "count(2)", "key": ["user"], "output": None}
JOB: dict[str, Any] = {
    "input": ["in"], "output": "out", "stages": [STAGE], "input_format": "auto", "schema": None, "multiline": False,
    "delimiter": ",", "file_order": "name", "state": None, "late": "reject", "master": "local[2]", "redo": False,
}  # fmt: skip


def record(label: str, ordinal: int, *files: InputFile) -> FakeRecord:
    return FakeRecord(label, ordinal, files, None, "", "", "")


# Same


def test_inputs_are_the_same_in_any_order_and_from_any_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert same_inputs([A, B], [B, A])
    assert same_inputs([A], [InputFile("/in/a.csv", A.size, A.mtime)])
    assert same_inputs([InputFile("s3://b/a", 1, None)], [InputFile("s3://b/a", 1, None)])
    others = [InputFile("in/x.csv", A.size, A.mtime), InputFile(A.path, 5, A.mtime), InputFile(A.path, A.size, None)]
    assert [same_inputs([A], [other]) for other in others] == [False] * 3
    assert not same_inputs([A, B], [A])
    assert not same_inputs([A], [A, B])


def test_paths_and_settings_of_speed_do_not_change_the_identity_of_a_job() -> None:
    written = {**STAGE, "output": "sites"}
    assert same_job(JOB, {**JOB, "input": ["im"], "output": "o", "master": "yarn", "redo": True, "new": 1})
    assert same_job(JOB, {**JOB, "stages": [written]})
    assert same_job(JOB, {**JOB, "late": "redo"})
    assert same_job({**JOB, "stages": [STAGE]}, {**JOB, "stages": [{**STAGE, "marks": "auto", "group_by": []}]})
    for changed in (
        {"stages": [{**STAGE, "window": "count(3)"}]}, {"stages": [STAGE, STAGE]}, {"schema": "ts:int"},
        {"delimiter": ";"}, {"file_order": "mtime"}, {"multiline": True}, {"input_format": "csv"},
        {"state": "st"},
    ):  # fmt: skip
        assert not same_job(JOB, {**JOB, **changed}), changed


# Plain runs onto a state


def test_a_plain_run_that_repeats_the_newest_has_nothing_to_do() -> None:
    records = [record("run-000001", 0, A), record("run-000002", 1, B)]
    assert already_done(records, [B], lambda _: True) is records[1]
    assert already_done(records, [C], lambda _: True) is None
    assert already_done([], [A], lambda _: True) is None


@pytest.mark.parametrize(
    ("files", "is_same", "message"),
    [
        ((C, A), True, "in/a.csv was read by run-000001 of this state already"),
        ((A,), True, "in/a.csv was read by run-000001 of this state already"),
        ((B, C), True, "in/b.csv was read by run-000002 of this state already"),
        ((B,), False, "in/b.csv was read by run-000002 of this state already"),
    ],
)
def test_no_file_is_read_twice(files: tuple[InputFile, ...], is_same: bool, message: str) -> None:
    records = [record("run-000001", 0, A), record("run-000002", 1, B)]
    with pytest.raises(ConfigError) as caught:
        already_done(records, files, lambda _: is_same)
    assert str(caught.value) == f"{message}; name only new files, or use {{date}} with --start and --end"


def test_a_file_that_was_written_anew_is_another() -> None:
    assert already_done([record("run-000001", 0, A)], [InputFile(A.path, 9, "later")], lambda _: True) is None


# Results


def write_result(out: Path, *inputs: InputFile, **job: Any) -> str:
    (out / "_wincli").mkdir(parents=True)
    (out / "_SUCCESS").touch()
    (out / "part-00000.csv").write_text("a\n1\n")
    manifest = {
        "job": {**JOB, **job},
        "inputs": [asdict(file) for file in inputs],
        "stages": [],
        "counts": {"rows_in": 7, "rejected": {"late": 1}},
        "rows_out": 1,
        "parts": [{"name": "part-00000.csv", "rows": 1, "bytes": 4}],
        "rejects": [],
    }
    (out / "_wincli/manifest.json").write_text(json.dumps(manifest))
    return str(out)


def test_results_of_this_job_over_these_files_are_done(tmp_path: Path) -> None:
    out, mid = write_result(tmp_path / "out", A, B), write_result(tmp_path / "mid", A, B)
    assert is_done([mid, out], {**JOB, "output": out}, [B, A])
    assert not is_done([out], JOB, [A])
    assert not is_done([out], {**JOB, "stages": []}, [A, B])
    assert not is_done([str(tmp_path / "none"), out], JOB, [A, B])


def test_the_record_of_a_unit_is_its_result(tmp_path: Path) -> None:
    out = write_result(tmp_path / "out", A)
    (unit,) = days(3)
    record = result_record(unit, [out], JOB)
    assert record is not None
    assert (record.label, record.ordinal, record.inputs) == ("1970-01-04", 3, (A,))
    assert (record.rows_in, record.out, record.rejected) == (7, 1, {"late": 1})
    assert [stage.name for stage in record.stages] == ["window"]
    assert result_record(unit, [str(tmp_path / "none"), out], JOB) is None
    assert result_record(unit, [out], {**JOB, "delimiter": ";"}) is None


def test_rejects_named_as_earlier_versions_did_are_part_of_a_result(tmp_path: Path) -> None:
    out = Path(write_result(tmp_path / "out", A))
    told = json.loads((out / "_wincli/manifest.json").read_text())
    told["rejects"] = [{"name": "_rejected/part-00000.parquet", "rows": 1, "bytes": 3}]
    (out / "_wincli/manifest.json").write_text(json.dumps(told))
    assert not is_done([str(out)], JOB, [A])
    (out / "_rejected").mkdir()
    (out / "_rejected/part-00000.parquet").write_text("PAR")
    assert is_done([str(out)], JOB, [A])


def test_only_results_of_this_job_may_be_replaced(tmp_path: Path) -> None:
    ours, other = write_result(tmp_path / "ours", A), write_result(tmp_path / "other", A, delimiter=";")
    none = str(tmp_path / "none")
    found = [may_replace(outputs, JOB) for outputs in ([ours], [none, ours], [other, ours], [other], [none])]
    assert found == [True, True, False, False, False]
    (tmp_path / "ours/part-00000.csv").unlink()
    assert may_replace([ours], JOB)


@pytest.mark.parametrize("harm", ["_SUCCESS", "part-00000.csv", "_wincli/manifest.json", "torn"])
def test_a_result_that_is_not_whole_is_not_done(tmp_path: Path, harm: str) -> None:
    out = tmp_path / "out"
    write_result(out, A)
    if harm == "torn":
        (out / "part-00000.csv").write_text("a")
    else:
        (out / harm).unlink()
    assert read_result(str(out)) is None
    assert not is_done([str(out)], JOB, [A])
    assert result_record(days(0)[0], [str(out)], JOB) is None


# The end of a range


def days(*ordinals: int) -> tuple[Unit, ...]:
    return tuple(unit_at(ordinal, "day") for ordinal in ordinals)


def ran(ordinal: int, rows: int, rejected: dict[str, int], windows: int) -> FakeRecord:
    first = FakeStage("sensors", {"rows_in": rows, "rejected": rejected}, 99)
    last = FakeStage("sites", {"rows_in": 99, "rejected": {"late": 1}}, windows)
    return FakeRecord(unit_at(ordinal, "day").label, ordinal, (), None, "", "", "", (first, last))


def told(outcome: BackfillOutcome, **more: Any) -> list[str]:
    stream = io.StringIO()
    report_backfill(outcome, "out", True, 2.0, Messages(stream=stream, **more))
    return stream.getvalue().splitlines()


def test_backfill_ends_with_a_summary() -> None:
    done = (ran(1, 1000, {"null_key": 2}, 30), ran(2, 500, {}, 1))
    outcome = BackfillOutcome(done, days(1), days(0, 3), days(4, 5, 7), unit_at(2, "day"), days(3, 8, 9))
    assert told(outcome) == [
        "wincli: note: already done with the same input: 1970-01-01, 1970-01-04",
        "wincli: note: no input, passed over: 1970-01-05..1970-01-06, 1970-01-08",
        "wincli: note: the correction reached 1970-01-03; 1970-01-04, 1970-01-09..1970-01-10 stay as they were",
        "wincli: 2 units done (1 again), 2 skipped, 3 gaps, 1,500 rows in, 31 windows out, "
        "4 rejected (late 2, null_key 2), 2.0 s, 750 rows/s -> out",
    ]


def test_backfill_logs_its_summary_as_json() -> None:
    outcome = BackfillOutcome((ran(1, 10, {}, 3),), (), days(0), days(2), None, ())
    assert json.loads(told(outcome, as_json=True)[-1]) == {
        "level": "summary",
        "message": "1 unit done, 1 skipped, 1 gap, 10 rows in, 3 windows out, 1 rejected (late 1), 2.0 s, 5 rows/s "
        "-> out",
        "units": ["1970-01-02"],
        "again": [],
        "skipped": ["1970-01-01"],
        "gaps": ["1970-01-03"],
        "reached": None,
        "rows_in": 10,
        "windows_out": 3,
        "rejected": {"late": 1},
        "seconds": 2.0,
        "output": "out",
    }
