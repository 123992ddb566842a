"""Find where records begin and end in the bytes of a text file: of CSV by exactly the rules of Arrow's parser.

A record of JSON Lines ends with LF. In CSV a line ends with LF, CR LF or CR. A field is quoted if its first character
is the quote; inside it, a doubled quote means one quote. Empty lines are not records and have no arrival position.
A file system that crashes leaves NUL bytes where a line was not written yet: a record of CSV that begins or ends with
one has no fields, and a line of JSON Lines that holds nothing else is a line like any other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...windowing.support.jit import inline, kernel, njit
from ...windowing.support.plain_values import readable
from .kinds import TEXT
from .types import Int64s, Mask
from .value_kinds import UNSURE, field_end, kind_of_field, quoted_end

_NUL, _LF, _CR, _QUOTE = 0, 10, 13, 34
_TAB, _SPACE, _OPEN, _CLOSE, _BACKSLASH = 9, 32, 123, 125, 92
_CASE = 32  # the bit by which { and } differ from [ and ]
_STEP = 1 << 20
DEEPEST = 100
"""How many levels a line of JSON may nest, its object included."""
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Records:
    """The positions of the N records in a buffer of text.

    ``starts``: int64 (N,), the offset of the first byte of each record.
    ``stops``: int64 (N,), the offset behind the last byte, exclusive and without the line end.
    ``lines``: int64 (N,), the 0-based line on which each record begins.
    ``fields``: int64 (N,), the number of fields; 0 for a record that begins or ends with NUL bytes.
    """

    starts: Int64s
    stops: Int64s
    lines: Int64s
    fields: Int64s

    def text(self, data: bytes, row: int) -> str:
        """Return the text of one record as in the file; bytes that are not UTF-8 are escaped by `readable`."""
        return readable(data[self.starts[row] : self.stops[row]])

    def without(self, data: bytes, rows: Int64s) -> bytes:
        """Return the buffer without some records; ``rows``: int64, ascending."""
        kept, at = [], 0
        for row in rows:
            kept.append(data[at : self.starts[row]])
            at = int(self.starts[row + 1]) if row + 1 < len(self.starts) else len(data)
        return b"".join((*kept, data[at:]))


@dataclass(frozen=True, slots=True)
class Dialect:
    """The rules that divide a CSV file into records.

    ``delimiter``: one ASCII character.
    ``multiline``: whether a quoted field may contain line ends.
    """

    delimiter: str
    multiline: bool


@dataclass(frozen=True, slots=True)
class Tally:
    """The counts of a buffer of CSV.

    ``rows``: the number of records.
    ``wrong``: the number of records with too many or too few fields.
    ``lines``: the number of line ends.
    ``torn``: the 0-based line of the first record that ends inside a quoted field, or -1.
    ``whole``: the offset behind the last record that a line end closes.
    """

    rows: int
    wrong: int
    lines: int
    torn: int
    whole: int


def tally(data: bytes, dialect: Dialect, width: int, kinds: Int64s = _NONE) -> Tally:
    """Count the records of ``data``, and the records that do not have ``width`` fields.

    ``kinds``: int64 (width,) or empty; the kinds of the fields of each column, of `readers.values.value_kinds`,
    are added to it. A column that has `TEXT` is not looked at.
    """
    return Tally(
        *_scan(_view(data), ord(dialect.delimiter), dialect.multiline, width, kinds, _NONE, _NONE, _NONE, _NONE)
    )


def locate(data: bytes, dialect: Dialect) -> Records:
    """Return the positions of the records of ``data``."""
    # Two passes, to count and then to fill: the arrays have the right size at once, and nothing grows in the loop.
    n = tally(data, dialect, 0).rows
    arrays = [np.empty(n, np.int64) for _ in range(4)]
    _scan(_view(data), ord(dialect.delimiter), dialect.multiline, 0, _NONE, *arrays)
    return Records(*arrays)


def count_line_ends(data: bytes) -> int:
    """Return the number of line ends of ``data``: LF, CR LF, or CR."""
    return int(_line_ends(_view(data)))


def locate_lines(data: bytes) -> tuple[Records, int]:
    """Return the positions of the lines of JSON Lines that are not blank, and the number of line ends."""
    view = _view(data)
    # Step by step, so that the temporary mask of line ends has _STEP bytes however large the buffer is.
    ends = np.concatenate([np.flatnonzero(view[at : at + _STEP] == _LF) + at for at in range(0, len(data) or 1, _STEP)])
    starts, stops, numbers = (np.empty(len(ends) + 1, np.int64) for _ in range(3))
    rows = _lines(view, ends, starts, stops, numbers)
    return Records(starts[:rows], stops[:rows], numbers[:rows], np.ones(rows, np.int64)), len(ends)


def are_objects(data: bytes, records: Records) -> Mask:
    """Return which lines may be JSON objects, bool (N,).

    Such a line begins with ``{`` and ends with ``}``, apart from JSON's white space, and nests at most `DEEPEST`
    levels: parsers recurse for each level, and run out of stack.
    """
    return _are_objects(_view(data), records.starts, records.stops, DEEPEST)


def are_deep(data: bytes, records: Records) -> Mask:
    """Return which lines nest more than `DEEPEST` levels, bool (N,)."""
    return _are_deep(_view(data), records.starts, records.stops, DEEPEST)


def warm() -> None:
    """Compile the loops over CSV or load them, so that workers that start later find them in the cache."""
    locate(b"a\n", Dialect(",", False))
    count_line_ends(b"a\n")


def _view(data: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)


@inline
def _kind(data: npt.NDArray[np.uint8], start: int, stop: int) -> int:
    if start == stop or data[start] != _QUOTE:
        return kind_of_field(data, start, stop)
    return kind_of_field(data, start + 1, stop - 1) if data[stop - 1] == _QUOTE and stop - start > 1 else UNSURE


@kernel
def _scan(  # noqa: PLR0912 - one state machine, as the parser's
    data: npt.NDArray[np.uint8],
    delimiter: int,
    multiline: bool,
    width: int,
    kinds: Int64s,
    starts: Int64s,
    stops: Int64s,
    lines: Int64s,
    fields: Int64s,
) -> tuple[int, int, int, int, int]:
    # One pass per record. The arrays are either empty (only count) or have an element for each record (fill).
    n = data.size
    rows, wrong, line, torn, whole = 0, 0, 0, -1, 0
    i = 0
    while i < n:
        # Invariant: data[i] is the first byte of a line, and no quote is open.
        start, first_line = i, line
        count, quoted = 0, False
        while True:
            # Invariant: i is where a field begins; n for an empty field behind the last delimiter.
            field = i
            count += 1
            if i < n and data[i] == _QUOTE:
                quoted = True
                i = quoted_end(data, i + 1, n)
                while i < n:
                    if data[i] == _QUOTE:
                        i += 1
                        if i == n or data[i] != _QUOTE:  # a doubled quote means one quote and ends nothing
                            quoted = False
                            break
                    elif not multiline:
                        break
                    # CR LF is one line end: count it at the LF.
                    elif data[i] == _LF or i + 1 == n or data[i + 1] != _LF:
                        line += 1
                    i = quoted_end(data, i + 1, n)
            if not quoted:  # the parser takes a quote later in a field as text
                i = field_end(data, i, n, delimiter)
            if count <= kinds.size and not kinds[count - 1] & TEXT:
                kinds[count - 1] |= _kind(data, field, i)  # asked last: what follows does not wait for the answer
            if quoted or i == n or data[i] != delimiter:
                break
            i += 1
        stop = i
        if quoted and torn < 0:
            torn = first_line
        if i < n:  # at a line end, so the record is complete; at n another buffer may continue it
            i += 2 if data[i] == _CR and i + 1 < n and data[i + 1] == _LF else 1
            line += 1
            whole = i
        if stop > start:  # an empty line is no record
            if data[start] == _NUL or data[stop - 1] == _NUL:
                count = 0
            if rows < starts.size:
                starts[rows], stops[rows], lines[rows], fields[rows] = start, stop, first_line, count
            rows += 1
            wrong += count != width
    return rows, wrong, line, torn, whole


@njit(cache=True)
def _line_ends(data: npt.NDArray[np.uint8]) -> int:
    # Without branches, so that the compiler turns it into SIMD code. A CR counts where no LF follows.
    found = 0
    for i in range(data.size - 1):
        found += (data[i] == _LF) | ((data[i] == _CR) & (data[i + 1] != _LF))
    return found + (data.size > 0 and (data[data.size - 1] == _LF or data[data.size - 1] == _CR))


@njit(cache=True)
def _lines(data: npt.NDArray[np.uint8], ends: Int64s, starts: Int64s, stops: Int64s, numbers: Int64s) -> int:
    """Write the positions of the lines that are not blank, and return their number.

    ``ends``: int64 (L,), the offsets of all LF, ascending. ``starts``, ``stops``, ``numbers``: int64 (L + 1,), output.
    """
    # Invariant: start is the first byte of the line, and rows lines before it are not blank.
    rows, start = 0, 0
    for line in range(ends.size + 1):  # the last line may have no line end
        stop = ends[line] if line < ends.size else data.size
        i = start
        while i < stop and data[i] in (_SPACE, _TAB, _CR):
            i += 1
        if i < stop:
            starts[rows], stops[rows], numbers[rows] = start, stop, line
            rows += 1
        start = stop + 1
    return rows


@njit(cache=True)
def _brackets(line: npt.NDArray[np.uint8]) -> int:
    # A plain sum of int32 without branches: the compiler turns it into SIMD code, many bytes at a time.
    found = np.int32(0)
    for c in line:
        found += np.int32((c | np.uint8(_CASE)) == np.uint8(_OPEN))
    return int(found)


@njit(cache=True)
def _is_deep(line: npt.NDArray[np.uint8], deepest: int) -> bool:
    # A line of fewer brackets cannot nest so deeply. That is so for nearly all lines, and `_brackets` has no branches.
    if line.size <= deepest or _brackets(line) <= deepest:
        return False
    # Invariant: depth brackets are open before i, which is inside a text if quoted, and is no escaped byte.
    depth, quoted, i = 0, False, 0
    while i < line.size:
        c = line[i]
        if quoted:
            i += c == _BACKSLASH  # skips the escaped byte, which may be a quote
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
def _are_objects(data: npt.NDArray[np.uint8], starts: Int64s, stops: Int64s, deepest: int) -> Mask:
    found = np.empty(starts.size, np.bool_)
    for row in range(starts.size):
        # The two cheap tests of the first and last byte come before the count of brackets, which reads the line.
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
