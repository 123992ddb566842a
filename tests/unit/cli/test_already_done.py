"""What was done before: the same inputs and the same job; and what a range tells at its end."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from support.fake_records import FakeRecord, FakeStage
from wincli.cli.console.messages import Messages
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


def days(*ordinals: int) -> tuple[Unit, ...]:
    return tuple(unit_at(ordinal, "day") for ordinal in ordinals)


def test_inputs_are_the_same_in_any_order_and_from_any_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert same_inputs([A, B], [B, A])
    assert same_inputs([A], [InputFile("/in/a.csv", A.size, A.mtime)])
    assert same_inputs([InputFile("s3://b/a", 1, None)], [InputFile("s3://b/a", 1, None)])
    others = [InputFile("in/x.csv", A.size, A.mtime), InputFile(A.path, 5, A.mtime), InputFile(A.path, A.size, None)]
    assert not any(same_inputs([A], [other]) for other in others)
    assert not same_inputs([A, B], [A])
    assert not same_inputs([A], [A, B])


def test_outputs_of_stages_and_keys_that_are_left_out_do_not_change_the_identity_of_a_job() -> None:
    assert same_job(JOB, {**JOB, "input": ["im"], "output": "o", "new": 1})
    assert same_job(JOB, {**JOB, "stages": [{**STAGE, "output": "sites"}]})
    assert same_job(JOB, {**JOB, "stages": [{**STAGE, "marks": "auto", "group_by": []}]})
    assert not same_job(JOB, {**JOB, "stages": [{**STAGE, "window": "count(3)"}]})
    assert not same_job(JOB, {**JOB, "stages": [STAGE, STAGE]})


@pytest.mark.parametrize(
    ("files", "is_same", "done", "read_by"),
    [
        ([B], True, 1, None),
        ([C], True, None, None),
        ([InputFile(A.path, 9, "written anew")], True, None, None),
        ([C, A], True, None, "in/a.csv was read by run-000001"),
        ([A], True, None, "in/a.csv was read by run-000001"),
        ([B, C], True, None, "in/b.csv was read by run-000002"),
        ([B], False, None, "in/b.csv was read by run-000002"),
    ],
)
def test_a_plain_run_that_repeats_the_newest_has_nothing_to_do_and_no_file_is_read_twice(
    files: list[InputFile], is_same: bool, done: int | None, read_by: str | None
) -> None:
    records = [FakeRecord(f"run-00000{n + 1}", n, (file,), None, "", "", "") for n, file in enumerate((A, B))]
    if read_by is None:
        assert already_done(records, files, lambda _: is_same) is (None if done is None else records[done])
        return
    with pytest.raises(ConfigError) as caught:
        already_done(records, files, lambda _: is_same)
    do = "name only new files, or use {date} with --start and --end"
    assert str(caught.value) == f"{read_by} of this state already; {do}"


# The end of a range


def ran(ordinal: int, rows: int, rejected: dict[str, int], windows: int) -> FakeRecord:
    first = FakeStage("sensors", {"rows_in": rows, "rejected": rejected}, 99)
    last = FakeStage("sites", {"rows_in": 99, "rejected": {"late": 1}}, windows)
    return FakeRecord(unit_at(ordinal, "day").label, ordinal, (), None, "", "", "", (first, last))


def told(outcome: BackfillOutcome, as_json: bool = False) -> list[str]:
    stream = io.StringIO()
    report_backfill(outcome, "out", True, 2.0, Messages(stream=stream, as_json=as_json))
    return stream.getvalue().splitlines()


def test_a_range_ends_with_notes_on_its_units_and_a_summary() -> None:
    done = (ran(1, 1000, {"null_key": 2}, 30), ran(2, 500, {}, 1))
    outcome = BackfillOutcome(done, days(1), days(0, 3), days(4, 5, 7), unit_at(2, "day"), days(3, 8, 9))
    summary = "2 units done (1 again), 2 skipped, 3 gaps, 1,500 rows in, 31 windows out, "
    summary += "4 rejected (late 2, null_key 2), 2.0 s, 750 rows/s -> out"
    assert told(outcome) == [
        "wincli: note: already done with the same input: 1970-01-01, 1970-01-04",
        "wincli: note: no input, passed over: 1970-01-05..1970-01-06, 1970-01-08",
        "wincli: note: the correction reached 1970-01-03; 1970-01-04, 1970-01-09..1970-01-10 stay as they were",
        f"wincli: {summary}",
    ]
    assert json.loads(told(outcome, as_json=True)[-1]) == {
        **{"level": "summary", "message": summary, "units": ["1970-01-02", "1970-01-03"], "again": ["1970-01-02"]},
        **{"skipped": ["1970-01-01", "1970-01-04"], "gaps": ["1970-01-05", "1970-01-06", "1970-01-08"]},
        **{"reached": "1970-01-03", "rows_in": 1500, "windows_out": 31, "rejected": {"late": 2, "null_key": 2}},
        **{"seconds": 2.0, "output": "out"},
    }
    once = BackfillOutcome((ran(1, 10, {}, 3),), (), days(0), days(2), None, ())
    summary = "1 unit done, 1 skipped, 1 gap, 10 rows in, 3 windows out, 1 rejected (late 1), 2.0 s, 5 rows/s -> out"
    assert told(once)[-1] == f"wincli: {summary}"
