"""Where records begin and end in the bytes of a text file, by the very rules by which the CSV parser reads them.

A line ends with LF, CR LF or CR. A field is quoted if its first character is the quote; inside, a doubled
quote stands for one. Empty lines are no records and take no position.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...windowing.support.jit import njit
from ..schema.types import Int64s, Mask
from .records import Records

_LF, _CR, _QUOTE = 10, 13, 34
_TAB, _SPACE, _OPEN, _CLOSE, _BACKSLASH = 9, 32, 123, 125, 92
_CASE = 32  # the bit by which { and } differ from [ and ]
_STEP = 1 << 20
DEEPEST = 100
"""How many levels a line of JSON may nest, its object included."""
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a CSV file is cut into records: the delimiter, and whether a quoted field may run over line ends."""

    delimiter: str
    multiline: bool


@dataclass(frozen=True, slots=True)
class Tally:
    """What a piece of text holds.

    ``rows``: its records; ``wrong``: those that have not as many fields as they should; ``lines``: its line ends.
    ``torn``: the 0-based line of the first record that ends inside a quoted field, or -1.
    ``whole``: offset behind the last record that a line end closes.
    """

    rows: int
    wrong: int
    lines: int
    torn: int
    whole: int


def tally(data: bytes, dialect: Dialect, width: int) -> Tally:
    """Count the records of ``data`` and those that have not ``width`` fields."""
    return Tally(*_scan(_view(data), ord(dialect.delimiter), dialect.multiline, width, _NONE, _NONE, _NONE, _NONE))


def locate(data: bytes, dialect: Dialect) -> Records:
    """Return where each record of ``data`` is."""
    n = tally(data, dialect, 0).rows
    arrays = [np.empty(n, np.int64) for _ in range(4)]
    _scan(_view(data), ord(dialect.delimiter), dialect.multiline, 0, *arrays)
    return Records(*arrays)


def locate_lines(data: bytes) -> tuple[Records, int]:
    """Return where the lines of a JSON Lines piece are that are not blank, and how many line ends it has."""
    view = _view(data)
    ends = np.concatenate([np.flatnonzero(view[at : at + _STEP] == _LF) + at for at in range(0, len(data) or 1, _STEP)])
    starts, stops, numbers = (np.empty(len(ends) + 1, np.int64) for _ in range(3))
    rows = _lines(view, ends, starts, stops, numbers)
    return Records(starts[:rows], stops[:rows], numbers[:rows], np.ones(rows, np.int64)), len(ends)


def are_objects(data: bytes, records: Records) -> Mask:
    """Return which lines may be JSON objects.

    They begin with ``{`` and end with ``}``, JSON's white space aside, and nest at most `DEEPEST` levels: parsers take
    each level as a call, and run out of stack.
    """
    return _are_objects(_view(data), records.starts, records.stops, DEEPEST)


def are_deep(data: bytes, records: Records) -> Mask:
    """Return which lines nest more than `DEEPEST` levels."""
    return _are_deep(_view(data), records.starts, records.stops, DEEPEST)


def warm() -> None:
    """Compile the loops, or load them, so that workers started after this find them in the cache."""
    locate(b"a\n", Dialect(",", False))
    are_objects(b"{}\n", locate_lines(b"{}\n")[0])


def _view(data: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)


@njit(cache=True)
def _scan(  # noqa: PLR0912 - one state machine, as the parser's
    data: npt.NDArray[np.uint8],
    delimiter: int,
    multiline: bool,
    width: int,
    starts: Int64s,
    stops: Int64s,
    lines: Int64s,
    fields: Int64s,
) -> tuple[int, int, int, int, int]:
    n = data.size
    rows, wrong, line, torn, whole = 0, 0, 0, -1, 0
    i = 0
    while i < n:
        start, first_line = i, line
        count, quoted, at_start = 1, False, True
        while i < n:
            c = data[i]
            if c in (_LF, _CR):
                if not (quoted and multiline):
                    break
                if c == _LF or i + 1 == n or data[i + 1] != _LF:
                    line += 1
            elif quoted:
                if c == _QUOTE:
                    if i + 1 < n and data[i + 1] == _QUOTE:
                        i += 1
                    else:
                        quoted = False
            elif c == delimiter:
                count += 1
                at_start = True
                i += 1
                continue
            elif c == _QUOTE and at_start:
                quoted = True
            at_start = False
            i += 1
        stop = i
        if quoted and torn < 0:
            torn = first_line
        if i < n:
            i += 2 if data[i] == _CR and i + 1 < n and data[i + 1] == _LF else 1
            line += 1
            whole = i
        if stop > start:
            if rows < starts.size:
                starts[rows], stops[rows], lines[rows], fields[rows] = start, stop, first_line, count
            rows += 1
            wrong += count != width
    return rows, wrong, line, torn, whole


@njit(cache=True)
def _lines(data: npt.NDArray[np.uint8], ends: Int64s, starts: Int64s, stops: Int64s, numbers: Int64s) -> int:
    """Find the lines that are not blank, and return how many there are; ``ends``: where all line ends are."""
    rows, start = 0, 0
    for line in range(ends.size + 1):
        stop = ends[line] if line < ends.size else data.size
        i = start
        while i < stop and data[i] <= _SPACE:
            i += 1
        if i < stop:
            starts[rows], stops[rows], numbers[rows] = start, stop, line
            rows += 1
        start = stop + 1
    return rows


@njit(cache=True)
def _are_objects(data: npt.NDArray[np.uint8], starts: Int64s, stops: Int64s, deepest: int) -> Mask:
    found = np.empty(starts.size, np.bool_)
    for row in range(starts.size):
        first, last = starts[row], stops[row] - 1
        while first < last and data[first] in (_SPACE, _TAB, _CR):
            first += 1
        while last > first and data[last] in (_SPACE, _TAB, _CR):
            last -= 1
        found[row] = data[first] == _OPEN and data[last] == _CLOSE and not _is_deep(data[first : last + 1], deepest)
    return found


@njit(cache=True)
def _are_deep(data: npt.NDArray[np.uint8], starts: Int64s, stops: Int64s, deepest: int) -> Mask:
    found = np.empty(starts.size, np.bool_)
    for row in range(starts.size):
        found[row] = _is_deep(data[starts[row] : stops[row]], deepest)
    return found


@njit(cache=True)
def _is_deep(line: npt.NDArray[np.uint8], deepest: int) -> bool:
    """Whether more brackets are open at once than ``deepest``, counted only where there are as many at all."""
    if line.size <= deepest or _brackets(line) <= deepest:
        return False
    depth, quoted, i = 0, False, 0
    while i < line.size:
        c = line[i]
        if quoted:
            i += c == _BACKSLASH
            quoted = c != _QUOTE
        elif c == _QUOTE:
            quoted = True
        elif c | _CASE == _OPEN:
            depth += 1
            if depth > deepest:
                return True
        elif c | _CASE == _CLOSE:
            depth -= 1
        i += 1
    return False


@njit(cache=True)
def _brackets(line: npt.NDArray[np.uint8]) -> int:
    """How many ``{`` and ``[`` there are: as a plain sum, which the processor takes many bytes at a time."""
    found = np.int32(0)
    for c in line:
        found += np.int32((c | np.uint8(_CASE)) == np.uint8(_OPEN))
    return int(found)
