"""``-`` as IN or OUT: stdin in a file that a run can read as often as it likes, and a result written to stdout."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ...conf.job import PIPE
from ...readers.options import Format
from ...windowing.errors import ConfigError, InputError, OutputError
from ...windowing.spark.masters import is_local
from ...windowing.spark.setup import temporary_place
from ...windowing.spark.temporary_folders import new_folder
from ...writers.folders.os_errors import reason
from ..job.request import JobRequest

_CHUNK = 1 << 20
_ENOUGH = 1 << 10  # bytes that tell the format: a pipe may give them one by one
_MARKS: tuple[tuple[bytes, str], ...] = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"BZh", "bzip2"))
_TOOLS = {"gzip": "zcat", "zstd": "zstdcat", "bzip2": "bzcat"}


@dataclass(frozen=True, slots=True)
class Pipes:
    """What stands for stdin and stdout in a run: a temporary ``folder``, and ``out``, a copy of the file descriptor of
    stdout, None where that is not OUT, with the ``format`` to write there."""

    folder: Path
    out: int | None
    format: Format

    def filled(self, asked: JobRequest, note: Callable[[str], None]) -> JobRequest:
        """Return the job over a file that holds all of stdin, where that is what it reads; wait for the end of it.

        Raises `InputError` where stdin is empty or closed, or is compressed.
        """
        if self.out is not None:
            asked = replace(asked, stdout=str(self.folder / "out"))
        if PIPE not in asked.job.input:
            return asked
        if os.isatty(0):
            note("rows are read from the terminal; end them with Ctrl-D")
        form, spool = self._spooled(asked.reading.format)
        if asked.reading.format == "auto":
            note(f"stdin is read as {form}, by its first bytes; --input-format says otherwise")
        return replace(asked, reading=replace(asked.reading, format=form, stdin=str(spool)))

    def _spooled(self, asked: Format | Literal["auto"]) -> tuple[Format, Path]:
        try:
            first = os.read(0, _CHUNK)
            while first and len(first) < _ENOUGH and (more := os.read(0, _CHUNK)):
                first += more
            if not first.strip():
                raise InputError("stdin is empty", "pipe something into it, or name a file")
            form = _form(first) if asked == "auto" else asked
            spool = self.folder / f"stdin.{form}"
            with os.fdopen(os.open(spool, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                while first:
                    file.write(first)
                    first = os.read(0, _CHUNK)
        except OSError as error:
            what = f"stdin cannot be read into {self.folder}: {reason(error)}"
            raise InputError(what, "see that it is open, or name a folder with more room in TMPDIR") from error
        return form, spool

    def write(self) -> bool:
        """Write the result to stdout; return whether it was taken, which it is not where nobody reads any more.

        Raises `OutputError` where stdout cannot be written for another reason.
        """
        if self.out is None:
            return True
        from ...writers.output.single_stream import write_whole  # noqa: PLC0415 - loads pyarrow

        if self.format == "parquet" and os.isatty(self.out):
            raise ConfigError("a terminal cannot show Parquet", "send stdout to a file, or say --output-format csv")
        try:
            with os.fdopen(self.out, "wb", closefd=False) as file:
                write_whole(self.folder / "out", self.format, file)
        except BrokenPipeError:
            return False
        except OSError as error:
            raise OutputError(f"stdout cannot be written: {reason(error)}", "name a folder as OUT") from error
        return True


@contextmanager
def piped(asked: JobRequest) -> Iterator[Pipes]:
    """Make what stands for stdin and stdout, as far as a job has them, and remove it.

    Until the end whatever else is printed to stdout goes to stderr. Raises `ConfigError` where tasks would run on
    machines that do not see the temporary folder, `InputError` and `OutputError` where one of the two is closed.
    """
    job = asked.job
    if not asked.is_piped:
        yield Pipes(Path(), None, "csv")
        return
    if PIPE in job.input and sys.__stdin__ is None:  # what is opened next would get its number
        raise InputError("stdin is closed", "pipe something into it, or name a file")
    if job.output == PIPE and sys.__stdout__ is None:
        raise OutputError("stdout is closed", "name a folder as OUT")
    if not is_local(job.master):
        what = f"{PIPE} is read and written on this machine, and the tasks of {job.master} run on others"
        raise ConfigError(what, "name places that all workers share")
    held = new_folder(temporary_place()[0])
    try:
        if job.output != PIPE:
            yield Pipes(held.path, None, "csv")
        else:
            with _reserve_stdout() as out:
                yield Pipes(held.path, out, asked.stages[-1].stage.output_format)
    finally:
        held.remove()
        held.release()


@contextmanager
def _reserve_stdout() -> Iterator[int]:
    """Keep stdout for the result: all that prints there meanwhile, here and in what is started here, gets stderr."""
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield kept
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def _form(first: bytes) -> Format:
    """What the first bytes of stdin are. Raises `InputError` where they are compressed."""
    for mark, name in _MARKS:
        if first.startswith(mark):
            raise InputError(f"stdin is compressed with {name}", f"pipe it through {_TOOLS[name]}")
    if first.startswith(b"PAR1"):
        return "parquet"
    text = first.removeprefix(b"\xef\xbb\xbf").lstrip()
    return "jsonl" if text.startswith((b"{", b"[")) else "csv"
