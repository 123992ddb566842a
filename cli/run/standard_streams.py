"""``-`` as IN or OUT: stdin is spooled to a file, which a run can read repeatedly, and a result is sent to stdout."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from ...conf.job import PIPE, Job, Stdin
from ...windowing.errors import ConfigError, InputError, OutputError
from ...windowing.spark.setup import is_local, temporary_place
from ...windowing.spark.temporary_folders import new_folder
from ...windowing.support.formats import FORMATS, Format, file_format, format_of_bytes
from ...writers.places.os_errors import reason

_CHUNK = 1 << 20
_ENOUGH = 1 << 10  # bytes from which the format is detected: a pipe may give them one by one
_MARKS: tuple[tuple[bytes, str], ...] = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"BZh", "bzip2"))
_TOOLS = {"gzip": "zcat", "zstd": "zstdcat", "bzip2": "bzcat"}


@dataclass(slots=True)
class Pipes:
    """The temporary files that replace stdin and stdout during a run.

    ``folder``: the temporary folder that holds them.
    ``out``: a copy of the file descriptor of stdout; None where stdout is not OUT.
    ``format``: the format to write to stdout.
    """

    folder: Path
    out: int | None
    format: Format
    _stdin: Stdin | None = field(default=None, init=False)
    _nbytes: int = field(default=0, init=False)  # of stdin that are in its file
    _is_whole: bool = field(default=False, init=False)  # stdin has ended

    def is_all_within(self, most: int, job: Job, note: Callable[[str], None]) -> bool:
        """Whether stdin, which the job reads, ends after ``most`` bytes at most; wait for its end, or for more bytes.

        Raises as `filled` does.
        """
        self._read(job, note, most)
        return self._is_whole

    def filled(self, job: Job, note: Callable[[str], None]) -> Job:
        """Return the job with stdin and stdout replaced by files; wait for the end of stdin where the job reads it.

        Raises `InputError` where stdin is empty or closed, or is compressed.
        """
        if self.out is not None:
            job = job.at(stdout=str(self.folder / "out"))
        return job.at(stdin=self._read(job, note, inf)) if PIPE in job.input else job

    def _read(self, job: Job, note: Callable[[str], None], most: float) -> Stdin:
        requested = job.input_format
        try:
            if self._stdin is None:
                if os.isatty(0):
                    note("rows are read from the terminal; end them with Ctrl-D")
                first = os.read(0, _CHUNK)
                while first and len(first) < _ENOUGH and (more := os.read(0, _CHUNK)):
                    first += more
                if not first.strip():
                    raise InputError("stdin is empty", "pipe something into it, or name a file")
                form = file_format(requested) if requested != "auto" else format_of_bytes(first)
                if requested == "auto":
                    for mark, name in _MARKS:
                        if first.startswith(mark):
                            raise InputError(f"stdin is compressed with {name}", f"pipe it through {_TOOLS[name]}")
                    note(f"stdin is read as {form}, by its first bytes; --input-format says otherwise")
                self._stdin = Stdin(str(self.folder / f"stdin.{form}"), form)
                self._take(self._stdin, first, most)
            elif not self._is_whole:
                self._take(self._stdin, os.read(0, _CHUNK), most)
        except OSError as error:
            what = f"stdin cannot be read into {self.folder}: {reason(error)}"
            raise InputError(what, "see that it is open, or name a folder with more room in TMPDIR") from error
        return self._stdin

    def _take(self, stdin: Stdin, data: bytes, most: float) -> None:
        """Add what was read to the file, and read on until stdin ends or has given more than ``most`` bytes."""
        with os.fdopen(os.open(stdin.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
            while data:
                self._nbytes += file.write(data)
                if self._nbytes > most:
                    return
                data = os.read(0, _CHUNK)
        self._is_whole = True

    def write(self) -> bool:
        """Write the result to stdout; return False where the reader has closed the pipe.

        Raises `OutputError` where stdout cannot be written for another reason.
        """
        if self.out is None:
            return True
        from ...writers.output.sink import write_whole  # noqa: PLC0415 - loads pyarrow

        if not FORMATS[self.format].is_text and os.isatty(self.out):
            raise ConfigError(
                f"a terminal cannot show {FORMATS[self.format].title}",
                "send stdout to a file, or say --output-format csv",
            )
        try:
            with os.fdopen(self.out, "wb", closefd=False) as file:
                write_whole(self.folder / "out", self.format, file)
        except BrokenPipeError:
            return False
        except OSError as error:
            raise OutputError(f"stdout cannot be written: {reason(error)}", "name a folder as OUT") from error
        return True


@contextmanager
def piped(job: Job) -> Iterator[Pipes]:
    """Create the temporary files for stdin and stdout, where a job uses these, and remove them at the end.

    Until then anything else that is printed to stdout goes to stderr. Raises `ConfigError` where tasks would run on
    machines that do not see the temporary folder, `InputError` and `OutputError` where one of the two is closed.
    """
    if not job.is_piped:
        yield Pipes(Path(), None, "csv")
        return
    if PIPE in job.input and sys.__stdin__ is None:  # the next file to be opened would get number 0
        raise InputError("stdin is closed", "pipe something into it, or name a file")
    if job.output == PIPE and sys.__stdout__ is None:
        raise OutputError("stdout is closed", "name a folder as OUT")
    if not is_local(job.master):
        what = f"{PIPE} is read and written on this machine, and the tasks of {job.master} run on others"
        raise ConfigError(what, "name places that all workers share")
    folder = new_folder(temporary_place()[0])
    try:
        if job.output != PIPE:
            yield Pipes(folder.path, None, "csv")
        else:
            with _reserve_stdout() as out:
                yield Pipes(folder.path, out, file_format(job.stages[-1].output_format))
    finally:
        folder.remove()
        folder.release()


@contextmanager
def _reserve_stdout() -> Iterator[int]:
    """Keep stdout for the result: until the end, this process and its children print to stderr instead."""
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield kept
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
