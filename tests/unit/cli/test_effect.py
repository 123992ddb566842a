"""The effect of a range before it is published: it changes nothing, and equals what the redo then does."""

from __future__ import annotations

import datetime as dt
import errno
import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.day_results import day, records, span
from support.in_process import done, wincli_here
from support.strategies import examples
from wincli.cli.console.messages import Messages
from wincli.cli.inspection import effect as effect_module
from wincli.cli.inspection.comparison.changes import Difference
from wincli.cli.inspection.comparison.compare import Diff, DiffRequest, compare
from wincli.cli.inspection.effect import Effect, effect_json, effect_of, effect_text
from wincli.cli.run.context import local_context
from wincli.cli.run.request import parse_job
from wincli.cli.run.run_modes import run_request
from wincli.conf.job import Job
from wincli.windowing.errors import ConfigError, InputError
from wincli.writers.state.layout import JOURNAL, put_json
from wincli.writers.state.local_storage import LocalFolder

DAYS = 4
Rows = list[tuple[int, str, int]]
_JOB = """
input: {folder}/log/{{date}}.csv
output: {folder}/lots
schema: "ts:timestamp, user:string, n:int64"
{state}
stages:
  - {{name: one, window: "gap(ts, 6h)", key: user, agg: [n=count(), spent=sum(n)], output: "{folder}/sessions"}}
  - {{name: two, window: count(2), key: user, agg: [spent=sum(spent)]}}
"""
_ROWS = st.lists(st.tuples(st.integers(0, 1439), st.sampled_from("ab"), st.integers(0, 9)), min_size=1, max_size=5)


def _write(folder: Path, at: int, rows: Rows) -> None:
    begin = dt.datetime(2026, 11, at)
    lines = [f"{begin + dt.timedelta(minutes=minute)},{user},{n}\n" for minute, user, n in sorted(rows)]
    (folder / "log").mkdir(exist_ok=True)
    (folder / "log" / f"{day(at)}.csv").write_text("ts,user,n\n" + "".join(lines))


def _request(folder: Path, with_state: bool, first: int, last: int, redo: bool, late: str = "reject") -> Job:
    state = f"state: {folder}/state\nkeep: 9\nlate: {late}" if with_state else ""
    (folder / "job.yaml").write_text(_JOB.format(folder=folder, state=state))
    start, end = span(first, last)[1::2]
    return parse_job({"paths": [str(folder / "job.yaml")], "start": start, "end": end, "redo": redo})


def _content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and "lock" not in path.name}


def _listed(diff: Diff) -> set[Any]:
    def key(each: Difference) -> Any:
        values = tuple((name, str(a), str(b)) for name, (a, b) in each.values.items())
        return each.unit, each.kind, tuple(map(str, each.identity.values())), values

    return {key(each) for each in diff.listed}


def _sums(change: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in change.items() if value}


def _ran(folder: Path, with_state: bool, outputs: Path) -> dict[str, str]:
    """The id of each unit's run; without a state the time of its result."""
    if with_state:
        return {label: record["run"] for label, record in records(folder / "state").items()}
    return {path.parent.parent.name: str(path.stat().st_mtime_ns) for path in outputs.glob("*/_wincli/manifest.json")}


