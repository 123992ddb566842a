"""A journal, and the small files beside it, that a disk has damaged: the next run completes, or says what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from support.numbered_units import ME, names, outs, put, settled, state_value, stop, stopping, tree, value_of
from wincli.windowing.errors import ConfigError, DamagedError, OutputError
from wincli.windowing.support.checksum import seal
from wincli.writers.output.output import Output, open_output
from wincli.writers.places import atomic_files, place
from wincli.writers.places.lock import Lock, hold_lock, read_owner
from wincli.writers.state import journal
from wincli.writers.state.journal import StateStaging
from wincli.writers.state.state import open_state, read_state


def flipped(bit: int) -> Callable[[bytes], bytes]:
    """Flip a bit of what is not white space."""

    def flip(content: bytes) -> bytes:
        at = [i for i, byte in enumerate(content) if not chr(byte).isspace()][bit // 8]
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


def spoil(path: Path, how: str) -> None:
    path.write_bytes(DAMAGES[how](path.read_bytes()))


STOPS = {
    "no output in place": (Output, "publish"),
    "one output in place": None,
    "outputs in place": (StateStaging, "publish"),
    "all in place": (journal, "complete"),
}
"""What ends the run, and so what of it is in place."""


def stop_at(monkeypatch: pytest.MonkeyPatch, folder: Path, where: str) -> None:
    """Run the unit again with the number 2, and stop it."""
    if where == "one output in place":
        stop(monkeypatch, folder / "state", outs(folder), 1)
        return
    with monkeypatch.context() as patch:
        patch.setattr(*STOPS[where], stopping)
        with pytest.raises(KeyboardInterrupt):
            put(folder / "state", 2, outs(folder))


CASES = [("a unit", how) for how in DAMAGES]
CASES += [(before, how) for before in ("nothing", "a unit that cannot be exchanged") for how in ("empty", "cut")]


@pytest.mark.parametrize("where", STOPS)
@pytest.mark.parametrize(("before", "how"), CASES)
def test_a_commit_whose_journal_is_damaged_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, how: str, before: str
) -> None:
    if "exchanged" in before:
        monkeypatch.setattr(atomic_files, "exchange", lambda *_: False)
    if before != "nothing":
        put(tmp_path / "state", 1, outs(tmp_path))
    stop_at(monkeypatch, tmp_path, where)
    spoil(tmp_path / "state/.journal.json", how)
    view = read_state(str(tmp_path / "state"))
    assert view.pending == (None if where == "all in place" else "u0")
    with open_state(str(tmp_path / "state"), ME) as state:
        waits = (
            "no unit waits to be put in place"
            if view.pending is None
            else "it was made anew from the unit that it named"
        )
        assert f"the journal of the state {tmp_path}/state was damaged; {waits}" in " ".join(state.notes)
    assert settled(tmp_path) == 2


def test_also_between_the_two_renames_of_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "state", 1, outs(tmp_path))
    stop_at(monkeypatch, tmp_path, "outputs in place")
    (staged,) = (tmp_path / "state").glob(".new-*")
    (tmp_path / "state/u0").rename(staged.with_name(staged.name.replace("new", "old")))
    spoil(tmp_path / "state/.journal.json", "empty")
    with open_state(str(tmp_path / "state"), ME):
        pass
    assert settled(tmp_path) == 2


def test_damaged_journal_with_lost_files_is_reported_and_the_unit_is_not_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "state", 1, outs(tmp_path))
    stop(monkeypatch, tmp_path / "state", outs(tmp_path), 0)
    spoil(tmp_path / "state/.journal.json", "cut")
    (staged,) = tmp_path.glob(".b.wincli-new-*")
    staged.rename(tmp_path / "elsewhere")
    with open_state(str(tmp_path / "state"), ME) as state:
        assert f"its part of {tmp_path}/b is gone: it counts as not done" in state.notes[1]
        assert state_value(state) == 1
    assert [value_of(out) for out in outs(tmp_path)] == [1, 1]


def test_damaged_journal_and_staged_unit_give_an_error_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "state", 1, outs(tmp_path))
    stop(monkeypatch, tmp_path / "state", outs(tmp_path), 1)
    (staged,) = (tmp_path / "state").glob(".new-*")
    spoil(tmp_path / "state/.journal.json", "cut")
    spoil(staged / "unit.json", "cut")
    before = tree(tmp_path)
    said = (
        f"{tmp_path}/state/.journal.json is damaged, and no staged unit shows what it held; delete it to give its unit "
        "up, look what is in the outputs of that, and run it again with --mode overwrite"
    )
    with pytest.raises(DamagedError, match=f"^{re.escape(said)}$"):
        open_state(str(tmp_path / "state"), ME).__enter__()
    assert tree(tmp_path) == before
    assert read_state(str(tmp_path / "state")).damage == (said,)
    (tmp_path / "state/.journal.json").unlink()
    put(tmp_path / "state", 3, outs(tmp_path))
    assert settled(tmp_path) == 3


def test_a_journal_without_a_checksum_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As 0.4.1 wrote it: a run of that version may have been killed before the upgrade."""
    put(tmp_path / "state", 1, outs(tmp_path))
    stop(monkeypatch, tmp_path / "state", outs(tmp_path), 1)
    path = tmp_path / "state/.journal.json"
    told = json.loads(path.read_text())
    del told["checksum"]
    path.write_text(json.dumps(told))
    with open_state(str(tmp_path / "state"), ME) as state:
        assert "has been put in place" in state.notes[0]
    assert settled(tmp_path) == 2


