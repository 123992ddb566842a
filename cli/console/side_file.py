"""Side files: what a command writes beside its result, such as metrics, events, a report or a job.

One rule for all of them. A side file takes the place of nothing but an empty file or one of its own kind, which is
known by its first line, and it lies in nothing that wincli reads or writes. Links are followed, so a link stays one.
What is there is looked at before the work begins, and once more just before a file is written.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from urllib.parse import unquote

from ...windowing.errors import ConfigError, OutputError, printable
from ...windowing.support.address import Address
from ...windowing.support.redaction import redacted_path
from ...writers.places.os_errors import fixed_part, globbed, holds, is_glob, is_within, reason, remedy

Named = tuple[str, str]
"""What a command reads or writes, in words, and its path: ``("the input", "logs/*.csv")``."""

_OURS = ("_wincli", ".wincli-state", "_delta_log")
"""What a folder has that is a result, a state or a table."""
_RESERVED = re.compile(r"\..+\.wincli-(lock|new|old|gone)(-[0-9a-f]{12})?")
_LONGEST_LINE = 1 << 26  # an event of a result with very many columns
_NO_WAIT = os.O_NOFOLLOW | os.O_NONBLOCK  # what has become a link or a FIFO meanwhile is not opened, and nobody hangs


@dataclass(frozen=True, slots=True)
class SideFile:
    """A file that a command writes beside its result.

    ``option``: the option that names it.
    ``name``: its path as the user wrote it.
    ``kind``: what it holds, such as ``a report``.
    ``is_own``: whether a first line, with its end, is that of such a file.
    ``grows``: whether lines are added to it; else another file takes its place.
    """

    option: str
    name: str
    kind: str
    example: str
    is_own: Callable[[bytes], bool]
    grows: bool = False

    @property
    def path(self) -> Path:
        return Path(os.path.realpath(self.name))

    def __str__(self) -> str:
        return f"{self.option} {printable(redacted_path(self.name))}"

    def check(self) -> None:
        """Raise `ConfigError` where the file may not be written, or cannot be."""
        with self._named_errors():
            self._check_at(self.path)

    def read(self) -> bytes:
        """Return what an earlier run has written there; nothing where there is none, or it cannot be read."""
        with (
            suppress(ConfigError, OSError),
            self._open(self.path, os.O_RDONLY) as fd,
            os.fdopen(fd, "rb", closefd=False) as file,
        ):
            file.seek(0)
            return file.read()
        return b""

    def replace(self, text: bytes) -> None:
        """Write the file: readers see the former content, or this. Raises `ConfigError` as `check`, and `OSError`."""
        from ...writers.places.atomic_files import writing  # noqa: PLC0415 - loads pyarrow

        with self._named_errors():
            path = self.path  # found once: a link may be another one the next time
            self._check_at(path)
        with writing(path, path.with_name(f".wincli-{token_hex(6)}"), is_kept=False) as attempt:
            attempt.write_bytes(text)
            self._check_at(path)

    def append(self, line: str) -> None:
        """Add a line at the end of a file, new or not. Raises `ConfigError` as `check`, and `OSError`."""
        with self._named_errors():
            path = self.path
            self._check_place(path)
        with self._open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT) as fd:
            size = os.fstat(fd).st_size
            is_torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"  # by a full disk, or by the end of a machine
            left = memoryview((("\n" if is_torn else "") + line + "\n").encode("utf-8", "backslashreplace"))
            while left:
                left = left[os.write(fd, left) :]

    def _check_at(self, path: Path) -> None:
        self._check_place(path)
        if os.path.lexists(path):
            with self._open(path, os.O_RDWR | os.O_APPEND if self.grows else os.O_RDONLY):
                pass

    def _check_place(self, path: Path) -> None:
        if not self.name:
            raise ConfigError(f"{self.option} is empty", f"name a file, such as {self.example}")
        if not Address.of(self.name).is_path:
            raise ConfigError(f"{self} is no path: {self.kind} is written to a local file", "name one")
        folder, shown = path.parent, printable(str(Path(self.name).parent))
        if path.is_dir():
            example = printable(str(Path(self.name) / self.example))
            raise ConfigError(f"{self} is a folder", f"name a file in it, such as {example}")
        if not folder.is_dir():
            raise ConfigError(f"{self}: there is no folder {shown}", "make it, or name another")
        if not (self.grows and os.path.lexists(path)) and not os.access(folder, os.W_OK | os.X_OK):
            what = f"{self}: the folder {shown} may not be written"
            raise ConfigError(what, "name another, or change the permissions")
        if any(map(_RESERVED.fullmatch, path.parts)):
            raise ConfigError(f"{self} is a name that wincli keeps for itself", "name another file")
        for above in path.parents:
            is_iceberg = next(above.glob("metadata/*.metadata.json"), None) is not None
            if is_iceberg or any(os.path.lexists(above / name) for name in _OURS):
                what = f"{self} is inside {printable(str(above))}, which is a result, a table or a state"
                raise ConfigError(what, "name a file outside of it")

    @contextmanager
    def _open(self, path: Path, flags: int) -> Iterator[int]:
        """Open the file, and look at it once it is open: then nobody can put another in its place."""
        with self._named_errors():
            if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
                raise ConfigError(f"{self} is no regular file", "name another")
            fd = os.open(path, flags | _NO_WAIT, 0o666)
        try:
            with self._named_errors(), os.fdopen(fd, "rb", closefd=False) as file:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    raise ConfigError(f"{self} is no regular file", "name another")
                first = file.readline(_LONGEST_LINE)
                if first and not self.is_own(first):
                    raise ConfigError(f"{self} exists and is not {self.kind} of wincli", "name another file")
            yield fd
        finally:
            os.close(fd)

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ConfigError(f"{self} cannot be written: {reason(error)}", "name another") from None
        except ValueError as error:  # a name that no file can have
            raise ConfigError(f"{self} cannot be written: {error}", "name another") from None


def check_side_files(files: Sequence[SideFile], named: Iterable[Named]) -> None:
    """Raise `ConfigError` where a side file may not be written.

    ``named``: all that the command reads and writes besides. A side file must not be one of these, nor lie inside one,
    nor be another name (a hard link) of a file there, nor be a folder of its path.
    """
    for file in files:
        file.check()
    known = [(f"{what} {printable(text)}", path) for what, text in named if (path := _local(text)) is not None]
    for index, file in enumerate(files):
        own = str(file.path)
        for there, path in [*known, *((f"that of {each.option}", str(each.path)) for each in files[:index])]:
            if path == own:
                raise ConfigError(f"{file} is {there} itself", "name another file")
            if holds(path, own):
                raise ConfigError(f"{file} is inside {there}", "name a file outside of it")
            if _is_linked(own, path):
                raise ConfigError(f"{file} is another name (a hard link) of a file of {there}", "name another file")
            if is_within(fixed_part(path), own):
                raise ConfigError(f"{file} is a folder of {there}", "name another file")


def write_side_file(file: SideFile, text: str) -> None:
    """Write a side file that is what its command is for. Raises `ConfigError`, and `OutputError` where that fails."""
    try:
        file.replace(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise OutputError(f"{file} cannot be written: {reason(error)}", remedy(error)) from error


def _local(text: str) -> str | None:
    """Return the absolute path of a local path or glob, its fixed part with links followed; None for other places."""
    if not text:
        return None
    address = Address.of(text)
    if not address.is_local:
        return None
    if not address.is_path:
        text = unquote("/" + address.rest.partition("/")[2])
    head = fixed_part(text)
    base = os.path.realpath(head or ("/" if text.startswith("/") else "."))
    return f"{base}/{text[len(head) :].lstrip('/')}" if is_glob(text) else base


def _is_linked(path: str, other: str) -> bool:
    with suppress(OSError):
        at = os.lstat(path)
        if at.st_nlink <= 1:
            return False
        for name in globbed(other) if is_glob(other) else iter([other]):
            for each in (name, *(f"{folder}/{file}" for folder, _, inner in os.walk(name) for file in inner)):
                with suppress(OSError):
                    if os.path.samestat(Path(each).stat(), at):
                        return True
    return False