@examples(40)
@given(
    days=st.lists(_ROWS, min_size=DAYS, max_size=DAYS),
    corrections=st.dictionaries(st.integers(1, DAYS), _ROWS, min_size=1, max_size=2),
    with_state=st.booleans(),
    redo=st.booleans(),
    late=st.sampled_from(["reject", "redo"]),
)
def test_the_effect_equals_what_the_redo_does(
    days: list[Rows], corrections: dict[int, Rows], with_state: bool, redo: bool, late: str
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for at, rows in enumerate(days, 1):
            _write(folder, at, rows)
        run_request(_request(folder, with_state, 1, DAYS, False, late), local_context(Messages(-1)))
        for at, rows in corrections.items():
            _write(folder, at, rows)
        job = _request(folder, with_state, min(corrections), max(corrections), redo, late)
        before, ran_before = _content(folder), _ran(folder, with_state, folder / "lots")
        effect = effect_of(job, local_context(Messages(-1)), head=None)
        assert _content(folder) == before
        outputs = {"one": "sessions", "two": "lots"}
        for output in outputs.values():
            shutil.copytree(folder / output, folder / f"old-{output}")
        run_request(job, local_context(Messages(-1)))
        ran = _ran(folder, with_state, folder / "lots")
        labels = {label.removeprefix("dt=") for label in ran if ran[label] != ran_before.get(label)}
        assert set(effect.runs) == labels
        for stage in effect.stages:
            output = outputs[stage.stage]
            then = compare(DiffRequest(str(folder / f"old-{output}"), str(folder / output), head=None))
            assert _listed(stage.diff) == _listed(then)
            assert _sums(stage.diff.tally.change) == _sums(then.tally.change)
            assert (stage.diff.tally.total, stage.new) == (then.tally.total, ())
            assert {unit.unit for unit in stage.diff.units if unit.differs} == {
                unit.unit for unit in then.units if unit.differs
            }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three days on a state, of which the second was corrected since: one value of user a."""
    for at in (1, 2, 3):
        _write(tmp_path, at, [(60, "a", 1), (700, "b", 2), (1300, "a", 3)])
    run_request(_request(tmp_path, True, 1, 3, False), local_context(Messages(-1)))
    _write(tmp_path, 2, [(60, "a", 1), (700, "b", 2), (720, "a", 30)])
    return tmp_path


def _effect(folder: Path, first: int, last: int) -> Effect:
    return effect_of(_request(folder, True, first, last, True), local_context(Messages(-1)))


def test_an_effect_says_what_changes_where_and_how_far_it_reaches_and_a_plan_tells_it(folder: Path) -> None:
    effect = _effect(folder, 2, 2)
    found = effect_json(effect)
    assert (effect.runs, found["reached"], found["unaffected"]) == ([day(2), day(3)], day(3), [])
    text = effect_text(effect)
    assert text.startswith(f"2 units would run again: {day(2)}, {day(3)}\n")
    assert "stage one: " in text
    assert found["changed"] > 0
    assert found["changed"] == sum(
        stage["changed"] + stage["only_in_a"] + stage["only_in_b"] for stage in found["stages"]
    )
    before = _content(folder)
    plan = ("plan", "job.yaml", *span(2, 2), "--redo", "--effect", "--rows", "0")
    planned = done(folder, *plan)
    assert (planned.out.startswith(f"{text}\n\nrun  "), planned.err) == (True, "")
    assert json.loads(done(folder, *plan, "--json").out)["effect"] == found
    assert _content(folder) == before


def test_a_unit_that_is_not_done_is_new_and_one_of_the_same_input_is_no_change(folder: Path) -> None:
    _write(folder, 2, [(60, "a", 1), (700, "b", 2), (1300, "a", 3)])
    _write(folder, 4, [(60, "a", 1)])
    nothing = dict.fromkeys(("changed", "added", "removed", "units_changed"), 0)
    effect = _effect(folder, 4, 4)
    assert effect.numbers == {**nothing, "units_new": 1, "units_run": 1}
    assert f"{day(4)} has no result now" in effect_text(effect)
    effect = _effect(folder, 1, 1)
    assert (effect.runs, effect.numbers) == ([day(1)], {**nothing, "units_new": 0, "units_run": 1})
    assert "no window would differ" in effect_text(effect)


def test_a_result_that_cannot_be_read_is_an_error_and_no_unit_without_a_result(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreadable = mock.Mock(**{"manifest.side_effect": PermissionError(errno.EACCES, "Permission denied")})
    monkeypatch.setattr(effect_module, "table_of", lambda _: unreadable)
    with pytest.raises(InputError, match=r"cannot be read: .*ermission"):
        _effect(folder, 2, 2)


def _confirm(folder: Path, condition: str, *more: str) -> tuple[int, str]:
    _request(folder, True, 2, 2, True)
    ran = wincli_here("run", "job.yaml", *span(2, 2), "--redo", "--confirm-effect", condition, *more, cwd=folder)
    return ran.code, ran.err


def test_a_correction_is_published_only_if_its_effect_is_allowed(folder: Path) -> None:
    before = _content(folder)
    code, err = _confirm(folder, "changed <= 1 and units_run = 2")
    assert (code, _content(folder)) == (4, before)
    assert "nothing was published" in err
    code, err = _confirm(folder, "changed <= 100 and units_run = 2")
    assert code == 0
    assert "the effect is as allowed" in err
    assert _content(folder) != before


@pytest.mark.parametrize(
    ("condition", "says"),
    [("chnged <= 1", "did you mean 'changed'"), ("changed <=", "--confirm-effect"), ("'x'", "--confirm-effect")],
)
def test_a_mistake_in_the_condition_is_an_error_before_anything_is_computed(
    folder: Path, condition: str, says: str
) -> None:
    code, err = _confirm(folder, condition)
    assert code == 2
    assert says in err.replace("confirm_effect", "--confirm-effect")


def test_a_state_whose_commit_was_killed_is_left_as_it_is(folder: Path) -> None:
    journal = {"label": day(3), "run": "0" * 12, "keep": 9, "outputs": []}
    put_json(LocalFolder(folder / "state", "state"), JOURNAL, journal)
    with pytest.raises(ConfigError, match="was killed while it committed"):
        _effect(folder, 2, 2)
    assert (folder / "state" / JOURNAL).exists()
