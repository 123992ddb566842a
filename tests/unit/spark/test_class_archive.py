"""The archive of Java's classes: where it lies, when it is used, how one is put in place. No Java is started here."""

from __future__ import annotations

import fcntl
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from wincli.windowing.errors import SparkError
from wincli.windowing.spark.class_archive import SWITCH, Archive, archive_of, cache_folder
from wincli.windowing.spark.class_archive_training import make
from wincli.windowing.spark.java import OPTIONS, Java, command


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path / "cache", "k", ahead=False)


def java(tmp_path: Path, version: int = 17) -> Java:
    path = tmp_path / "java"
    path.touch()
    return Java(str(path), version, "PATH")


def put(archive: Archive, text: str) -> None:
    """Make an archive of this text."""
    make(archive, lambda target: target.write_text(text))


def files(archive: Archive) -> list[str]:
    return sorted(path.name for path in archive.folder.glob("*.jsa"))


def test_the_cache_is_where_the_user_keeps_caches() -> None:
    assert cache_folder({"XDG_CACHE_HOME": "/c", "HOME": "/h"}) == Path("/c/wincli")
    assert cache_folder({"XDG_CACHE_HOME": "relative", "HOME": "/h"}) == Path("/h/.cache/wincli")
    assert cache_folder({"HOME": "/h"}) == Path("/h/.cache/wincli")
    assert cache_folder({}) is None
    assert cache_folder({"HOME": "/h", SWITCH: "off"}) is None


def test_an_archive_is_of_one_java_and_one_class_path(tmp_path: Path) -> None:
    home, one = {"HOME": str(tmp_path)}, java(tmp_path)
    found = archive_of(one, {}, home)
    assert found == archive_of(one, {"spark.ui.enabled": "true"}, home)
    assert found is not None
    other = archive_of(one, {"spark.driver.extraClassPath": "/a.jar"}, home)
    assert other is not None
    assert other.key != found.key
    os.utime(one.path, ns=(1, 1))  # another Java in its place
    assert archive_of(one, {}, home) != found
    newer = archive_of(java(tmp_path, 25), {}, home)
    assert newer is not None
    assert (found.ahead, newer.ahead) == (False, True)


@pytest.mark.parametrize("option", ["-Xshare:off", "-XX:SharedArchiveFile=/mine", "-XX:AOTCache=/mine"])
def test_the_users_own_archive_is_the_users(tmp_path: Path, option: str) -> None:
    home, one = {"HOME": str(tmp_path)}, java(tmp_path)
    assert archive_of(one, {"spark.driver.extraJavaOptions": f"-Da=b {option}"}, home) is None
    assert archive_of(one, {}, {**home, "JDK_JAVA_OPTIONS": option}) is None
    assert archive_of(one, {"spark.driver.extraJavaOptions": "-Da=b"}, home) is not None


@pytest.mark.parametrize(
    ("ahead", "use", "write"),
    [(False, "SharedArchiveFile", "ArchiveClassesAtExit"), (True, "AOTCache", "AOTCacheOutput")],  # a later Java
)
def test_what_is_made_is_read(archive: Archive, ahead: bool, use: str, write: str) -> None:
    archive = replace(archive, ahead=ahead)
    assert archive.use_options() == ()
    assert archive.is_due()
    put(archive, "classes")
    assert files(archive) == ["java-k-7.jsa"]
    assert archive.use_options() == (f"-XX:{use}={archive.folder}/java-k-7.jsa", "-Xlog:disable")
    assert list(archive.write_options(Path("/t"))) == [f"-XX:{write}=/t"]
    assert not archive.is_due()
    assert archive.folder.stat().st_mode & 0o777 == 0o700


def test_an_archive_cut_short_is_not_read_and_made_again(archive: Archive) -> None:
    put(archive, "classes")
    (archive.folder / "java-k-7.jsa").write_text("cla")
    assert archive.use_options() == ()
    assert archive.is_due()
    put(archive, "class")
    assert files(archive) == ["java-k-5.jsa"]


def test_where_none_can_be_made_one_is_tried_a_day_later(archive: Archive) -> None:
    """Else one bad hour of a machine would make all later runs slow."""

    def fail(target: Path) -> None:
        target.write_text("half")
        raise SparkError("Java ended", None)

    for write in (fail, lambda _: None):  # Java has ended, or has written none
        archive.path_for(0).unlink(missing_ok=True)
        make(archive, write)
        assert files(archive) == ["java-k-0.jsa"]
    assert archive.use_options() == ()
    assert not archive.is_due()
    make(archive, lambda _: pytest.fail("tried again"))
    yesterday = time.time() - 2 * 86_400
    os.utime(archive.folder / "java-k-0.jsa", (yesterday, yesterday))
    assert archive.is_due()
    put(archive, "classes")
    assert archive.use_options()[0] == f"-XX:SharedArchiveFile={archive.folder}/java-k-7.jsa"
    assert not archive.is_due()


def test_a_maker_that_is_stopped_leaves_the_archive_to_be_made(archive: Archive) -> None:
    def stop(target: Path) -> None:
        target.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(archive, stop)
    assert archive.is_due()
    put(archive, "classes")
    assert files(archive) == ["java-k-7.jsa"]


def test_only_one_process_makes_archives(archive: Archive) -> None:
    archive.folder.mkdir()
    with (archive.folder / "making.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        make(archive, lambda _: pytest.fail("another is about it"))
    assert files(archive) == []


def test_the_archives_used_or_made_last_are_kept(archive: Archive) -> None:
    archive.folder.mkdir()
    for key, used, made in [("a", 1, 1), ("b", 9, 2), ("c", 3, 3), ("d", 4, 4)]:
        path = Archive(archive.folder, key, ahead=False).path_for(1)
        path.write_text(key)
        os.utime(path, (used, made))
    (archive.folder / "java-e-0.jsa").touch()
    put(archive, "k")
    assert files(archive) == ["java-b-1.jsa", "java-d-1.jsa", "java-e-0.jsa", "java-k-1.jsa"]


def test_none_is_due_where_it_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert not Archive(tmp_path / "file" / "wincli", "k", ahead=False).is_due()


def test_options_of_the_user_go_over_those_of_an_archive(tmp_path: Path) -> None:
    line = command(java(tmp_path), {"spark.driver.extraJavaOptions": "-Xlog:gc"}, {}, tmp_path, ["-Xlog:disable"])
    assert line.index("-Xlog:disable") < line.index(f"@{tmp_path / OPTIONS}")
