"""Where records begin and end in the bytes of a text file, by the very rules by which the CSV parser reads them.

A line ends with LF, CR LF or CR. A field is quoted if its first character is the quote; inside, a doubled
quote stands for one. Empty lines are no records and take no position.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

from readers.spans import Records
from readers.types import Int64s, Mask

_LF, _CR, _QUOTE = 10, 13, 34
_TAB, _SPACE, _OPEN, _CLOSE = 9, 32, 123, 125
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
    rows, lines = _lines(_view(data), _NONE, _NONE, _NONE)
    starts, stops, numbers = (np.empty(rows, np.int64) for _ in range(3))
    _lines(_view(data), starts, stops, numbers)
    return Records(starts, stops, numbers, np.ones(rows, np.int64)), lines


def in_braces(data: bytes, records: Records) -> Mask:
    """Return which lines begin with ``{`` and end with ``}``, JSON's white space aside, as every object does."""
    return _in_braces(_view(data), records.starts, records.stops)


def warm() -> None:
    """Compile the loops, or load them, so that workers started after this find them in the cache."""
    locate(b"a\n", Dialect(",", False))
    in_braces(b"{}\n", locate_lines(b"{}\n")[0])


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
def _lines(data: npt.NDArray[np.uint8], starts: Int64s, stops: Int64s, numbers: Int64s) -> tuple[int, int]:
    n = data.size
    rows, line, i = 0, 0, 0
    while i < n:
        start, blank = i, True
        while i < n and data[i] != _LF:
            if data[i] > 32:
                blank = False
            i += 1
        if not blank:
            if rows < starts.size:
                starts[rows], stops[rows], numbers[rows] = start, i, line
            rows += 1
        if i < n:
            line += 1
            i += 1
    return rows, line


@njit(cache=True)
def _in_braces(data: npt.NDArray[np.uint8], starts: Int64s, stops: Int64s) -> Mask:
    braced = np.empty(starts.size, np.bool_)
    for row in range(starts.size):
        first, last = starts[row], stops[row] - 1
        while first < last and data[first] in (_SPACE, _TAB, _CR):
            first += 1
        while last > first and data[last] in (_SPACE, _TAB, _CR):
            last -= 1
        braced[row] = data[first] == _OPEN and data[last] == _CLOSE
    return braced
