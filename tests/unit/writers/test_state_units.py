"""Units onto a state: begun, committed, replaced, pruned. All hold one number in one stage, which their outputs say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.numbered_units import ME, names, put, record_of, result, run_unit, state_value, tree, value_of
from wincli.windowing.errors import ConfigError, InputError, OutputError
from wincli.windowing.support.checksum import seal
from wincli.writers.output.output import open_output
from wincli.writers.state.journal import commit_together
from wincli.writers.state.state import open_state
from wincli.writers.state.unit_record import OpenWindows, StageRecord, UnitRecord

# A unit from beginning to end


def test_a_unit_and_its_outputs_come_together(tmp_path: Path) -> None:
    root, outs = tmp_path / "state", [tmp_path / "a", tmp_path / "b"]
    record = put(root, 7, outs)
    assert [value_of(out) for out in outs] == [7, 7]
    assert {json.loads((out / "_wincli/manifest.json").read_text())["run"] for out in outs} == {record.run}
    assert sorted(tree(root)) == [".wincli-state", "u0/s/rows-00000.parquet", "u0/unit.json"]
    assert names(tmp_path) == ["a", "b", "state"]
    assert [(o.shown, o.path) for o in record.outputs] == [(str(out), str(out.resolve())) for out in outs]
    with open_state(str(root), ME) as state:
        assert state.records == (record,)
        assert state.record("u0") == record
        assert state.record("u1") is None
        assert state_value(state) == 7
        assert state.notes == ()


def test_records_are_sorted_by_ordinal(tmp_path: Path) -> None:
    with open_state(str(tmp_path / "st"), ME) as state:
        assert state.newest_before(5) is None
        for ordinal in (3, 10, 2):
            run_unit(state, ordinal, ordinal=ordinal)
        assert [record.label for record in state.records] == ["u2", "u3", "u10"]
        newest = [state.newest_before(ordinal) for ordinal in (2, 3, 10, 99)]
        assert [record and record.label for record in newest] == [None, "u2", "u3", "u10"]


def test_a_unit_is_replaced(tmp_path: Path) -> None:
    root, out = tmp_path / "state", tmp_path / "out"
    first, second = put(root, 1, [out]), put(root, 2, [out])
    assert first.run != second.run
    assert value_of(out) == 2
    with open_state(str(root), ME) as state:
        assert state.records == (second,)
        assert state_value(state) == 2
    assert names(root) == [".wincli-state", "u0"]


def test_old_data_of_a_unit_is_readable_until_it_is_replaced(tmp_path: Path) -> None:
    root = tmp_path / "state"
    put(root, 1)
    with open_state(str(root), ME) as state, state.begin("u0", 0, []) as staging:
        record = record_of(staging, 2)
        assert state_value(state) == 1
        commit_together(staging, record, [], 10)
        assert state_value(state) == 2


def test_stage_without_retained_rows_has_no_parts(tmp_path: Path) -> None:
    with open_state(str(tmp_path / "st"), ME) as state:
        with state.begin("u0", 0, []) as staging:
            stage = StageRecord("s", {}, {}, {}, 0, (), OpenWindows(0, 0, None))
            record = UnitRecord("u0", 0, None, None, None, (), (), (stage,), "", "", "", {}, {}, "", None, {})
            commit_together(staging, record, [], 10)
        assert state.has_data("u0")
        assert state.stage("u0", "s").parts("rows") == ()


@pytest.mark.parametrize("error", [KeyboardInterrupt, OutputError("x"), None])
def test_without_a_commit_no_trace_is_left(tmp_path: Path, error: Any) -> None:
    root, out = tmp_path / "state", tmp_path / "out"
    put(root, 1, [out])
    before = tree(tmp_path)
    for label, path in (("u0", out), ("u1", tmp_path / "new/out")):
        try:
            with (
                open_state(str(root), ME) as state,
                state.begin(label, 0, [str(path)]) as staging,
                open_output(str(path), "overwrite", [], ME) as output,
            ):
                result(output, 2)
                record_of(staging, 2)
                assert len(names(root)) == 5
                if error:
                    raise error
        except (KeyboardInterrupt, OutputError):
            assert error
    assert tree(tmp_path) == before
    assert names(tmp_path) == ["out", "state"]


def test_tasks_that_still_write_lose_their_folder(tmp_path: Path) -> None:
    with open_state(str(tmp_path / "st"), ME) as state:
        with state.begin("u0", 0, []) as staging:
            files = staging.stage("s")
        with pytest.raises(OutputError, match=r"cannot write .*/st/u0/s/rows-00000.parquet: the folder is not there"):
            files.write_rows(0, pa.table({"n": [1]}))


# What a commit checks


def test_a_part_that_is_not_there_stops_the_commit(tmp_path: Path) -> None:
    root, out = tmp_path / "state", tmp_path / "out"
    with open_state(str(root), ME) as state:

        def run() -> None:
            with state.begin("u0", 0, [str(out)]) as staging, open_output(str(out), "error", [], ME) as output:
                record = record_of(staging, 1)
                Path(staging.stage("s").folder.path, "rows-00000.parquet").unlink()
                commit_together(staging, record, [result(output, 1)], 10)

        with pytest.raises(OutputError, match=r"state/u0/s: rows-00000.parquet was written by a task but is not here"):
            run()
        assert state.records == ()
    assert names(tmp_path) == ["state"]
    assert names(root) == [".wincli-state"]


def test_a_part_that_nobody_knows_stops_the_commit_and_what_a_killed_attempt_left_goes(tmp_path: Path) -> None:
    with open_state(str(tmp_path / "st"), ME) as state:

        def run(stray: str) -> None:
            with state.begin("u0", 0, []) as staging:
                record = record_of(staging, 1)
                Path(staging.stage("s").folder.path, stray).write_text("x")
                commit_together(staging, record, [], 10)

        with pytest.raises(OutputError, match=r"no task knows of keys-00001.parquet; nothing was written"):
            run("keys-00001.parquet")
        assert state.records == ()
        run(".rows-00000.parquet.0123456789ab")
        assert names(tmp_path / "st/u0/s") == ["rows-00000.parquet"]


@pytest.mark.parametrize("name", ["", ".x", "a/b", "..", "x" * 256, "unit.json", "a\0b"])
def test_names_that_cannot_be_folders(tmp_path: Path, name: str) -> None:
    with open_state(str(tmp_path / "st"), ME) as state:
        with pytest.raises(ConfigError, match=r"the unit .* (cannot be a folder of|is a name that) the state"):
            state.begin(name, 0, []).__enter__()
        with state.begin("u0", 0, []) as staging, pytest.raises(ConfigError, match="the stage "):
            staging.stage(name)


@pytest.mark.parametrize("out", ["st", "st/out", "."])
def test_an_output_and_the_state_are_kept_apart(tmp_path: Path, out: str) -> None:
    with open_state(str(tmp_path / "st"), ME) as state:
        with pytest.raises(ConfigError, match="are one folder, or one is inside the other; keep the state in a folder"):
            state.begin("u0", 0, [str(tmp_path / out)]).__enter__()
        assert names(tmp_path / "st") == [".wincli-lock", ".wincli-state"]


# Pruning


def test_only_the_newest_units_keep_their_state_data(tmp_path: Path) -> None:
    with open_state(str(tmp_path / "st"), ME) as state:
        for ordinal in range(5):
            run_unit(state, ordinal, ordinal=ordinal, keep=2)
        assert [state_value(state, f"u{ordinal}") for ordinal in range(5)] == [None, None, None, 3, 4]
        assert len(state.records) == 5
        assert names(tmp_path / "st/u0") == ["unit.json"]
    assert names(tmp_path / "st") == [".wincli-state", "u0", "u1", "u2", "u3", "u4"]


def test_reprocessing_an_old_unit_keeps_its_data_and_that_of_newer_units(tmp_path: Path) -> None:
    with open_state(str(tmp_path / "st"), ME) as state:
        for ordinal in range(5):
            run_unit(state, ordinal, ordinal=ordinal, keep=2)
        run_unit(state, 10, ordinal=0, keep=2)
        assert [state_value(state, f"u{ordinal}") for ordinal in range(5)] == [10, None, None, 3, 4]
        with state.begin("u1", 1, []) as staging:
            record = record_of(staging, 11)
            assert state_value(state, "u0") == 10
            commit_together(staging, record, [], 2)
        assert [state_value(state, f"u{ordinal}") for ordinal in range(5)] == [None, 11, None, 3, 4]


def test_kill_while_pruning_leaves_no_partial_state_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(path: Path) -> None:
        raise KeyboardInterrupt

    root = tmp_path / "st"
    put(root, 0)
    with monkeypatch.context() as patch, open_state(str(root), ME) as state:
        patch.setattr("shutil.rmtree", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_unit(state, 1, ordinal=1, keep=1)
        assert state_value(state, "u0") is None
        assert list(root.glob(".gone-*/rows-00000.parquet")) != []
    with open_state(str(root), ME) as state:
        assert (state_value(state, "u0"), state_value(state, "u1")) == (None, 1)
    assert names(root) == [".wincli-state", "u0", "u1"]


# The last error


def test_the_last_error_stays_until_that_unit_is_done(tmp_path: Path) -> None:
    root = tmp_path / "st"
    with open_state(str(root), ME) as state:
        state.fail("u1", "the disk is full", "2026-11-08T03:00:00+00:00")
        run_unit(state, 0)
        told = {"when": "2026-11-08T03:00:00+00:00", "unit": "u1", "message": "the disk is full"}
        assert json.loads((root / ".last-error.json").read_text()) == seal(told)
        run_unit(state, 1, ordinal=1)
    assert names(root) == [".wincli-state", "u0", "u1"]


# Damage


def test_damaged_state_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    root = tmp_path / "st"
    put(root, 1)

    def refused(said: str) -> None:
        with pytest.raises(InputError, match=said):
            open_state(str(root), ME).__enter__()
        assert names(root)[-1] != ".wincli-lock"

    (root / "u9").mkdir()
    refused(r"st/u9 has no unit.json, and so is no unit of the state; restore that file, or move")
    (root / "u0/unit.json").rename(root / "u9/unit.json")
    (root / "u0/s").rename(root / "u9/s")
    (root / "u0").rmdir()
    refused(r"st/u9/unit.json is the record of u0; move .*/st/u9 out of the state")
    (root / "u9/unit.json").write_text("{")
    refused(r"st/u9/unit.json is damaged: it is not the record that was written there; restore it")
