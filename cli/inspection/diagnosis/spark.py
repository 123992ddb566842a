"""Java, which one and why, and Spark: whether it starts and runs a task."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping

from ....conf.spark import spark_settings
from ....windowing.spark.boot import boot
from ....windowing.spark.java import OLDEST, find_java
from ....windowing.spark.masters import is_local
from ...console.amounts import count_of
from .check import Check

_OPTIONS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")


def check_java(environ: Mapping[str, str]) -> Iterator[Check]:
    """Check that there is a Java for Spark, and say why it is the one. Raises `SparkError` where there is none."""
    found = find_java(environ)
    why = {
        "JAVA_HOME": "JAVA_HOME names it",
        "PATH": f"the first on PATH that is {OLDEST} or newer{_without_home(environ)}",
    }.get(found.origin, f"of {found.origin}, as neither JAVA_HOME nor PATH has one")
    yield Check("java", "ok", f"Java {found.version}, {found.path}: {why}")
    for name in _OPTIONS:
        if environ.get(name):
            do = f"if Java misbehaves, try without: unset {name}"
            yield Check("java", "warn", f"{name} changes how every Java starts", do)


def _without_home(environ: Mapping[str, str]) -> str:
    return "; JAVA_HOME has none" if environ.get("JAVA_HOME") else "; JAVA_HOME is not set"


def check_spark(master: str) -> Check:
    """Start Spark as a run does, run a task in a Python worker, and end it. Raises `SparkError` where it fails."""
    began = time.perf_counter()
    starting = boot(master, {}, spark_settings(master, {}), None, dict(os.environ))
    try:
        session = starting.session()
        ready = time.perf_counter() - began
        found = session.map("doctor", len, ["wincli"])
        cores, is_open = session.parallelism, session.is_open
    finally:
        starting.close()
    seconds = time.perf_counter() - began
    if found != [6]:
        return Check("spark", "fail", f"a task gives {found!r}, not [6]", "report what wincli doctor --json prints")
    what = f"{master}, {count_of(cores, 'task')} at a time: "
    what += f"it started in {ready:.1f} s and ran a task in {seconds - ready:.1f} s"
    if is_open and not is_local(master):
        do = "set spark.authenticate on the cluster"
        return Check("spark", "warn", f"{what}; it takes messages from anyone who reaches its ports", do)
    return Check("spark", "ok", what)
