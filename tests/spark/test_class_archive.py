"""The archive of Java's classes, made by a real Java and used by the next."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.places import ROOT
from wincli.conf.spark import spark_settings
from wincli.windowing.spark.class_archive import SWITCH, archive_of
from wincli.windowing.spark.java import find_java

_USE = """
from wincli.conf.spark import spark_settings
from pathlib import Path
from wincli.windowing.spark.boot import start
import psutil
with start("local[2]", {}, spark_settings("local[2]", {})) as running:
    java = next(each for each in psutil.Process().children() if each.name() == "java")
    files = {Path(each.path).name for each in java.memory_maps() if each.path.endswith(".jsa")}
    print(len(running.map("use", len, ["ab"])), sorted(files))
"""


def python(*args: str, told: str = "", **environ: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environ}
    command = [sys.executable, *args]
    done = subprocess.run(command, env=env, input=told, text=True, capture_output=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.nightly  # a minute and more: Java writes 80 MB of classes
def test_an_archive_is_made_by_a_spark_of_its_own_and_mapped_by_the_next(tmp_path: Path) -> None:
    settings = spark_settings("local[2]", {})
    home = {"XDG_CACHE_HOME": str(tmp_path)}
    archive = archive_of(find_java(os.environ), settings, {**os.environ, **home, SWITCH: ""})
    assert archive is not None
    asked = {"folder": str(archive.folder), "key": archive.key, "ahead": archive.ahead, "settings": settings}
    python("-m", "wincli.windowing.spark.class_archive_training", told=json.dumps(asked), **{SWITCH: "off"})
    [size] = archive.sizes()
    assert size > 1 << 20
    name = archive.path_for(size).name
    assert name in python("-c", _USE, **home, **{SWITCH: ""})
    assert name not in python("-c", _USE, **home, **{SWITCH: "off"})
