"""Folders that other users can write to are not used for what is run. Root plays the others; else rights alone do."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wincli.windowing.errors import SparkError
from wincli.windowing.spark.class_archive import Archive
from wincli.windowing.spark.class_archive_training import make
from wincli.windowing.spark.setup import make_setup, remove
from wincli.windowing.support.trusted_folders import planted, way_in, way_in_beside

STRANGER = 54321


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Path]:
    """A folder of ours that nobody else can write to, nor to any that holds it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def belongs_to_another(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Give a path to another user; where only root may do that, say so of it wherever it is looked at."""
    given: set[str] = set()
    look = Path.lstat

    def lstat(path: Path) -> os.stat_result:
        found = look(path)
        return os.stat_result((*found[:4], STRANGER, *found[5:])) if str(path) in given else found

    def give(path: Path) -> None:
        if os.geteuid() == 0:
            os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
        else:
            given.add(str(path))

    monkeypatch.setattr(Path, "lstat", lstat)
    return give


def test_folder_that_others_can_write_to_is_reported_and_so_is_what_stands_in_it(own: Path) -> None:
    (own / "cache" / "wincli").mkdir(parents=True)
    assert way_in(own) is way_in(own / "new" / "one") is way_in(own / "cache" / "wincli") is None
    own.chmod(0o777)
    assert way_in(own / "cache" / "wincli") == f"others can write to {own}"
    assert way_in(own) == f"others can write to {own}"
    own.chmod(0o1777)
    assert way_in(own) == f"others can write to {own}"  # they cannot touch what is there, but add to it
    assert way_in(own, may_be_shared=True) is None
    assert way_in(own / "wincli") is None


def test_a_group_is_others_unless_it_is_the_users_own(own: Path) -> None:
    own.chmod(0o775)
    assert own.stat().st_gid == own.stat().st_uid or os.geteuid() != 0
    found = way_in(own)
    assert (found is None) == (own.stat().st_gid == own.stat().st_uid)


def test_folder_of_another_user_is_reported(own: Path, belongs_to_another: Callable[[Path], None]) -> None:
    (own / "wincli").mkdir()
    belongs_to_another(own / "wincli")
    assert way_in(own / "wincli") == f"{own / 'wincli'} belongs to another user ({STRANGER})"
    assert way_in(own / "wincli" / "in it") == f"{own / 'wincli'} belongs to another user ({STRANGER})"


def test_link_is_trusted_by_its_owner_and_its_target(own: Path, belongs_to_another: Callable[[Path], None]) -> None:
    (own / "real").mkdir()
    (own / "link").symlink_to(own / "real")
    assert way_in(own / "link") is None
    (own / "real").chmod(0o777)
    assert way_in(own / "link") == f"others can write to {own / 'real'}"
    (own / "real").chmod(0o700)
    belongs_to_another(own / "link")
    assert way_in(own / "link") == f"{own / 'link'} belongs to another user ({STRANGER})"


def test_files_are_ours_to_the_last(own: Path, belongs_to_another: Callable[[Path], None]) -> None:
    paths = [own / name for name in ("a.nbi", "b.nbi")]
    for path in paths:
        path.write_text("")
    assert planted(paths) is None
    paths[1].chmod(0o666)
    assert planted(paths) == f"others can write to {paths[1]}"
    paths[1].chmod(0o644)
    belongs_to_another(paths[0])
    assert planted(paths) == f"{paths[0]} belongs to another user ({STRANGER})"
    assert planted(paths, STRANGER) is None
    paths[0].unlink()
    paths[0].symlink_to(paths[1])
    assert planted(paths) == f"{paths[0]} is no file"


def test_a_folder_beside_code_is_open_where_the_code_is_not(
    own: Path, belongs_to_another: Callable[[Path], None]
) -> None:
    code, cache = own / "code.py", own / "__pycache__"
    code.write_text("")
    assert way_in_beside(code, cache) is None
    cache.mkdir()
    assert way_in_beside(code, cache) is None
    cache.chmod(0o777)
    assert way_in_beside(code, cache) == f"others can write to {cache}"
    own.chmod(0o777)
    assert way_in_beside(code, cache) is None  # who can write there can write the code
    own.chmod(0o700)
    belongs_to_another(cache)
    assert way_in_beside(code, cache) == f"{cache} belongs to another user ({STRANGER})"


def test_no_archive_is_read_or_made_where_others_can_write_nor_read_that_is_a_link_or_of_another(
    own: Path, belongs_to_another: Callable[[Path], None]
) -> None:
    archive = Archive(own / "wincli", "k", ahead=False)
    make(archive, lambda target: target.write_text("classes"))
    assert archive.use_options() != ()
    archive.folder.chmod(0o777)
    assert archive.use_options() == ()
    archive.folder.chmod(0o700)
    archive.path_for(7).rename(own / "elsewhere")
    archive.path_for(7).symlink_to(own / "elsewhere")
    assert archive.use_options() == ()
    archive.path_for(7).unlink()
    archive.folder.chmod(0o777)
    assert not archive.is_due()
    make(archive, lambda _: pytest.fail("made where others can write"))
    archive.folder.chmod(0o700)
    assert archive.is_due()
    make(archive, lambda target: target.write_text("classes"))
    belongs_to_another(archive.path_for(7))
    assert archive.use_options() == ()
    assert archive.refusal() == f"{archive.path_for(7)} belongs to another user ({STRANGER})"


def test_temporary_files_go_where_nobody_can_replace_them(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own.chmod(0o777)
    monkeypatch.setattr(tempfile, "tempdir", str(own))
    setup = make_setup("local[1]", {}, {})
    try:
        assert own not in setup.folder.parents
        assert stat.S_IMODE(setup.folder.stat().st_mode) == 0o700
        (note,) = setup.notes
        assert note.endswith(f"for others can write to {own}; name a folder of your own: TMPDIR=FOLDER")
    finally:
        remove(setup)
    own.chmod(0o1777)
    setup = make_setup("local[1]", {}, {})
    remove(setup)
    assert (setup.folder.parent, setup.notes) == (own, ())


def test_a_folder_that_is_named_for_temporary_files_must_not_be_open(own: Path) -> None:
    own.chmod(0o777)
    with pytest.raises(SparkError) as caught:
        make_setup("local[1]", {"spark.local.dir": str(own)}, {})
    assert caught.value.what == f"others could replace temporary files, for others can write to {own}"
    assert caught.value.do == "chmod +t helps, or name a folder of your own with spark.local.dir"
