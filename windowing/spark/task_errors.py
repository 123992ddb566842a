"""Errors of Spark tasks, turned into the one line that a user reads.

A `WincliError` is written as JSON into the text of the exception that Spark passes on, and read back on the driver. Any
other failure is explained in words if it is one of a few causes with a remedy; else its own last line is shown.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .. import errors
from ..errors import Span, SparkError, SpecError, WincliError

_BEGIN, _END = "<<wincli-error ", " wincli-error>>"


class TaskError(Exception):
    """A `WincliError` on its way from a task to the driver: only its text arrives, words and then JSON."""


class SparkTraceError(Exception):
    """The whole text of what Spark raised, kept because Java, which has it, may be gone by the time it is printed."""


def guarded(function: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
    """Wrap a function over a partition, so that a `WincliError` raised in it reaches the driver as that error."""

    @functools.wraps(function)
    def inner(*args: Any) -> Iterator[Any]:
        try:
            yield from function(*args)
        except WincliError as error:
            raise TaskError(f"{error}\n{encode_error(error)}") from None

    return inner


def encode_error(error: WincliError) -> str:
    """Return the text from which `decode_error` makes an equal error."""
    fields: dict[str, Any] = {"kind": type(error).__name__, "what": error.what, "do": error.do}
    if isinstance(error, SpecError):
        fields |= {"source": error.source, "span": [error.span.start, error.span.stop]}
    return _BEGIN + json.dumps(fields) + _END


def decode_error(text: str) -> WincliError | None:
    """Return the first encoded error anywhere in ``text``, or None."""
    match = re.search(f"{re.escape(_BEGIN)}(.*?){re.escape(_END)}", text)
    if match is None:
        return None
    fields = json.loads(match[1])
    if fields["kind"] == "SpecError":
        return SpecError(fields["what"], fields["source"], Span(*fields["span"]), fields["do"])
    kind: type[WincliError] = getattr(errors, fields["kind"], WincliError)
    return kind(fields["what"], fields["do"])


def to_wincli_error(error: BaseException, settings: Mapping[str, str]) -> WincliError:
    """Return the error to raise for what Spark raised: the task's own, or a `SparkError` in plain words."""
    if isinstance(error, WincliError):
        return error
    text = str(error)
    return decode_error(text) or message_of(text, settings)


def message_of(text: str, settings: Mapping[str, str]) -> SparkError:
    """Return the error for a stack trace or Java's log; ``settings`` are those that Spark runs with."""
    names = {"master": settings.get("spark.master", ""), "memory": settings.get("spark.driver.memory", "1g")}
    for pattern, what, do in _CAUSES:
        if match := re.search(pattern, text):
            return SparkError(what.format(*match.groups(), **names), do)
    return SparkError(f"Spark failed: {last_line(text)}", "see all with -vv")


# Pattern in the text of Java or Python, its meaning, its remedy. The first pattern that matches is used.
_CAUSES = (
    (
        r"No space left on device",
        "the disk that Spark keeps its temporary files on is full",
        "free some space, or name a folder on a larger disk: --spark-conf spark.local.dir=FOLDER",
    ),
    (
        r"Too many open files|Error loading java\.security file",  # the first file that Java opens
        "too few files may be open at once",
        "raise the limit: ulimit -n 4096",
    ),
    (
        r"java\.lang\.OutOfMemoryError",
        "Java ran out of memory (it may use {memory})",
        "give it more: --spark-conf spark.driver.memory=4g",
    ),
    (
        r"\b\w*MemoryError\b",
        "a Python worker ran out of memory",
        "let fewer work at once, each with more memory: --master 'local[1]'",
    ),
    (
        r"Python worker exited unexpectedly|Python worker process terminated|Could not read from Python worker",
        "a Python worker was killed or crashed, most often because memory ran out",
        "let fewer work at once, each with more memory: --master 'local[1]'",
    ),
    (
        r"Could not parse Master URL|Master must either be",
        "Spark does not know this master: {master}",
        "say --master 'local[*]', spark://HOST:7077, yarn or k8s://URL",
    ),
    (
        r"All masters are unresponsive|Failed to connect to (?:master )?\S+:\d+|Connection refused",
        "the Spark master does not answer",
        "check its address (--master) and that it is up",
    ),
    (
        r"ExecutorLostFailure|Lost executor|executor lost|Slave lost",
        "the cluster lost an executor while it worked, most often because memory ran out",
        "give executors more: --spark-conf spark.executor.memory=4g --spark-conf spark.executor.memoryOverhead=4g",
    ),
    (
        r"Cannot run program \"([^\"]*)\"",
        "the Python that Spark should run its tasks with does not start: {0}",
        "send one: --ship-environment, or name one that is on every machine: --spark-conf spark.pyspark.python=PATH",
    ),
    (
        r"No module named '([^']*)'",
        "the Python on the workers lacks the module {0}",
        "send all packages with --ship-environment, or install them there",
    ),
)


def last_line(text: str) -> str:
    """Return the most informative line of a Java or Python stack trace: Python's last, else Java's innermost cause."""
    if "Traceback (most recent call last)" in text:
        python = re.split(r"\n\s*at [\w.$]+\(", text.split("Traceback (most recent call last)", 1)[1])[0]
        return _lines(python)[-1]
    lines = [line for line in _lines(text) if not re.match(r"at |\.\.\. \d+ more", line)]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    named = [match[0] for line in lines if (match := re.search(r"[\w.$]+(Exception|Error): .*", line))]
    line = (causes[-1:] or named[:1] or lines[:1] or ["no reason given"])[0]
    return re.sub(r"^(?:[\w$]+\.)+([\w$]+: )", r"\1", line)


def _lines(text: str) -> list[str]:
    bare = (re.sub(r"\s*SQLSTATE: \w+$", "", line).strip() for line in text.splitlines())
    return [line for line in bare if line] or ["no reason given"]
