"""The commit of outputs and a state where something goes wrong: a full disk, an interrupt, another run, a store."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.numbered_units import (
    ME,
    names,
    outs,
    put,
    result,
    run_unit,
    settled,
    state_value,
    stop,
    stopping,
    tree,
    value_of,
)
from wincli.windowing.errors import ConfigError, OutputError
from wincli.writers.commit.tables import table_of
from wincli.writers.output.output import open_output
from wincli.writers.places import atomic_files
from wincli.writers.places.lock import Owner
from wincli.writers.state import journal
from wincli.writers.state.journal import StateStaging, commit_all
from wincli.writers.state.state import open_state, read_state

# Full disks


def test_a_disk_that_is_full_at_any_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first swap all is as it was; after it the unit is done and completed by the next opening."""
    fsync = os.fsync
    seen: list[bool] = []
    for failing in range(1, 99):
        folder = tmp_path / str(failing)
        folder.mkdir()
        put(folder / "state", 1, outs(folder))
        before = tree(folder)
        calls: list[int] = []

        def full(fd: int, failing: int = failing, calls: list[int] = calls) -> None:
            calls.append(fd)
            if len(calls) == failing:
                raise OSError(errno.ENOSPC, "full")
            fsync(fd)

        with open_state(str(folder / "state"), ME) as state:
            with monkeypatch.context() as patch:
                patch.setattr(os, "fsync", full)
                try:
                    run_unit(state, 2, outs(folder))
                    break
                except OutputError as error:
                    said = str(error)
            assert ": the disk is full" in said
            if undone := "nothing was written" in said:
                assert state_value(state) == 1
        if undone:
            assert tree(folder) == before
        assert settled(folder) == (1 if undone else 2)
        seen.append(undone)
    assert len(calls) == len(seen) < 99
    assert seen == sorted(seen, reverse=True)
    assert seen.count(True) > 10
    assert seen.count(False) >= 3


# Swaps that fail


def failing_swap(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    replace = atomic_files.replace

    def refuse(out: Path, new: Path, old: Path) -> None:
        if out.name == name:
            raise OSError(errno.EXDEV, "cross-device")
        replace(out, new, old)

    monkeypatch.setattr(atomic_files, "replace", refuse)


def test_where_the_first_output_cannot_be_replaced_nothing_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "state", 1, outs(tmp_path))
    before = tree(tmp_path)
    with monkeypatch.context() as patch:
        failing_swap(patch, "a")
        with pytest.raises(OutputError, match="nothing was written; write to a folder that can be renamed"):
            put(tmp_path / "state", 2, outs(tmp_path))
    assert tree(tmp_path) == before
    assert settled(tmp_path) == 1


@pytest.mark.parametrize("name", ["b", "u0"])
def test_where_a_later_part_cannot_be_replaced_the_next_opening_does_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    put(tmp_path / "state", 1, outs(tmp_path))
    shown = tmp_path / ("b" if name == "b" else "state")
    with monkeypatch.context() as patch:
        failing_swap(patch, name)
        with open_state(str(tmp_path / "state"), ME) as state:
            said = f"unit u0 is computed, but cannot be put in place in {shown}: .*; fix that and run again"
            with pytest.raises(OutputError, match=said):
                run_unit(state, 2, outs(tmp_path))
            with pytest.raises(OutputError, match="has a unit that is not in place yet; nothing was written; run agai"):
                run_unit(state, 3, outs(tmp_path), ordinal=1)
        view = read_state(str(tmp_path / "state"))
        assert (view.pending, view.running) == ("u0", "u0")
        said = f"unit u0 was killed while it was committed, and cannot be completed in {shown}: .*; fix that and run"
        with pytest.raises(OutputError, match=said):
            open_state(str(tmp_path / "state"), ME).__enter__()
    assert settled(tmp_path) == 2


def test_a_completed_commit_prunes_and_forgets_the_error_of_its_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_state(str(tmp_path / "state"), ME) as state:
        run_unit(state, 0, ordinal=0)
        state.fail("u1", "no space", "2026-11-08")
        with monkeypatch.context() as patch:
            patch.setattr(journal, "_publish", stopping)
            with pytest.raises(KeyboardInterrupt):
                run_unit(state, 1, ordinal=1, keep=1)
    with open_state(str(tmp_path / "state"), ME) as state:
        assert (state_value(state, "u0"), state_value(state, "u1")) == (None, 1)
    assert names(tmp_path / "state") == [".wincli-state", "u0", "u1"]


