"""Files that change while they are read: an error that names the file, never rows of two versions."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from pyarrow import fs

from support.readers import put, read_all, source
from wincli.readers.files.file import Located, check_all
from wincli.readers.files.listing import list_files
from wincli.readers.order_ranges import SourceRange, merge
from wincli.windowing.errors import InputError
from wincli.windowing.rows.projection import RowExpressions

FORMS = ("csv", "csv.gz", "jsonl", "jsonl.gz", "parquet")
CHANGED = r"in/b\.{} has changed since the run began; run it again when nothing writes to it"


def write(path: Path, value: int) -> None:
    """Write rows of one value in the format of the name; whatever the value, of the same size."""
    options = {"compression": "none", "use_dictionary": False} if path.suffix == ".parquet" else {}
    put(path, {"a": [value] * 3}, **options)


def replace_later(path: Path) -> None:
    """Put another file of the same size in its place, as `mv` does: only the time differs, by a nanosecond."""
    was = path.stat()
    other = path.with_name(f".{path.name}")
    write(other, 2)
    assert other.stat().st_size == was.st_size
    os.utime(other, ns=(was.st_mtime_ns, was.st_mtime_ns + 1))
    other.rename(path)


def resize(path: Path, by: int) -> None:
    was = path.stat()
    os.truncate(path, was.st_size + by)
    os.utime(path, ns=(was.st_mtime_ns, was.st_mtime_ns))


CHANGES: tuple[Callable[[Path], None], ...] = (replace_later, partial(resize, by=2), partial(resize, by=-2))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    return Path("in")


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_changes_or_vanishes_after_it_was_listed_is_not_read(folder: Path, form: str) -> None:
    gone = r"in/b\.\S+ is not there any more; run it again when nothing changes"
    changed = CHANGED.format(form.replace(".", r"\."))
    for change, message in (*((change, changed) for change in CHANGES), (Path.unlink, gone)):
        for name in ("a", "b"):
            write(folder / f"{name}.{form}", 1)
        opened = source("in")
        assert [row["a"] for row in read_all(opened).rows] == [1] * 6
        opened.check_unchanged()
        change(folder / f"b.{form}")
        joint = merge([SourceRange(opened)], RowExpressions())
        for act in (partial(read_all, opened), opened.check_unchanged, joint.check_unchanged):
            with pytest.raises(InputError, match=message):
                act()


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_changes_between_two_looks_at_it_is_not_read(
    folder: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text is gone through for types, then read; of Parquet footers are read first: each opens the file anew."""
    write(folder / f"b.{form}", 1)
    compare = Located._compare

    def changed_meanwhile(place: Located, size: int, mtime_ns: int | None) -> None:
        compare(place, size, mtime_ns)
        replace_later(folder / f"b.{form}")

    monkeypatch.setattr(Located, "_compare", changed_meanwhile)
    with pytest.raises(InputError, match=CHANGED.format(form.replace(".", r"\."))):
        read_all(source("in"))


def test_what_is_opened_may_be_replaced_only_before_that_is_looked_at(folder: Path) -> None:
    write(folder / "b.csv", 1)
    place = list_files(["in"]).files[0].place
    assert place.open_file().read() == b"a\n1\n1\n1\n"
    replace_later(folder / "b.csv")
    with pytest.raises(InputError, match="has changed"):
        place.open_file()
    with pytest.raises(InputError, match="has changed"):
        place.open_stream()


def test_files_of_a_store_are_compared_by_the_second_and_folder_by_folder(folder: Path, tmp_path: Path) -> None:
    """Some stores tell less of the time of a file that is asked for than of one in a list."""
    store = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    names = [f"{at:02}.csv" for at in range(20)]
    for name in names:
        write(folder / name, 1)
        os.utime(folder / name, ns=(0, 7 * 10**9 + 999))
    infos = sorted(store.get_file_info(fs.FileSelector("in")), key=lambda info: info.path)
    places = [Located(store, info.path, info.path, info.size, info.mtime_ns // 10**9 * 10**9) for info in infos]
    for few in (places, places[:3]):
        check_all(few)
        few[0].open_file().close()
    os.utime(folder / "02.csv", ns=(0, 8 * 10**9))
    for few in (places, places[:3]):
        with pytest.raises(InputError, match=r"in/02\.csv has changed"):
            check_all(few)
    (folder / "01.csv").unlink()
    for few in (places, places[:3]):
        with pytest.raises(InputError, match=r"in/01\.csv is not there any more"):
            check_all(few)


def test_modification_times_of_files_are_those_of_arrow(folder: Path) -> None:
    """Records of earlier versions hold what Arrow told: files must be known by it again."""
    write(folder / "b.csv", 1)
    for ns in (0, 1, 999, 1_234_567_890_123_456_789, 1_763_800_000_999_999_999, 1_763_800_000_000_000_500):
        os.utime(folder / "b.csv", ns=(ns, ns))
        told = fs.LocalFileSystem().get_file_info("in/b.csv").mtime.isoformat()
        assert list_files(["in"]).files[0].mtime == told
