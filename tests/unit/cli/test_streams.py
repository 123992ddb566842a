"""Standard streams that are full, closed, or that nobody reads: commands that need no Spark, as processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.processes import environment

WINCLI = str(Path(sys.executable).with_name("wincli"))


def ended(*args: str, before: Callable[[], None] | None = None, **streams: int) -> tuple[int, str]:
    """Exit code and what was said on stderr."""
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    done = subprocess.run([WINCLI, *args], env=environment(), text=True, check=False, preexec_fn=before, **given)  # type: ignore[call-overload]
    return done.returncode, done.stderr or ""


def closed_pipe() -> int:
    read, write = os.pipe()
    os.close(read)
    return write


def full() -> int:
    return os.open("/dev/full", os.O_WRONLY)


WAYS: dict[str, Callable[[], int]] = {"full": full, "a closed pipe": closed_pipe}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("code", "args"), [(2, ("run", "--nonsense")), (2, ("run", "-w", "no such window", "in", "out")), (0, ("version",))]
)
def test_a_stderr_that_cannot_be_written_changes_no_exit_code(code: int, args: tuple[str, ...], way: str) -> None:
    assert ended(*args, stderr=WAYS[way]())[0] == code


@pytest.mark.parametrize("args", [("version",), ("schema",), ("--help",), ("run", "--help"), ()])
def test_a_full_stdout_is_an_error_in_one_line(args: tuple[str, ...]) -> None:
    text = "wincli: error: cannot write to stdout: no space left on device; send it where it can be written\n"
    assert ended(*args, stdout=full()) == (3, text)


@pytest.mark.parametrize("args", [("version",), ("schema",), ("--help",)])
def test_closed_pipe_shows_only_in_the_exit_code(args: tuple[str, ...]) -> None:
    assert ended(*args, stdout=closed_pipe()) == (141, "")


def test_a_closed_stdout_is_an_error() -> None:
    code, text = ended("version", before=lambda: os.close(1))
    assert (code, text.partition(";")[0]) == (3, "wincli: error: cannot write to stdout: it is closed")


def test_closed_streams_are_never_the_numbers_of_other_files() -> None:
    look = "import os, sys; from wincli.cli.console.streams import guard_streams; guard_streams(); "
    look += "file = os.open('/dev/zero', 0); print('lost', file=sys.stderr); os._exit(file)"

    def close() -> None:
        for number in (0, 1, 2):
            os.close(number)

    done = subprocess.run([sys.executable, "-c", look], check=False, preexec_fn=close)
    assert done.returncode == 3


def test_a_stderr_that_does_not_block_is_waited_for() -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    script = (
        "import sys; from wincli.cli.console.streams import *; guard_streams(); sys.stderr.write('x' * 300_000 + '.')"
    )
    with subprocess.Popen([sys.executable, "-c", script], stderr=write) as process, os.fdopen(read, "rb") as reader:
        os.close(write)
        assert reader.read() == b"x" * 300_000 + b"."
        assert process.wait() == 0


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_letters_that_stderr_lacks_are_escaped(tmp_path: Path, encoding: str) -> None:
    name = os.fsencode(tmp_path) + b"/gr\xc3\xbc\xc3\x9fe\x1b"
    env = {**environment(), "PYTHONIOENCODING": encoding}
    done = subprocess.run([WINCLI, "status", name], env=env, capture_output=True, check=False)
    assert done.returncode == 3
    shown = r"gr\xfc\xdfe\x1b" if encoding == "ascii" else r"grüße\x1b"
    assert shown in done.stderr.decode(encoding)
    assert done.stderr.count(b"\n") == 1
