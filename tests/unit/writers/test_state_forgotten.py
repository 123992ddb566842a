"""Units taken out of a state: all of them in one step, in a folder and in a store, whatever kills the command."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from support.numbered_units import DEAD, ME, names, run_unit, state_value
from support.quick_store import URI, KilledError, QuickStore, killed_at, use
from wincli.windowing.errors import DamagedError
from wincli.writers.state import local_storage
from wincli.writers.state.layout import FORGOTTEN, RECORD
from wincli.writers.state.state import open_state, read_state, state_without_lock


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
