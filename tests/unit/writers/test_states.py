"""A state: opened by one run at a time in a folder of its own, its units kept, pruned and taken out."""

from __future__ import annotations

import errno
import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.numbered_units import DEAD, ME, names, put, record_of, result, run_unit, state_value, tree, value_of
from support.quick_store import URI, KilledError, QuickStore, killed_at, use
from wincli.windowing.errors import ConfigError, DamagedError, InputError, OutputError
from wincli.windowing.support.checksum import seal
from wincli.writers.commit import tables
from wincli.writers.output.output import open_output
from wincli.writers.places.lock import Owner, age, is_dead
from wincli.writers.state import local_storage
from wincli.writers.state.journal import commit_together
from wincli.writers.state.layout import FORGOTTEN, RECORD, is_state
from wincli.writers.state.state import State, open_state, read_state, state_without_lock
from wincli.writers.state.unit_record import OpenWindows, StageRecord, UnitRecord

BOX = Owner(4242, "box7", "2026-11-07T22:47:30+00:00")


@contextmanager
def other_run(root: Path, *outs: Path) -> Iterator[None]:
    """Another run in the middle of a unit."""
    with open_state(str(root), BOX) as state, ExitStack() as stack:
        staging = stack.enter_context(state.begin("u5", 5, [str(out) for out in outs]))
        staging.stage("s")
        for out in outs:
            stack.enter_context(open_output(str(out), "overwrite", [], BOX))
        yield


def killed_run(root: Path, *outs: Path) -> None:
    """What stands beside a state in the middle of a unit, and nobody holds it."""
    folder, left = root.parent, root.parent.with_name("left")
    with other_run(root, *outs):
        shutil.copytree(folder, left)
    shutil.rmtree(folder)
    left.rename(folder)


# One at a time


def test_while_a_run_is_at_work_others_may_look_and_not_begin(tmp_path: Path) -> None:
    root, out = tmp_path / "st", tmp_path / "out"
    record = put(root, 1)
    with other_run(root, out):
        before = tree(tmp_path)
        said = (
            f"another run is writing to the state {root} (process 4242 on box7, started 2026-11-07T22:47:30+00:00, "
            "3 h 12 min ago); nothing was written; wait for it to end, or choose another state"
        )
        with pytest.raises(OutputError, match=f"^{re.escape(said)}$"):
            open_state(str(root), ME).__enter__()
        view = read_state(str(root))
        assert tree(tmp_path) == before
        assert (view.records, view.owner) == ((record,), BOX)
        assert (view.pending, view.running, view.last_error) == (None, "u5", None)
    after = read_state(str(root))
    assert (after.records, after.owner, after.running) == ((record,), None, None)
    assert value_of(out) is None
    assert names(root) == [".wincli-state", "u0"]


def test_lock_of_a_killed_run_is_taken_over_with_a_note(tmp_path: Path) -> None:
    root, outs = tmp_path / "st", [tmp_path / "a", tmp_path / "new/b", tmp_path / "gone/c"]
    killed_run(root, *outs)
    assert len(names(root)) == 4
    assert len(names(tmp_path)) == 5
    (tmp_path / "gone").rename(tmp_path / "elsewhere")  # where the folder is gone, nothing has to be cleaned
    with open_state(str(root), ME) as state:
        said = "process 4242 on box7, started 2026-11-07T22:47:30+00:00, 3 h 12 min ago"
        assert state.notes == (f"took the state {root} over from a run that died ({said})",)
        assert state.records == ()
        assert names(root) == [".wincli-lock", ".wincli-state"]
    assert names(tmp_path) == ["elsewhere", "new", "st"]
    assert names(tmp_path / "new") == []


def test_beside_an_output_that_another_run_writes_to_nothing_is_touched(tmp_path: Path) -> None:
    root, out = tmp_path / "st", tmp_path / "a"
    killed_run(root, out)
    with open_output(str(out), "error", [], ME) as output:
        with open_state(str(root), ME) as state:
            assert len(state.notes) == 1
        assert Path(output.staging).is_dir()
        result(output, 1)
    assert names(tmp_path) == ["st"]
    assert names(root) == [".wincli-state"]


def test_leftover_beside_an_output_that_cannot_be_deleted_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_run(tmp_path / "st", tmp_path / "out")

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "no")

    monkeypatch.setattr(tables, "remove_beside", refuse)
    with open_state(str(tmp_path / "st"), ME) as state:
        said = f"could not remove what a killed run left beside {tmp_path}/out: permission denied"
        assert state.notes[1:] == (said,)


