"""A state is opened by one run at a time, in a folder of its own, and cleaned up after those that were killed."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from support.numbered_units import ME, names, put, result, tree, value_of
from wincli.windowing.errors import ConfigError, OutputError
from wincli.writers.commit import tables
from wincli.writers.output.output import open_output
from wincli.writers.places.lock import Owner, age, is_dead
from wincli.writers.state.layout import is_state
from wincli.writers.state.state import open_state, read_state

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


def test_the_second_run_refuses_and_names_the_first(tmp_path: Path) -> None:
    root = tmp_path / "st"
    with other_run(root):
        before = tree(root)
        said = (
            f"another run is writing to the state {root} (process 4242 on box7, started 2026-11-07T22:47:30+00:00, "
            "3 h 12 min ago); nothing was written; wait for it to end, or choose another state"
        )
        with pytest.raises(OutputError, match=f"^{re.escape(said)}$"):
            open_state(str(root), ME).__enter__()
        assert tree(root) == before
    assert names(root) == [".wincli-state"]


def test_lock_of_a_killed_run_is_taken_over_with_a_note(tmp_path: Path) -> None:
    root, outs = tmp_path / "st", [tmp_path / "a", tmp_path / "new/b"]
    killed_run(root, *outs)
    assert len(names(root)) == 4
    assert len(names(tmp_path)) == 4
    with open_state(str(root), ME) as state:
        said = "process 4242 on box7, started 2026-11-07T22:47:30+00:00, 3 h 12 min ago"
        assert state.notes == (f"took the state {root} over from a run that died ({said})",)
        assert state.records == ()
        assert names(root) == [".wincli-lock", ".wincli-state"]
    assert names(tmp_path) == ["new", "st"]
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


def test_an_output_whose_folder_is_gone_needs_no_cleaning(tmp_path: Path) -> None:
    killed_run(tmp_path / "st", tmp_path / "gone/out")
    (tmp_path / "gone").rename(tmp_path / "elsewhere")
    with open_state(str(tmp_path / "st"), ME) as state:
        assert len(state.notes) == 1
    assert not (tmp_path / "gone").exists()


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
    for path in ("new/st", "empty"):
        with open_state(str(tmp_path / path), ME) as state:
            assert state.records == ()
            assert state.notes == ()
        assert names(tmp_path / path) == [".wincli-state"]
        assert is_state(str(tmp_path / path))


def test_a_state_may_be_a_link_or_a_file_uri(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("real")
    put(tmp_path / "link", 1)
    assert (tmp_path / "link").is_symlink()
    with open_state(f"file://{tmp_path}/real", ME) as state:
        assert len(state.records) == 1


def test_what_a_kill_before_the_marker_left_is_no_obstacle(tmp_path: Path) -> None:
    for name in (".wincli-lock", ".wincli-state.half"):
        (tmp_path / name).write_text("")
    with open_state(str(tmp_path), ME):
        pass
    assert names(tmp_path) == [".wincli-state"]


def test_a_folder_of_other_data_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(ConfigError, match=r"is not empty and is not a state of wincli; nothing was touched; choose an"):
        open_state(str(tmp_path), ME).__enter__()
    assert not is_state(str(tmp_path))
    with pytest.raises(ConfigError, match=r"thesis\.tex is not a folder; name a folder"):
        open_state(str(tmp_path / "thesis.tex"), ME).__enter__()
    assert names(tmp_path) == ["thesis.tex"]


def test_a_state_of_a_newer_version_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / ".wincli-state").write_text('{"format": 2}')
    for open_it in (lambda: open_state(str(tmp_path), ME).__enter__(), lambda: read_state(str(tmp_path))):
        with pytest.raises(ConfigError, match="was written by a newer wincli: it has format 2, and this one knows 1"):
            open_it()
    assert names(tmp_path) == [".wincli-state"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("", "the path of the state is empty; name a folder for it"),
        ("s3://lake", "the state s3://lake is the root of a store; name a folder inside it"),
        (
            "hdfs://host/st",
            "states are kept in local folders and on s3://, gs:// and abfs:// only, not on hdfs://host/",
        ),
        ("gopher://x/y", "states are kept in local folders and on s3://, gs:// and abfs:// only"),
    ],
)
def test_paths_that_cannot_be_a_state(path: str, said: str) -> None:
    for open_it in (lambda: open_state(path, ME).__enter__(), lambda: read_state(path)):
        with pytest.raises(ConfigError, match=said):
            open_it()


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"^cannot write the state .*: the name is too long; nothing was written"):
        open_state(f"{tmp_path}/a/{'x' * 256}", ME).__enter__()
    assert names(tmp_path) == []


# Looking without touching


def test_a_look_at_a_state_that_is_at_work(tmp_path: Path) -> None:
    root, out = tmp_path / "st", tmp_path / "out"
    record = put(root, 1)
    with other_run(root, out):
        before = tree(tmp_path)
        view = read_state(str(root))
        assert tree(tmp_path) == before
        assert view.records == (record,)
        assert view.owner == BOX
        assert (view.pending, view.running, view.last_error) == (None, "u5", None)
    after = read_state(str(root))
    assert (after.records, after.owner, after.running) == ((record,), None, None)
    assert value_of(out) is None


def test_a_look_at_the_last_error(tmp_path: Path) -> None:
    with open_state(str(tmp_path / "st"), ME) as state:
        state.fail("u3", "no space", "2026-11-08")
    view = read_state(str(tmp_path / "st"))
    assert view.last_error == {"when": "2026-11-08", "unit": "u3", "message": "no space"}


def test_there_is_no_state_to_look_at(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(ConfigError, match=r"there is no state in .*; name the folder that --state names"):
            read_state(str(path))
    assert names(tmp_path) == []


def test_whether_an_owner_still_lives(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert not is_dead(Owner(os.getpid(), "here", "now"), "here")
    assert is_dead(Owner(ended.pid, "here", "now"), "here")
    assert not is_dead(Owner(ended.pid, "there", "now"), "here")