@pytest.mark.parametrize("how", DAMAGES)
def test_damaged_note_of_the_unit_in_progress_is_reported_and_dropped(tmp_path: Path, how: str) -> None:
    root = tmp_path / "state"
    put(root, 1, outs(tmp_path))
    (root / ".running.json").write_text(json.dumps(seal({"unit": "u1", "outputs": [{"shown": "a", "path": "/a"}]})))
    if how in {f"bit {bit}" for bit in (0, 149, 596, 1043)} and int(how[4:]) > 600:
        how = "cut"
    spoil(root / ".running.json", how)
    said = (
        f"{root}/.running.json is damaged: it is not what was written there; the next run to the same outputs removes"
    )
    (line,) = read_state(str(root)).damage
    assert line.startswith(said)
    with open_state(str(root), ME) as state:
        (note,) = state.notes
        assert note.startswith(said)
    assert settled(tmp_path) == 1


@pytest.mark.parametrize("how", ["empty", "cut", "garbage", "nested", "nothing in it"])
def test_a_damaged_last_error_stops_no_commit(tmp_path: Path, how: str) -> None:
    root = tmp_path / "state"
    with open_state(str(root), ME) as state:
        state.fail("u7", "no space", "2026-11-08")
    spoil(root / ".last-error.json", how)
    view = read_state(str(root))
    assert view.last_error is None
    assert view.damage[0].startswith(f"{root}/.last-error.json is damaged: it is not what was written there; the next")
    put(root, 1)
    assert names(root) == [".wincli-state", "u0"]
    assert read_state(str(root)).damage == ()


@pytest.mark.parametrize("how", ["empty", "cut", "garbage", "no object", "nothing in it", "nested", "bit 149"])
def test_damaged_marker_gives_an_error_with_its_right_content(tmp_path: Path, how: str) -> None:
    root = tmp_path / "state"
    put(root, 1)
    spoil(root / ".wincli-state", how)
    said = f'{root}/.wincli-state is damaged: it is not what was written there; write {{"format": 1}} into it'
    for look in (lambda: open_state(str(root), ME).__enter__(), lambda: read_state(str(root))):
        with pytest.raises(DamagedError, match=f"^{re.escape(said)}$"):
            look()
    (root / ".wincli-state").write_text('{"format": 1}')
    with open_state(str(root), ME) as state:
        assert state_value(state) == 1


def test_a_folder_where_a_file_should_be(tmp_path: Path) -> None:
    put(tmp_path / "state", 1)
    (tmp_path / "state/.last-error.json").mkdir()
    (line,) = read_state(str(tmp_path / "state")).damage
    assert line.startswith(f"cannot read {tmp_path}/state/.last-error.json: ")


# Locks


GARBAGE = [b"x", b"[]", b"{}", b"[" * 100_000, b'{"pid": 1e999, "host": "here", "started": "now"}', b"\xff"]
GARBAGE += [f'{{"pid": {pid}, "host": "here", "started": "now"}}'.encode() for pid in (0, -1, 10**30, '"7x"')]


@pytest.mark.parametrize("content", GARBAGE, ids=range(len(GARBAGE)))
def test_a_lock_file_of_a_dead_run_may_hold_anything(tmp_path: Path, content: bytes) -> None:
    put(tmp_path / "state", 1)
    (tmp_path / "state/.wincli-lock").write_bytes(content)
    assert read_owner(str(tmp_path / "state/.wincli-lock")) is None
    with open_state(str(tmp_path / "state"), ME) as state:
        assert state.notes == ()
    assert names(tmp_path / "state") == [".wincli-state", "u0"]


@pytest.mark.parametrize("content", GARBAGE, ids=range(len(GARBAGE)))
def test_a_mark_that_does_not_read_is_not_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    """Where there is no flock the mark is all that tells of another run."""
    monkeypatch.setattr("wincli.writers.places.lock._acquire", lambda _: -1)
    out = place.locate(str(tmp_path / "out"))
    Path(out.lock).write_bytes(content)
    said = (
        f"the lock {out.lock} does not say which run holds it; nothing was written; delete it if no run is writing to"
    )
    with pytest.raises(OutputError, match=f"^{re.escape(said)}"), hold_lock(Lock(out.fs, out.lock, "out", "wait"), ME):
        pass
    assert Path(out.lock).read_bytes() == content


def test_a_damaged_state_is_no_reason_to_touch_an_output(tmp_path: Path) -> None:
    put(tmp_path / "state", 1, outs(tmp_path))
    spoil(tmp_path / "state/u0/unit.json", "bit 149")
    before = tree(tmp_path)
    with pytest.raises((DamagedError, ConfigError)):
        put(tmp_path / "state", 2, outs(tmp_path))
    assert tree(tmp_path) == before
    with open_output(str(tmp_path / "a"), "overwrite", [], ME):
        pass
    assert tree(tmp_path) == before