@pytest.mark.parametrize(
    ("started", "now", "words"),
    [
        ("2026-11-08T01:59:01+00:00", "2026-11-08T02:00:00+00:00", None),
        ("2026-11-08T01:59:00+00:00", "2026-11-08T02:00:00+00:00", "1 min ago"),
        ("2026-11-08T02:00:00+01:00", "2026-11-08T02:00:00+00:00", "1 h ago"),
        ("2026-11-06T01:29:00Z", "2026-11-08T02:00:00Z", "2 d 31 min ago"),
        ("2026-11-06T00:29:00Z", "2026-11-08T02:00:00Z", "2 d 1 h ago"),
        ("2026-11-08T03:00:00Z", "2026-11-08T02:00:00Z", None),
        ("2026-11-08T01:00:00", "2026-11-08T02:00:00Z", None),
        ("now", "2026-11-08T02:00:00Z", None),
    ],
)
def test_ages_in_words(started: str, now: str, words: str | None) -> None:
    assert age(started, now) == words


# A folder of its own


def test_a_state_is_made_where_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("real")
    for path in ("new/st", "empty", "link", "uri"):
        named = f"file://{tmp_path}/uri" if path == "uri" else str(tmp_path / path)
        with open_state(named, ME) as state:
            assert (state.records, state.notes) == ((), ())
        assert names(tmp_path / path) == [".wincli-state"]
        assert is_state(named)
    assert (tmp_path / "link").is_symlink()


def test_what_a_kill_before_the_marker_left_is_no_obstacle(tmp_path: Path) -> None:
    for name in (".wincli-lock", ".wincli-state.half"):
        (tmp_path / name).write_text("")
    with open_state(str(tmp_path), ME):
        pass
    assert names(tmp_path) == [".wincli-state"]


@pytest.mark.parametrize(
    ("path", "said", "is_told_to_readers"),
    [
        ("", "the path of the state is empty; name a folder for it", True),
        ("s3://lake", "the state s3://lake is the root of a store; name a folder inside it", True),
        ("hdfs://host/st", "are kept in local folders and on s3://, gs:// and abfs:// only, not on hdfs://host/", True),
        ("gopher://x/y", "states are kept in local folders and on s3://, gs:// and abfs:// only", True),
        ("{here}/newer", "was written by a newer wincli: it has format 2, and this one knows 1", True),
        ("{here}", "is not empty and is not a state of wincli; nothing was touched; choose an", False),
        ("{here}/thesis.tex", r"thesis\.tex is not a folder; name a folder", False),
        (f"{{here}}/a/{'x' * 256}", "^cannot write the state .*: the name is too long; nothing was written", False),
    ],
)
def test_what_cannot_be_a_state_is_refused_and_not_touched(
    tmp_path: Path, path: str, said: str, is_told_to_readers: bool
) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    (tmp_path / "newer").mkdir()
    (tmp_path / "newer/.wincli-state").write_text('{"format": 2}')
    path = path.format(here=tmp_path)
    looks: list[Callable[[], object]] = [lambda: open_state(path, ME).__enter__()]
    for look in [*looks, lambda: read_state(path)] if is_told_to_readers else looks:
        with pytest.raises((ConfigError, OutputError), match=said):
            look()
    assert not is_state(str(tmp_path))
    assert tree(tmp_path) == {"thesis.tex": b"mine", "newer/.wincli-state": b'{"format": 2}'}
    assert names(tmp_path) == ["newer", "thesis.tex"]


# Looking without touching


