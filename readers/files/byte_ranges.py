"""Byte ranges of text files: every line belongs to the one range that its first byte lies in.

A file that cannot be entered in the middle (compressed, or with line ends inside quotes) is read from
its start to its end instead, a piece at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ...windowing.errors import InputError
from .file import BadContentError, Located
from .listing import ListedFile

WHOLE = -1  # the end of a range that is read as a stream to the end of its file
MAX_RECORD = 256 << 20
_WINDOW = 64 << 10
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Range:
    """A range ``[start, stop)`` of the file with index ``file``, before it is moved to line starts."""

    file: int
    place: Located
    start: int
    stop: int


def cut_files(files: Sequence[ListedFile], split_bytes: int, as_stream: Callable[[Located], bool]) -> list[Range]:
    """Cut each file into ranges of ``split_bytes``; files that are read as streams, and empty ones, are one range."""
    ranges: list[Range] = []
    for index, file in enumerate(files):
        if file.place.compression is not None and file.size == 0:
            raise InputError(f"{file.place.shown} cannot be read: a compressed file is never empty", "copy it again")
        if as_stream(file.place):
            ranges.append(Range(index, file.place, 0, WHOLE))
            continue
        for start in range(0, max(file.size, 1), split_bytes):
            ranges.append(Range(index, file.place, start, min(start + split_bytes, file.size)))
    return ranges


def line_start(file: pa.NativeFile, at: int, size: int, *, cr_ends: bool) -> int:
    """Return the first line start at or after ``at``, ``size`` if there is none.

    Lines end with LF and CR LF, and with CR alone where ``cr_ends``.
    """
    if at <= 0 or at >= size:
        return max(0, min(at, size))
    position = at - 1
    while position < size:
        window = file.read_at(_WINDOW, position)
        found = _line_end(window, at_end=position + len(window) >= size, cr_ends=cr_ends)
        if found > 0:
            return int(position + found)
        position += len(window) - (1 if cr_ends and window.endswith(b"\r") and len(window) > 1 else 0)
        if position - at > MAX_RECORD or not window:
            break
    if position - at > MAX_RECORD:
        raise too_long()
    return size


def _line_end(window: bytes, *, at_end: bool, cr_ends: bool) -> int:
    """Return the offset behind the first line end, 0 if none is certain."""
    lf = window.find(b"\n")
    cr = window.find(b"\r", 0, lf if lf >= 0 else len(window)) if cr_ends else -1
    if cr < 0:
        return lf + 1
    if cr + 1 == len(window):
        return cr + 1 if at_end else 0
    return cr + 2 if window[cr + 1] == ord("\n") else cr + 1


def too_long() -> BadContentError:
    """Return the error for a record that no memory should have to hold."""
    return BadContentError(
        f"has a record longer than {MAX_RECORD >> 20} MiB", "is a quote not closed, or is it of another format?"
    )


def stream_buffers(stream: pa.NativeFile, step: int, whole: Callable[[bytes], int]) -> Iterator[bytes]:
    """Yield a stream in buffers of about ``step`` bytes that end where a record ends.

    ``whole`` returns the offset behind the last record that is complete for certain.
    """
    rest = b""
    while chunk := stream.read(step):
        data = rest + chunk
        stop = whole(data)
        if stop:
            yield data[:stop]
        rest = data[stop:]
        if len(rest) > MAX_RECORD:
            raise too_long()
    if rest:
        yield rest


def last_line_end(data: bytes, *, cr_ends: bool) -> int:
    """Return the offset behind the last line end; a CR that ends ``data`` may be half of one."""
    lf = data.rfind(b"\n")
    cr = data.rfind(b"\r", lf + 1, len(data) - 1) if cr_ends else -1
    return max(lf, cr) + 1


def without_bom(data: bytes) -> bytes:
    """Return the start of a file without the mark of UTF-8. Raises for UTF-16."""
    if data.startswith(_UTF16):
        raise BadContentError("is UTF-16 text", "convert it to UTF-8")
    return data.removeprefix(_BOM)


def bom_size(data: bytes) -> int:
    """Return how many bytes `without_bom` takes away."""
    return len(data) - len(without_bom(data))