def test_pruned_data_that_cannot_be_deleted_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "state", 1, outs(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr("wincli.writers.state.local_storage.shutil.rmtree", refuse_to_delete)
        with pytest.raises(
            OutputError, match=r"unit u0 is done, but what .*/state keeps no longer cannot be deleted: p"
        ):
            put(tmp_path / "state", 2, outs(tmp_path))
    assert settled(tmp_path) == 2


def refuse_to_delete(path: Path) -> None:
    raise PermissionError(errno.EACCES, "no", str(path))


# Other runs meanwhile


def write(out: Path, value: int) -> None:
    """Another job, without a state."""
    with open_output(str(out), "overwrite", [], ME) as opened:
        commit_all([result(opened, value)])


@pytest.mark.parametrize("published", [0, 1])
def test_an_output_that_another_run_has_replaced_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, published: int
) -> None:
    put(tmp_path / "state", 1, outs(tmp_path))
    stop(monkeypatch, tmp_path / "state", outs(tmp_path), published)
    write(tmp_path / "b", 9)
    with open_state(str(tmp_path / "state"), ME) as state:
        also = f" ({tmp_path}/a already holds its result)" if published else ""
        assert state.notes == (
            f"unit u0 was killed while it was committed, and its part of {tmp_path}/b is gone{also}: it counts as not "
            "done; look what is there now, then run the unit again",
        )
        assert state_value(state) == 1
    assert [value_of(out) for out in outs(tmp_path)] == [1 + published, 9]
    assert names(tmp_path) == ["a", "b", "state"]
    assert names(tmp_path / "state") == [".wincli-state", "u0"]
    put(tmp_path / "state", 3, outs(tmp_path))
    assert settled(tmp_path) == 3


def test_once_the_outputs_are_in_place_others_may_write_to_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The unit is done, whoever writes to its outputs later; also where the state stood between its two renames."""
    put(tmp_path / "state", 1, outs(tmp_path))

    def between(self: StateStaging) -> None:
        (tmp_path / "state/u0").rename(tmp_path / f"state/.old-{self.token}")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(StateStaging, "publish", between)
        with pytest.raises(KeyboardInterrupt):
            put(tmp_path / "state", 2, outs(tmp_path))
    write(tmp_path / "b", 9)
    with open_state(str(tmp_path / "state"), ME) as state:
        assert "has been put in place" in state.notes[0]
        assert state_value(state) == 2
    assert [value_of(out) for out in outs(tmp_path)] == [2, 9]
    assert names(tmp_path / "state") == [".wincli-state", "u0"]


def test_a_folder_above_an_output_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    put(tmp_path / "in/state", 1, outs(tmp_path / "in"))
    (tmp_path / "in/state").rename(tmp_path / "state")
    with monkeypatch.context() as patch:
        patch.setattr(journal, "_publish", stopping)
        with pytest.raises(KeyboardInterrupt):
            put(tmp_path / "state", 2, [tmp_path / "in/a"])
    shutil.rmtree(tmp_path / "in")
    with open_state(str(tmp_path / "state"), ME) as state:
        assert f"its part of {tmp_path}/in/a is gone" in state.notes[0]
        assert state_value(state) == 1
    assert names(tmp_path) == ["state"]


def test_the_staged_unit_of_the_state_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "state", 1, outs(tmp_path))
    stop(monkeypatch, tmp_path / "state", outs(tmp_path), 0)
    (staged,) = (tmp_path / "state").glob(".new-*")
    shutil.rmtree(staged)
    with open_state(str(tmp_path / "state"), ME) as state:
        assert f"its part of the state {tmp_path}/state is gone" in state.notes[0]
    assert settled(tmp_path) == 1


def test_an_output_at_which_another_run_is_at_work_has_to_be_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "state", 1, outs(tmp_path))
    stop(monkeypatch, tmp_path / "state", outs(tmp_path), 1)
    before = tree(tmp_path)
    with ExitStack() as stack:
        stack.enter_context(table_of(str(tmp_path / "b")).hold(Owner(7, "there", "now")))
        with pytest.raises(OutputError, match=r"another run is writing to .*/b \(process 7 on there"):
            open_state(str(tmp_path / "state"), ME).__enter__()
    assert tree(tmp_path) == before
    assert settled(tmp_path) == 2


# Without a state


def test_several_outputs_without_a_state_come_one_after_the_other(tmp_path: Path) -> None:
    with ExitStack() as stack:
        opened = [stack.enter_context(open_output(str(out), "error", [], ME)) for out in outs(tmp_path)]
        commit_all([result(one, 4) for one in opened])
    assert [value_of(out) for out in outs(tmp_path)] == [4, 4]
    assert names(tmp_path) == ["a", "b"]


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (lambda out, staging: (staging / "part-00000.csv").unlink(), OutputError),
        (lambda out, staging: (out.mkdir(), (out / "other").write_text("")), ConfigError),
    ],
)
def test_what_is_wrong_with_the_last_output_keeps_the_first_from_being_replaced(
    tmp_path: Path, spoil: Callable[[Path, Path], object], error: type[Exception]
) -> None:
    with ExitStack() as stack:
        opened = [stack.enter_context(open_output(str(out), "error", [], ME)) for out in outs(tmp_path)]
        results = [result(one, 4) for one in opened]
        spoil(tmp_path / "b", Path(opened[1].staging))
        with pytest.raises(error):
            commit_all(results)
    assert value_of(tmp_path / "a") is None