def test_there_is_no_state_to_look_at(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(ConfigError, match=r"there is no state in .*; name the folder that --state names"):
            read_state(str(path))
    assert names(tmp_path) == []


def test_whether_an_owner_still_lives() -> None:
    assert not is_dead(ME, "here")
    assert is_dead(DEAD, "here")
    assert not is_dead(DEAD, "there")


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


# What a commit checks


def test_parts_that_are_others_than_tasks_told_stop_the_commit_and_what_a_killed_attempt_left_goes(
    tmp_path: Path,
) -> None:
    root, out = tmp_path / "st", tmp_path / "out"

    def run(state: State, disturb: Callable[[Path], object]) -> None:
        with state.begin("u0", 0, [str(out)]) as staging, open_output(str(out), "error", [], ME) as output:
            record = record_of(staging, 1)
            disturb(Path(staging.stage("s").folder.path))
            commit_together(staging, record, [result(output, 1)], 10)

    with open_state(str(root), ME) as state:
        with pytest.raises(OutputError, match=r"st/u0/s: rows-00000.parquet was written by a task but is not here"):
            run(state, lambda folder: (folder / "rows-00000.parquet").unlink())
        with pytest.raises(OutputError, match=r"no task knows of keys-00001.parquet; nothing was written"):
            run(state, lambda folder: (folder / "keys-00001.parquet").write_text("x"))
        assert state.records == ()
        assert (names(tmp_path), names(root)) == (["st"], [".wincli-lock", ".wincli-state"])
        run(state, lambda folder: (folder / ".rows-00000.parquet.0123456789ab").write_text("x"))
        assert names(root / "u0/s") == ["rows-00000.parquet"]


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
        assert read_state(str(root)).last_error == told
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


# Units taken out of a state: all of them in one step, whatever kills the command


@pytest.fixture(params=["folder", "store"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A state with the units u0 to u3, each of which holds its number."""
    path = str(tmp_path / "state")
    if request.param == "store":
        use(QuickStore(tmp_path / "store"), monkeypatch)
        path = URI
    fill(path)
    return path


def fill(root: str) -> None:
    with open_state(root, ME) as state:
        for ordinal in range(4):
            run_unit(state, ordinal, ordinal=ordinal)


def labels(root: str) -> list[str]:
    with open_state(root, ME) as state:
        return [record.label for record in state.records]


def test_forgotten_units_are_gone_and_the_others_are_what_they_were(root: str) -> None:
    with open_state(root, ME) as state:
        kept = state.records[0]
        runs = {record.label: record.run for record in state.records}
        state.forget({"u1", "u3"})
        assert [record.label for record in state.records] == ["u0", "u2"]
    with open_state(root, ME) as state:
        assert state.notes == ()
        assert [record.label for record in state.records] == ["u0", "u2"]
        assert state.record("u0") == kept
        assert [state_value(state, label) for label in ("u0", "u1", "u2")] == [0, None, 2]
        assert state.forgotten() == {"u1": runs["u1"], "u3": runs["u3"]}


def test_a_forgotten_unit_can_be_run_again_and_is_forgotten_no_more(root: str) -> None:
    with open_state(root, ME) as state:
        state.forget({"u3"})
        run_unit(state, 33, ordinal=3)
        assert state.forgotten() == {}
    with open_state(root, ME) as state:
        assert state_value(state, "u3") == 33
        state.forget({"u1"})
        assert list(state.forgotten()) == ["u1"]
        assert state_value(state, "u3") == 33


def test_the_failure_of_a_forgotten_unit_is_forgotten_with_it(root: str) -> None:
    with open_state(root, ME) as state:
        state.fail("u2", "no", "2026-11-08T02:00:00+00:00")
        state.forget({"u1"})
        assert read_state(root).last_error is not None
        state.forget({"u2"})
    assert read_state(root).last_error is None


def test_a_copy_of_a_state_knows_what_was_forgotten(root: str, tmp_path: Path) -> None:
    with open_state(root, ME) as state:
        state.forget({"u1"})
        state.storage.copy_to(tmp_path / "copy")
    copy = state_without_lock(str(tmp_path / "copy"))
    assert [record.label for record in copy.records] == ["u0", "u2", "u3"]
    assert list(copy.forgotten()) == ["u1"]


def test_a_damaged_document_of_forgotten_units_is_an_error_that_says_what_to_do(root: str, tmp_path: Path) -> None:
    with open_state(root, ME) as state:
        state.forget({"u3"})
    folder = tmp_path / ("store" if root == URI else "state")
    (folder / FORGOTTEN).write_text("{")
    with pytest.raises(DamagedError, match=r"\.forgotten\.json is damaged") as error:
        state_without_lock(root).forgotten()
    assert error.value.do is not None
    assert error.value.do.startswith("delete it: ")


def test_a_folder_whose_command_is_killed_has_all_units_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every step of the command that changes something on disk is the last one."""
    root, found = tmp_path / "state", list[tuple[str, ...]]()
    for number in range(1, 99):
        shutil.rmtree(root, ignore_errors=True)
        fill(str(root))
        with monkeypatch.context() as patch:
            steps = count_steps(patch, number)
            try:
                with open_state(str(root), DEAD) as state:
                    state.forget({"u1", "u2", "u3"})
            except KilledError:
                pass
        seen = tuple(record.label for record in read_state(str(root)).records)
        assert labels(str(root)) == list(seen), "what a look without the lock says is so"
        assert names(root) == sorted([".wincli-state", *seen, *([] if len(seen) > 1 else [FORGOTTEN])])
        found.append(seen)
        if steps() < number:
            break
    assert found == sorted(found, key=len, reverse=True)
    assert set(found) == {("u0", "u1", "u2", "u3"), ("u0",)}


def count_steps(patch: pytest.MonkeyPatch, last: int) -> Callable[[], int]:
    """Let the process die before its step ``last``; return what counts the steps."""
    done: list[object] = []

    def killing(name: str) -> None:
        real = getattr(local_storage, name)

        def step(*args: object) -> None:
            done.append(name)
            if len(done) >= last:
                raise KilledError
            real(*args)

        patch.setattr(local_storage, name, step)

    killing("put")
    killing("remove_beside")
    return lambda: len(done)


@pytest.mark.parametrize("is_done", [True, False])
def test_a_store_whose_command_is_killed_at_any_request_has_all_units_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_done: bool
) -> None:
    store = QuickStore(tmp_path / "store")
    use(store, monkeypatch)
    found = []
    for number in range(1, 99):
        store.clear()
        fill(URI)
        with killed_at(store, number, is_done=is_done) as died, open_state(URI, DEAD) as state:
            state.forget({"u1", "u2", "u3"})
        found.append(tuple(labels(URI)))
        assert {name.split("/")[0] for name in store.names() if name.endswith(RECORD)} == set(found[-1])
        if not died:
            break
    assert found == sorted(found, key=len, reverse=True)
    assert set(found) == {("u0", "u1", "u2", "u3"), ("u0",)}
