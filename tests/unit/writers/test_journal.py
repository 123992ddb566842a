"""The commit of outputs and a state where something goes wrong: a disk, an interrupt, another run, damaged files."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.numbered_units import (
    ME,
    ended_at,
    names,
    outs,
    put,
    result,
    run_unit,
    settled,
    state_value,
    stop,
    tree,
    value_of,
)
from wincli.windowing.errors import ConfigError, DamagedError, OutputError
from wincli.windowing.support.checksum import seal
from wincli.writers.commit.tables import table_of
from wincli.writers.output.output import Output, open_output
from wincli.writers.places import atomic_files
from wincli.writers.places.lock import Owner
from wincli.writers.state import journal
from wincli.writers.state.journal import StateStaging, commit_all
from wincli.writers.state.layout import put_json
from wincli.writers.state.state import open_state, read_state


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A state with a unit of the number 1, whose outputs are beside it."""
    put(tmp_path / "state", 1, outs(tmp_path))
    return tmp_path / "state"


def completed(root: Path | str) -> tuple[str, ...]:
    """Open a state, which completes what was killed; return its notes."""
    with open_state(str(root), ME) as state:
        return state.notes


def write(out: Path | str, value: int) -> None:
    """Another job, without a state."""
    with open_output(str(out), "overwrite", [], ME) as opened:
        opened.begin()
        commit_all([result(opened, value)])


# Disks and swaps that fail


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


