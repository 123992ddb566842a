"""Spark on one machine: what its processes are told, and what it takes to get in. No Spark is started here."""

from __future__ import annotations

import errno
import json
import os
import resource
import sys
from pathlib import Path

import pytest

import wincli.cli.launch
from support.in_process import Session, wincli_here
from wincli.windowing.errors import ConfigError, SparkError
from wincli.windowing.spark.setup import (
    NEEDED,
    allow_open_files,
    closed_to_others,
    cluster_environment,
    is_local,
    is_small_cluster,
    java_environment,
    make_setup,
    remove,
)
from wincli.windowing.support.modules import FOLDER, MORE, pass_path_to_workers

CLUSTER = "local-cluster[2, 1, 1024]"


@pytest.mark.parametrize(
    ("master", "local", "small"),
    [
        ("local", True, False),
        ("local[*]", True, False),
        ("local[2,3]", True, False),
        (CLUSTER, False, True),
        ("spark://h:1", False, False),
        ("yarn", False, False),
    ],
)
def test_a_spark_on_one_machine_asks_for_its_secret_and_a_cluster_is_as_it_was_set_up(
    master: str, local: bool, small: bool
) -> None:
    assert (is_local(master), is_small_cluster(master)) == (local, small)
    if not local and not small:
        assert closed_to_others(master, {"spark.authenticate": "false"}) == closed_to_others(master, {}) == {}
        return
    assert closed_to_others(master, {})["spark.authenticate"] == "true"
    with pytest.raises(ConfigError, match=r"spark\.authenticate cannot be switched off on one machine"):
        closed_to_others(master, {"spark.authenticate": " False"})


def test_a_cluster_in_miniature_has_a_secret_of_each_run_or_the_users() -> None:
    one, other = (closed_to_others(CLUSTER, {})["spark.authenticate.secret"] for _ in range(2))
    assert len(one) == 64
    assert one != other
    assert closed_to_others(CLUSTER, {"spark.authenticate.secret": "mine"})["spark.authenticate.secret"] == "mine"
    assert "spark.authenticate.secret" not in closed_to_others("local[2]", {})  # Spark makes one, in memory


def test_only_the_user_reads_the_file_with_the_secret() -> None:
    setup = make_setup(CLUSTER, {}, {})
    try:
        assert setup.folder.stat().st_mode & 0o077 == 0
        assert not any(
            setup.settings["spark.authenticate.secret"] in value for value in java_environment(setup).values()
        )
    finally:
        remove(setup)


def test_the_version_of_scala_is_that_of_the_jars(tmp_path: Path) -> None:
    home, folder, environ = tmp_path / "a spark", tmp_path / "run", {"SPARK_LOCAL_IP": "10.0.0.1"}
    (home / "jars").mkdir(parents=True)
    folder.mkdir()
    (home / "jars" / "spark-core_2.14-9.0.0.jar").touch()
    cluster_environment(environ, home, folder)
    assert environ["SPARK_SCALA_VERSION"] == "2.14"
    assert environ["SPARK_LOCAL_IP"] == "10.0.0.1"  # the user's own
    assert (Path(environ["SPARK_HOME"]) / "jars" / "spark-core_2.14-9.0.0.jar").exists()
    with pytest.raises(SparkError, match=r"no Spark in .*/none/jars: there is no spark-core"):
        cluster_environment({}, tmp_path / "none", tmp_path)


def test_workers_get_no_working_folder_by_way_of_their_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), "/elsewhere"])
    environ = {"PYTHONPATH": ":/named::lib"}
    pass_path_to_workers(environ)
    named = environ["PYTHONPATH"].split(os.pathsep)
    assert named[:2] == ["/named", str(tmp_path / "lib")]
    assert "" not in named
    assert str(tmp_path) not in named
    assert json.loads(environ[MORE]) == ["/elsewhere"]
    assert environ["PYTHONSAFEPATH"] == "1"
    assert FOLDER not in environ


def test_a_working_folder_that_pythonpath_names_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), "/elsewhere"])
    environ = {"PYTHONPATH": "."}
    pass_path_to_workers(environ)
    assert json.loads(environ[MORE]) == [str(tmp_path), "/elsewhere"]


def test_a_limit_that_may_be_raised_is(monkeypatch: pytest.MonkeyPatch) -> None:
    limits, infinity = [0, 0], resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(limits))
    monkeypatch.setattr(resource, "setrlimit", lambda _, asked: limits.__setitem__(slice(None), asked))
    for before, after in (((64, NEEDED), NEEDED), ((64, infinity), NEEDED), ((infinity, infinity), infinity)):
        limits[:] = before
        allow_open_files()
        assert limits == [after, before[1]]
    limits[:] = [64, 65]
    with pytest.raises(SparkError, match="too few files may be open at once: 64, and Spark needs 512 or more"):
        allow_open_files()


def test_too_many_open_files_in_the_driver_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_many(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files", "in/a.csv")

    monkeypatch.setattr(wincli.cli.launch, "_forks", too_many)
    ran = wincli_here("run", "-w", "count(2)", "in", "out", cwd=tmp_path)
    assert ran.code == 5
    assert ran.err.startswith("wincli: error: too few files may be open at once: ")


def test_cluster_without_authentication_is_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n2\n")
    told = "Spark takes messages from anyone who reaches its ports: this cluster has spark.authenticate off"
    args = ("run", "--master", "local[1]", "-w", "count(2)", "a.csv")
    assert told not in wincli_here(*args, "out", cwd=tmp_path).err
    monkeypatch.setattr(Session, "is_open", True)
    assert wincli_here(*args, "open", cwd=tmp_path).err.count(f"wincli: note: {told}\n") == 1
