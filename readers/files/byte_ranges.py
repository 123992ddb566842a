"""Byte ranges of text files: a line belongs to the range that contains its first byte.

A file that a task cannot enter in the middle (compressed, or with line ends inside quotes) is one range: a stream that
is read from start to end, buffer by buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ...windowing.errors import InputError
from .file import BadContentError, Located
from .walk import ListedFile

WHOLE = -1  # the end of a range that is read as a stream to the end of its file
MAX_RECORD = 16 << 20  # of JSON in one line, Arrow's parser takes time that grows with its square
STEP = 1 << 20
"""Bytes of a buffer: what is made of one stays in the caches of a core, and its memory serves the next one."""
_WINDOW = 64 << 10
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Range:
    """A byte range of one file, before its ends are moved to line starts.

    ``file``: the index of the file in the input.
    ``place``: where the file is.
    ``start``: the first byte, inclusive.
    ``stop``: the end, exclusive; `WHOLE` for a file that is read as a stream.
    """

    file: int
    place: Located
    start: int
    stop: int


def cut_files(files: Sequence[ListedFile], split_bytes: int, as_stream: Callable[[Located], bool]) -> Iterator[Range]:
    """Cut each file into ranges of ``split_bytes``; a file that is empty or read as a stream is one range.

    ``as_stream``: whether a file is read as a stream. Raises `InputError` naming a compressed file of no bytes.
    """
    for index, file in enumerate(files):
        if file.place.compression is not None and file.size == 0:
            raise InputError(f"{file.place.shown} cannot be read: a compressed file is never empty", "copy it again")
        if as_stream(file.place):
            yield Range(index, file.place, 0, WHOLE)
            continue
        for start in range(0, max(file.size, 1), split_bytes):
            yield Range(index, file.place, start, min(start + split_bytes, file.size))


def line_start(file: pa.NativeFile, at: int, size: int, *, cr_ends: bool) -> int:
    """Return the offset of the first line start at or after ``at``, or ``size`` if there is none.

    Lines end with LF or CR LF, and with ``cr_ends`` also with CR alone. Raises `BadContentError` for a line longer than
    `MAX_RECORD`.
    """
    if at <= 0 or at >= size:
        return max(0, min(at, size))
    position = at - 1
    while position < size:
        window = file.read_at(_WINDOW, position)
        found = _line_end(window, at_end=position + len(window) >= size, cr_ends=cr_ends)
        if found > 0:
            return int(position + found)
        # A CR at the end of a window may be the first half of CR LF, so the next window begins with it.
        position += len(window) - (1 if cr_ends and window.endswith(b"\r") and len(window) > 1 else 0)
        if position - at > MAX_RECORD or not window:
            break
    if position - at > MAX_RECORD:
        raise too_long()
    return size


def _line_end(window: bytes, *, at_end: bool, cr_ends: bool) -> int:
    lf = window.find(b"\n")
    cr = window.find(b"\r", 0, lf if lf >= 0 else len(window)) if cr_ends else -1
    if cr < 0:
        return lf + 1
    if cr + 1 == len(window):
        return cr + 1 if at_end else 0
    return cr + 2 if window[cr + 1] == ord("\n") else cr + 1


def too_long() -> BadContentError:
    """Return the error for a record longer than `MAX_RECORD`."""
    return BadContentError(
        f"has a record longer than {MAX_RECORD >> 20} MiB", "is a quote not closed, or is it of another format?"
    )


def buffers_of(place: Located, start: int, stop: int, whole: Callable[[bytes], int]) -> Iterator[bytes]:
    """Yield the bytes of a range whose ends are offsets at which records begin, as `range_buffers` does.

    Where ``stop`` is `WHOLE` they are those of the whole file, decompressed.
    """
    if stop == WHOLE:
        with place.open_stream() as stream:
            yield from stream_buffers(stream, whole)
    elif start < stop:
        with place.open_file() as file:
            yield from range_buffers(file, start, stop, whole)


def range_buffers(file: pa.NativeFile, start: int, stop: int, whole: Callable[[bytes], int]) -> Iterator[bytes]:
    """Yield the bytes ``[start, stop)`` in buffers of about `STEP` bytes, each of which ends where a record ends.

    ``start``, ``stop``: offsets at which records begin. ``whole`` and errors: as in `stream_buffers`.
    """
    size = STEP
    while start < stop:
        data = file.read_at(min(size, stop - start), start)
        end = len(data) if start + len(data) >= stop else whole(data)
        if end:
            yield data[:end]
            start, size = start + end, STEP
        elif len(data) < size:  # the file has become shorter
            return
        elif size >= MAX_RECORD:
            raise too_long()
        else:
            size *= 2


def stream_buffers(stream: pa.NativeFile, whole: Callable[[bytes], int]) -> Iterator[bytes]:
    """Yield the bytes of a stream in buffers of about `STEP` bytes, each of which ends where a record ends.

    ``whole``: returns the offset behind the last complete record of some bytes. Raises `BadContentError` for a record
    longer than `MAX_RECORD`.
    """
    rest = b""
    # A long record is not copied for each step, and what lies behind its limit is not read.
    while read := stream.read(min(max(STEP, len(rest)), MAX_RECORD + STEP - len(rest))):
        data = rest + read
        stop = whole(data)
        if stop:
            yield data[:stop]
        rest = data[stop:]
        if len(rest) > MAX_RECORD:
            raise too_long()
    if rest:
        yield rest


def last_line_end(data: bytes, *, cr_ends: bool) -> int:
    """Return the offset behind the last line end; a CR at the end of ``data`` does not count, for LF may follow."""
    lf = data.rfind(b"\n")
    cr = data.rfind(b"\r", lf + 1, len(data) - 1) if cr_ends else -1
    return max(lf, cr) + 1


def without_bom(data: bytes) -> bytes:
    """Return the first bytes of a file without the UTF-8 byte order mark. Raises `BadContentError` for UTF-16."""
    if data.startswith(_UTF16):
        raise BadContentError("is UTF-16 text", "convert it to UTF-8")
    return data.removeprefix(_BOM)


def bom_size(data: bytes) -> int:
    """Return the size of the byte order mark in bytes. Raises as `without_bom` does."""
    return len(data) - len(without_bom(data))