def failing_swap(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    replace = atomic_files.replace

    def refuse(out: Path, new: Path, old: Path) -> None:
        if out.name == name:
            raise OSError(errno.EXDEV, "cross-device")
        replace(out, new, old)

    monkeypatch.setattr(atomic_files, "replace", refuse)


def test_where_the_first_output_cannot_be_replaced_nothing_is(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(tmp_path)
    with monkeypatch.context() as patch:
        failing_swap(patch, "a")
        with pytest.raises(OutputError, match="nothing was written; write to a folder that can be renamed"):
            put(root, 2, outs(tmp_path))
    assert tree(tmp_path) == before
    assert settled(tmp_path) == 1


@pytest.mark.parametrize(("name", "place"), [("b", "b"), ("u0", "state")])
def test_where_a_later_part_cannot_be_replaced_the_next_opening_does_it(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, name: str, place: str
) -> None:
    with monkeypatch.context() as patch:
        failing_swap(patch, name)
        with open_state(str(root), ME) as state:
            said = f"unit u0 is computed, but cannot be put in place in {tmp_path / place}: .*; fix that and run again"
            with pytest.raises(OutputError, match=said):
                run_unit(state, 2, outs(tmp_path))
            with pytest.raises(OutputError, match="has a unit that is not in place yet; nothing was written; run agai"):
                run_unit(state, 3, outs(tmp_path), ordinal=1)
        view = read_state(str(root))
        assert (view.pending, view.running) == ("u0", "u0")
        said = f"unit u0 was killed while it was committed, and cannot be completed in {tmp_path / place}: .*; fix that"
        with pytest.raises(OutputError, match=said):
            completed(root)
    assert settled(tmp_path) == 2


def test_a_completed_commit_prunes_and_forgets_the_error_of_its_unit(tmp_path: Path) -> None:
    root = tmp_path / "state"
    with open_state(str(root), ME) as state:
        run_unit(state, 0, ordinal=0)
        state.fail("u1", "no space", "2026-11-08")
        ended_at(journal, "_publish", lambda: run_unit(state, 1, ordinal=1, keep=1))
    with open_state(str(root), ME) as state:
        assert (state_value(state, "u0"), state_value(state, "u1")) == (None, 1)
    assert names(root) == [".wincli-state", "u0", "u1"]


def test_pruned_data_that_cannot_be_deleted_is_an_error(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(errno.EACCES, "no", str(path))

    said = r"unit u0 is done, but what .*/state keeps no longer cannot be deleted: p"
    with monkeypatch.context() as patch:
        patch.setattr("wincli.writers.state.local_storage.shutil.rmtree", refuse)
        with pytest.raises(OutputError, match=said):
            put(root, 2, outs(tmp_path))
    assert settled(tmp_path) == 2


# Other runs meanwhile


@pytest.mark.parametrize(("published", "lost"), [(0, 0), (0, 1), (1, 1)])
def test_a_unit_is_given_up_where_another_run_has_published_since(
    tmp_path: Path, store: Path, published: int, lost: int
) -> None:
    root, outs, places = tmp_path / "state", [str(tmp_path / "a"), "s://store/b"], [tmp_path / "a", store / "b"]
    put(root, 1, outs)
    stop(root, outs, published)
    write(outs[lost], 9)
    with open_state(str(root), ME) as state:
        also = f" ({outs[0]} already holds its result)" if published else ""
        assert state.notes == (
            f"unit u0 was killed while it was committed, and its part of {outs[lost]} is gone{also}: it counts as not "
            "done; look what is there now, then run the unit again",
        )
        assert state_value(state) == 1
    left = [1 + published, 1]
    left[lost] = 9
    assert [value_of(place) for place in places] == left
    assert (names(tmp_path), names(store)) == (["a", "state", "store"], ["b"])
    assert names(root) == [".wincli-state", "u0"]
    put(root, 3, outs)
    assert [value_of(place) for place in places] == [3, 3]


def test_once_the_outputs_are_in_place_others_may_write_to_them(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The unit is done, whoever writes to its outputs later; also where the state stood between its two renames."""

    def between(self: StateStaging) -> None:
        (root / "u0").rename(root / f".old-{self.token}")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(StateStaging, "publish", between)
        with pytest.raises(KeyboardInterrupt):
            put(root, 2, outs(tmp_path))
    write(tmp_path / "b", 9)
    with open_state(str(root), ME) as state:
        assert "has been put in place" in state.notes[0]
        assert state_value(state) == 2
    assert [value_of(out) for out in outs(tmp_path)] == [2, 9]
    assert names(root) == [".wincli-state", "u0"]


def test_a_folder_above_an_output_that_is_gone(tmp_path: Path) -> None:
    put(tmp_path / "state", 1, [tmp_path / "in/a"])
    ended_at(journal, "_publish", lambda: put(tmp_path / "state", 2, [tmp_path / "in/a"]))
    shutil.rmtree(tmp_path / "in")
    with open_state(str(tmp_path / "state"), ME) as state:
        assert f"its part of {tmp_path}/in/a is gone" in state.notes[0]
        assert state_value(state) == 1
    assert names(tmp_path) == ["state"]


def test_the_staged_unit_of_the_state_is_gone(tmp_path: Path, root: Path) -> None:
    stop(root, outs(tmp_path), 0)
    (staged,) = root.glob(".new-*")
    shutil.rmtree(staged)
    assert f"its part of the state {root} is gone" in completed(root)[0]
    assert settled(tmp_path) == 1


def test_an_output_at_which_another_run_is_at_work_has_to_be_waited_for(tmp_path: Path, root: Path) -> None:
    stop(root, outs(tmp_path), 1)
    before = tree(tmp_path)
    refused = pytest.raises(OutputError, match=r"another run is writing to .*/b \(process 7 on there")
    with table_of(str(tmp_path / "b")).hold(Owner(7, "there", "now")), refused:
        completed(root)
    assert tree(tmp_path) == before
    assert settled(tmp_path) == 2


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (lambda out, staging: None, None),
        (lambda out, staging: (staging / "part-00000.csv").unlink(), OutputError),
        (lambda out, staging: (out.mkdir(), (out / "other").write_text("")), ConfigError),
    ],
)
def test_of_several_outputs_without_a_state_all_are_replaced_or_none(
    tmp_path: Path, spoil: Callable[[Path, Path], object], error: type[Exception] | None
) -> None:
    with ExitStack() as stack:
        opened = [stack.enter_context(open_output(str(out), "error", [], ME)) for out in outs(tmp_path)]
        results = [result(one, 4) for one in opened]
        spoil(tmp_path / "b", Path(opened[1].staging))
        if error is not None:
            stack.enter_context(pytest.raises(error))
        commit_all(results)
    assert value_of(tmp_path / "a") == (4 if error is None else None)
    if error is None:
        assert value_of(tmp_path / "b") == 4
        assert names(tmp_path) == ["a", "b"]


# A journal, and small files beside it, that a disk has damaged: the next run completes, or says what to do


def flipped(bit: int) -> Callable[[bytes], bytes]:
    """Flip a bit of what is not white space."""

    def flip(content: bytes) -> bytes:
        solid = [i for i, byte in enumerate(content) if not chr(byte).isspace()]
        at = solid[bit // 8 % len(solid)]
        return content[:at] + bytes([content[at] ^ 1 << bit % 8]) + content[at + 1 :]

    return flip


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut": lambda content: content[: len(content) // 2],
    "garbage": lambda content: bytes(255 - byte for byte in content),
    "zeros": lambda content: bytes(len(content)),
    "no object": lambda _: b"[]",
    "nothing in it": lambda _: b"{}",
    "nested": lambda _: b"[" * 100_000,
    "of another kind": lambda _: json.dumps(seal({"label": 1, "run": [], "keep": "x", "outputs": 3})).encode(),
    **{f"bit {bit}": flipped(bit) for bit in (0, 149, 596, 1043)},
}
STOPS: dict[str, tuple[object, str, int]] = {
    "no output in place": (Output, "publish", 0),
    "one output in place": (Output, "publish", 1),
    "outputs in place": (StateStaging, "publish", 0),
    "all in place": (journal, "complete", 0),
}
"""What ends the run, and so what of it is in place."""


def spoil(path: Path, how: str) -> None:
    path.write_bytes(DAMAGES[how](path.read_bytes()))


def stop_at(folder: Path, where: str) -> None:
    """Run the unit again with the number 2, and end it."""
    owner, name, calls = STOPS[where]
    ended_at(owner, name, lambda: put(folder / "state", 2, outs(folder)), calls)


CASES = [("a unit", how) for how in DAMAGES]
CASES += [(before, how) for before in ("nothing", "a unit that cannot be exchanged") for how in ("empty", "cut")]


@pytest.mark.parametrize("where", STOPS)
@pytest.mark.parametrize(("before", "how"), CASES)
def test_a_commit_whose_journal_is_damaged_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, how: str, before: str
) -> None:
    root = tmp_path / "state"
    if "exchanged" in before:
        monkeypatch.setattr(atomic_files, "exchange", lambda *_: False)
    if before != "nothing":
        put(root, 1, outs(tmp_path))
    stop_at(tmp_path, where)
    spoil(root / ".journal.json", how)
    pending = read_state(str(root)).pending
    assert pending == (None if where == "all in place" else "u0")
    waits = "it was made anew from the unit that it named" if pending else "no unit waits to be put in place"
    assert f"the journal of the state {root} was damaged; {waits}" in " ".join(completed(root))
    assert settled(tmp_path) == 2


def test_also_between_the_two_renames_of_the_state(tmp_path: Path, root: Path) -> None:
    stop_at(tmp_path, "outputs in place")
    (staged,) = root.glob(".new-*")
    (root / "u0").rename(staged.with_name(staged.name.replace("new", "old")))
    spoil(root / ".journal.json", "empty")
    completed(root)
    assert settled(tmp_path) == 2


def test_damaged_journal_with_lost_files_is_reported_and_the_unit_is_not_done(tmp_path: Path, root: Path) -> None:
    stop(root, outs(tmp_path), 0)
    spoil(root / ".journal.json", "cut")
    (staged,) = tmp_path.glob(".b.wincli-new-*")
    shutil.rmtree(staged)
    assert f"its part of {tmp_path}/b is gone: it counts as not done" in completed(root)[1]
    assert settled(tmp_path) == 1


def test_damaged_journal_and_staged_unit_give_an_error_with_a_remedy(tmp_path: Path, root: Path) -> None:
    stop(root, outs(tmp_path), 1)
    (staged,) = root.glob(".new-*")
    spoil(root / ".journal.json", "cut")
    spoil(staged / "unit.json", "cut")
    before = tree(tmp_path)
    said = (
        f"{root}/.journal.json is damaged, and no staged unit shows what it held; delete it to give its unit "
        "up, look what is in the outputs of that, and run it again with --mode overwrite"
    )
    with pytest.raises(DamagedError, match=f"^{re.escape(said)}$"):
        completed(root)
    assert tree(tmp_path) == before
    assert read_state(str(root)).damage == (said,)
    (root / ".journal.json").unlink()
    put(root, 3, outs(tmp_path))
    assert settled(tmp_path) == 3


def test_a_journal_without_a_checksum_reads(tmp_path: Path, root: Path) -> None:
    """As 0.4.1 wrote it: a run of that version may have been killed before the upgrade."""
    stop(root, outs(tmp_path), 1)
    told = json.loads((root / ".journal.json").read_text())
    del told["checksum"]
    (root / ".journal.json").write_text(json.dumps(told))
    assert "has been put in place" in completed(root)[0]
    assert settled(tmp_path) == 2


NOTES: dict[str, tuple[dict[str, Any], str]] = {
    ".running.json": (
        {"unit": "u1", "outputs": [{"shown": "a", "path": "/a"}]},
        "the next run to the same outputs removes what is left beside them",
    ),
    ".last-error.json": (
        {"when": "2026-11-08", "unit": "u7", "message": "no space"},
        "the next run that fails writes it anew",
    ),
}


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("name", NOTES)
def test_a_damaged_note_is_reported_and_stops_no_commit(tmp_path: Path, root: Path, name: str, how: str) -> None:
    content, do = NOTES[name]
    with open_state(str(root), ME) as state:
        put_json(state.storage, name, content)
    spoil(root / name, how)
    said = f"{root}/{name} is damaged: it is not what was written there; {do}"
    view = read_state(str(root))
    assert (view.running, view.last_error, view.damage) == (None, None, (said,))
    assert completed(root) == ((said,) if name == ".running.json" else ())
    put(root, 2, outs(tmp_path))
    assert settled(tmp_path) == 2
    assert read_state(str(root)).damage == ()


@pytest.mark.parametrize("how", [how for how in DAMAGES if not how.startswith("bit")] + ["bit 149"])
def test_damaged_marker_gives_an_error_with_its_right_content(tmp_path: Path, root: Path, how: str) -> None:
    spoil(root / ".wincli-state", how)
    said = f'{root}/.wincli-state is damaged: it is not what was written there; write {{"format": 1}} into it'
    for look in (completed, read_state):
        with pytest.raises(DamagedError, match=f"^{re.escape(said)}$"):
            look(str(root))
    (root / ".wincli-state").write_text('{"format": 1}')
    assert settled(tmp_path) == 1


def test_a_folder_where_a_file_should_be(root: Path) -> None:
    (root / ".last-error.json").mkdir()
    (line,) = read_state(str(root)).damage
    assert line.startswith(f"cannot read {root}/.last-error.json: ")


def test_a_damaged_state_is_no_reason_to_touch_an_output(tmp_path: Path, root: Path) -> None:
    spoil(root / "u0/unit.json", "bit 149")
    before = tree(tmp_path)
    with pytest.raises((DamagedError, ConfigError)):
        put(root, 2, outs(tmp_path))
    assert tree(tmp_path) == before
    with open_output(str(tmp_path / "a"), "overwrite", [], ME):
        pass
    assert tree(tmp_path) == before
