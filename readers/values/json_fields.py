"""Where the values of columns stand in lines of JSON, found in one pass; only for the plain objects that logs have.

A plain line is one object whose values are numbers, texts without escapes, ``true``, ``false`` and ``null``, and that
names no column twice. It is checked by JSON's own grammar. Other lines are left to Arrow's parser and to what finds
their errors, so this pass changes how long reading takes, and never what is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.json as pjson

from ...windowing.support.jit import inline, kernel, njit
from .kinds import BOOL, TEXT
from .record_bounds import DEEPEST, Records, are_deep, are_objects, count_line_ends, locate_lines
from .types import Int64s, Mask
from .value_kinds import UNSURE, digits_end, kind_of_number, kind_of_time, plain_end

_LF, _CR, _TAB, _SPACE, _QUOTE, _COMMA, _COLON = 10, 13, 9, 32, 34, 44, 58
_OPEN, _CLOSE, _ZERO, _NINE, _MINUS, _POINT, _T, _F, _N = 123, 125, 48, 57, 45, 46, 116, 102, 110
_LEAST_TIME = 10  # bytes of a date
_MOST_NEW = 64  # lines that may name columns no line before them has
_MOST_NAMES = 1 << 14
_FNV, _FNV_PRIME = np.uint64(14695981039346656037), np.uint64(1099511628211)
_ODD, _NEW = -1, -2

TRUE, FALSE, NULL, NUMBER, STRING = 1, 2, 3, 4, 5
"""What stands at the place of a value; 0 where the line does not name the column."""


@dataclass(frozen=True, slots=True)
class Fields:
    """The values of k columns in n records.

    ``names``: the columns that were asked for.
    ``kinds``: int64 (k,), the union of the kinds of their values and of what was there before.
    ``token``: uint8 (k, n), which sort of value each is: `NUMBER`, ..
    ``start``: int64 (k, n), the offset of the first byte of a number or of the text between quotes.
    ``stop``: int64 (k, n), the offset behind it, exclusive.
    ``line_ends``: the number of line ends, those of blank lines included.
    """

    names: tuple[str, ...]
    kinds: Int64s
    token: npt.NDArray[np.uint8]
    start: Int64s
    stop: Int64s
    line_ends: int

    def has_only(self, name: str, *tokens: int) -> bool:
        """Whether each value of a column is one of these, or null."""
        seen = np.bincount(self.token[self.names.index(name)], minlength=STRING + 1)
        return bool(seen.sum() == sum(int(seen[token]) for token in (0, NULL, *tokens)))

    def texts(self, data: bytes, name: str) -> pa.Array:
        """Return numbers and texts of a column as they stand in the records; other values are null."""
        at = self.names.index(name)
        token, start = self.token[at], self.start[at]
        ends = np.empty(len(token) + 1, np.int32)
        nulls = _ends_of(token, start, self.stop[at], ends)
        values = np.empty(int(ends[-1]), np.uint8)
        _gather(np.frombuffer(data, np.uint8), start, ends, values)
        valid = pa.py_buffer(np.packbits(token >= NUMBER, bitorder="little")) if nulls else None
        return pa.Array.from_buffers(pa.string(), len(token), [valid, pa.py_buffer(ends), pa.py_buffer(values)], nulls)

    def booleans(self, name: str) -> pa.Array:
        """Return ``true`` and ``false`` of a column; other values are null."""
        token = self.token[self.names.index(name)]
        return pa.array(token == TRUE, pa.bool_(), mask=(token != TRUE) & (token != FALSE))


@njit(cache=True)
def _ends_of(token: npt.NDArray[np.uint8], start: Int64s, stop: Int64s, ends: npt.NDArray[np.int32]) -> int:
    # Invariant: ends[: row + 1] are right, and end is the sum of the sizes of the texts and numbers before the row.
    nulls, end = 0, 0
    ends[0] = 0
    for row in range(token.size):
        if token[row] >= NUMBER:
            end += stop[row] - start[row]
        else:
            nulls += 1
        ends[row + 1] = end
    return nulls


@njit(cache=True)
def _gather(
    data: npt.NDArray[np.uint8], start: Int64s, ends: npt.NDArray[np.int32], values: npt.NDArray[np.uint8]
) -> None:
    """Copy the bytes of each value behind those of the value before it; ``ends``: as `_ends_of` writes them."""
    for row in range(start.size):
        at, size = start[row], ends[row + 1] - ends[row]
        # Invariant: values[: ends[row]] are right. A null has no bytes: its end is that of the value before it.
        for i in range(size):
            values[ends[row] + i] = data[at + i]


def fields_of(data: bytes, names: Sequence[str]) -> Fields | None:
    """Find the values of columns ``names``; other columns are passed over. None where a line is not plain."""
    most = count_line_ends(data) + 1
    token = np.zeros((len(names), most), np.uint8)
    start, stop = (np.empty((len(names), most), np.int64) for _ in range(2))
    kinds = np.full(len(names), TEXT, np.int64)  # of texts nothing more is asked
    _, why, rows, line_ends = _scan(
        np.frombuffer(data, np.uint8), 0, 0, *_keys(names), False, kinds, _no_rows(names), token, start, stop
    )
    return None if why else Fields(tuple(names), kinds, token[:, :rows], start[:, :rows], stop[:, :rows], line_ends)


def kinds_of_lines(data: bytes) -> tuple[dict[str, int], int, int] | None:
    """Find all columns of plain lines, in order of first appearance, with the union of the kinds of their values.

    Also returns the number of lines that are not blank, and of line ends. None where a line is not plain, or where too
    many lines name new columns.
    """
    names: list[str] = []
    kinds = np.zeros(0, np.int64)
    view, at, rows, lines = np.frombuffer(data, np.uint8), 0, 0, 0
    token, nowhere = np.zeros((0, 0), np.uint8), np.zeros((0, 0), np.int64)
    for _ in range(_MOST_NEW):
        at, why, rows, line_ends = _scan(
            view, at, rows, *_keys(names), True, kinds, _no_rows(names), token, nowhere, nowhere
        )
        lines += line_ends
        if not why:
            return dict(zip(names, kinds.tolist(), strict=True)), rows, lines
        if why != _NEW:
            return None
        line = data[at:].partition(b"\n")[0]
        if b"\\" in line:
            return None
        try:
            more = list(json.loads(line))
        except (ValueError, RecursionError):
            return None
        names = list(dict.fromkeys([*names, *more]))
        kinds = np.concatenate([kinds, np.zeros(len(names) - len(kinds), np.int64)])
    return None


def count_names(data: bytes) -> int:
    """Return about how many different names the objects of lines have, nested ones included; no more than 2^14."""
    return int(_count_names(np.frombuffer(data, np.uint8), np.zeros(2 * _MOST_NAMES, np.uint64)))


def warm() -> None:
    """Compile the loops or load them, so that workers that start later find them in the cache."""
    data = b'{"a": 1}\n'
    count_names(data)
    count_line_ends(data)
    are_objects(data, locate_lines(data)[0])
    fields = fields_of(data, ["a"])
    assert fields is not None, "the line is plain"
    fields.texts(data, "a")


def _no_rows(names: Sequence[str]) -> Int64s:
    return np.full(len(names), -1, np.int64)


def _keys(names: Sequence[str]) -> tuple[npt.NDArray[np.uint8], Int64s]:
    """Return the names one after another in UTF-8, and where each begins, int64 (k + 1,)."""
    encoded = [name.encode() for name in names]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return np.frombuffer(b"".join(encoded), np.uint8), ends


@inline
def _is_blank(c: int) -> bool:
    return c in (_SPACE, _TAB, _CR)


@inline
def _skip(data: npt.NDArray[np.uint8], i: int, end: int) -> int:
    while i < end and _is_blank(data[i]):
        i += 1
    return i


@inline
def _string_end(data: npt.NDArray[np.uint8], i: int, end: int) -> int:
    """Return where the quote stands that ends a text; -1 where there is none, an escape, or a control character."""
    i = plain_end(data, i, data.size)
    return i if i < end and data[i] == _QUOTE else -1


@inline
def _column(data: npt.NDArray[np.uint8], lo: int, hi: int, keys: npt.NDArray[np.uint8], ends: Int64s, near: int) -> int:
    """Return the index of a key, or -1; lines have their columns in one order, so the search begins at ``near``."""
    k = ends.size - 1
    for turn in range(k):
        at = near + turn if near + turn < k else near + turn - k
        if ends[at + 1] - ends[at] != hi - lo:
            continue
        same = True
        for i in range(hi - lo):
            if data[lo + i] != keys[ends[at] + i]:
                same = False
                break
        if same:
            return at
    return -1


@inline
def _kind(data: npt.NDArray[np.uint8], lo: int, hi: int, what: int) -> int:
    """Return the kind of a value, of a text whether it is a time; `_ODD` where the grammar of JSON does not allow it.

    A text has been checked before. A number has no zeros in front.
    """
    if what == STRING:
        if hi - lo < _LEAST_TIME or not (_ZERO <= data[lo] <= _NINE or data[lo] <= _MINUS):
            return TEXT
        return kind_of_time(data, lo, hi)
    if what == NUMBER:
        digit = lo + 1 if data[lo] == _MINUS else lo
        if digit + 1 < hi and data[digit] == _ZERO and _ZERO <= data[digit + 1] <= _NINE:
            return _ODD
        kind = kind_of_number(data, lo, hi)
        return kind if kind != UNSURE else _ODD
    word = b"true" if what == TRUE else b"null"
    if what == FALSE:
        word = b"alse"
        lo += 1
    for at in range(4):
        if data[lo + at] != word[at]:
            return _ODD
    return 0 if what == NULL else BOOL


@kernel
def _scan(  # noqa: PLR0911, PLR0912, PLR0915 - one state machine
    data: npt.NDArray[np.uint8],
    i: int,
    row: int,
    keys: npt.NDArray[np.uint8],
    ends: Int64s,
    every: bool,
    kinds: Int64s,
    last_row: Int64s,
    token: npt.NDArray[np.uint8],
    start: Int64s,
    stop: Int64s,
) -> tuple[int, int, int, int]:
    """Scan lines from offset ``i``, of which the first that is not blank is number ``row``.

    Return the offset of the line that stops the scan, and why, 0 where none does; the number of the next row; and the
    number of line ends that were passed.
    ``keys``, ``ends``: as `_keys` returns them. ``every``: whether a column that is not among them stops the scan.
    ``kinds``: the kinds of values are added to it. ``last_row``: int64 (k,), the last row that has named a column: none
    may do so twice. ``token``, ``start``, ``stop``: as in `Fields`, with room for all rows, or of size 0.
    """
    n, fills, line_ends = data.size, token.size > 0, 0
    while i < n:
        # Invariant: i is at the first byte of a line. No step but the last one passes the end of the line.
        line = i
        i = _skip(data, i, n)
        if i == n:
            break
        if data[i] == _LF:
            i += 1
            line_ends += 1
            continue
        if data[i] != _OPEN:
            return line, _ODD, row, line_ends
        i = _skip(data, i + 1, n)
        near, is_first = 0, True
        while True:
            # Invariant: i is at the first byte of a key, or of the closing bracket of an object without keys.
            if i >= n:
                return line, _ODD, row, line_ends
            if is_first and data[i] == _CLOSE:
                break
            is_first = False
            if data[i] != _QUOTE:
                return line, _ODD, row, line_ends
            key = i + 1
            i = _string_end(data, key, n)
            if i < 0:
                return line, _ODD, row, line_ends
            column = _column(data, key, i, keys, ends, near)
            i = _skip(data, i + 1, n)
            if i >= n or data[i] != _COLON:
                return line, _ODD, row, line_ends
            i = _skip(data, i + 1, n)
            if i >= n:
                return line, _ODD, row, line_ends
            what, lo, c = NULL, i, data[i]
            if c == _QUOTE:
                what, lo = STRING, i + 1
                i = _string_end(data, lo, n)
                if i < 0:
                    return line, _ODD, row, line_ends
            elif c == _T:
                what, i = TRUE, i + 4
            elif c == _F:
                what, i = FALSE, i + 5
            elif c == _N:
                what, i = NULL, i + 4
            else:
                what = NUMBER
                i = digits_end(data, i + (c == _MINUS), data.size)
                if i < n and data[i] == _POINT:
                    i = digits_end(data, i + 1, data.size)
                while i < n and data[i] != _COMMA and data[i] != _CLOSE and data[i] > _SPACE:
                    i += 1
            if i > n:
                return line, _ODD, row, line_ends
            is_known = what == STRING and (column < 0 or kinds[column] & TEXT)
            kind = 0 if is_known else _kind(data, lo, i, what)
            if kind == _ODD:
                return line, _ODD, row, line_ends
            if column >= 0:
                if last_row[column] == row:
                    return line, _ODD, row, line_ends
                last_row[column] = row
                near = column + 1
                kinds[column] |= kind
                if fills:
                    token[column, row], start[column, row], stop[column, row] = what, lo, i
            elif every:
                return line, _NEW, row, line_ends
            if what == STRING:
                i += 1
            i = _skip(data, i, n)
            if i < n and data[i] == _COMMA:
                i = _skip(data, i + 1, n)
            elif i < n and data[i] == _CLOSE:
                break
            else:
                return line, _ODD, row, line_ends
        i = _skip(data, i + 1, n)
        if i < n:
            if data[i] != _LF:
                return line, _ODD, row, line_ends
            i += 1
            line_ends += 1
        row += 1
    return n, 0, row, line_ends


@kernel
def _count_names(data: npt.NDArray[np.uint8], seen: npt.NDArray[np.uint64]) -> int:
    count, mask = 0, np.uint64(seen.size - 1)
    for i in range(1, data.size):
        if data[i] != _COLON:
            continue
        end = i - 1
        while end > 0 and _is_blank(data[end]):
            end -= 1
        if data[end] != _QUOTE:
            continue
        word, at = _FNV, end - 1
        while at >= 0 and data[at] != _QUOTE:
            word = (word ^ np.uint64(data[at])) * _FNV_PRIME
            at -= 1
        place = word & mask
        # Invariant: at least half of the places are free, so the search ends.
        while seen[place] != 0 and seen[place] != word:
            place = (place + np.uint64(1)) & mask
        if seen[place] == 0:
            seen[place] = word
            count += 1
            if 2 * count >= seen.size:
                break
    return count


# Lines of JSON: parses many lines in one call, and finds the lines that are not one object each by bisection.


_MAX_BLOCK = 2**31 - 1
_NO_COLUMN = "_wincli_no_column"
_BIG_NUMBER = re.compile(rb'"(?:[^"\\]|\\.)*"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?[eE]\+?[0-9]{3,}')  # or a text
_TOO_DEEP = f"the line nests more than {DEEPEST} levels"


@dataclass(frozen=True, slots=True)
class JsonLines:
    """The lines of a buffer of JSON Lines that are not blank.

    ``records``: the positions of the lines in ``data``.
    """

    data: bytes
    records: Records

    def __len__(self) -> int:
        return len(self.records.starts)

    def are_objects(self) -> Mask:
        """Return which lines are safe for the parser, bool (N,).

        Arrow's parser crashes on text that begins with ``null`` and on lines that nest too deeply, and it reads an
        object over several lines as one row. A line that begins and ends as an object does not continue on the next
        line. So the parser returns as many objects as there are lines only if each line is one object.
        """
        return are_objects(self.data, self.records)

    def why_none(self, rows: Int64s) -> list[str]:
        """Return, for lines that are not one object each, the reason; ``rows``: the indices of these lines, int64."""
        records = self.records
        some = Records(records.starts[rows], records.stops[rows], records.lines[rows], records.fields[rows])
        return [_TOO_DEEP if deep else "the line is not one JSON object" for deep in are_deep(self.data, some)]

    def without(self, rows: Int64s) -> JsonLines:
        """Return all lines except ``rows``, int64, ascending."""
        data = self.records.without(self.data, rows)
        return JsonLines(data, locate_lines(data)[0])

    def bytes_of(self, start: int, stop: int) -> bytes:
        """Return the bytes of lines ``[start, stop)``."""
        return self.data[self.records.starts[start] : self.records.stops[stop - 1]]


def good_lines(lines: JsonLines) -> tuple[JsonLines, Int64s]:
    """Return the lines that are one JSON object each, and the indices of all others, int64, ascending."""
    braced = lines.are_objects()
    others = np.flatnonzero(~braced)
    rest = lines.without(others)
    bad: list[int] = []
    _halve(rest, 0, len(rest), bad)
    torn = np.array(bad, np.int64)
    return rest.without(torn), np.union1d(others, np.flatnonzero(braced)[torn])


def _halve(lines: JsonLines, start: int, stop: int, bad: list[int]) -> None:
    if start == stop or _is_rows(lines.bytes_of(start, stop), stop - start):
        return
    if stop - start == 1:
        if not _is_rows(_BIG_NUMBER.sub(_or_zero, lines.bytes_of(start, stop)), 1):
            bad.append(start)
        return
    half = (start + stop) // 2
    _halve(lines, start, half, bad)
    _halve(lines, half, stop, bad)


def _or_zero(found: re.Match[bytes]) -> bytes:
    """Return a text as it is, and zero for a number: its size, which the parser refuses, is no matter of the form."""
    return found[0] if found[0].startswith(b'"') else b"0"


def _is_rows(data: bytes, rows: int) -> bool:
    """Whether every line is one object; the parser skips the values, because no column is read."""
    try:
        return is_utf8(data) and len(parse_lines(data, {_NO_COLUMN: pa.null()}, others=False)) == rows
    except pa.ArrowInvalid:
        return False


def is_utf8(data: bytes) -> bool:
    """Whether all bytes are UTF-8, which Arrow's parser does not check."""
    try:
        if not data.isascii():
            data.decode()
    except UnicodeDecodeError:
        return False
    return True


def parse_lines(data: bytes, types: Mapping[str, pa.DataType], *, others: bool) -> pa.Table:
    """Parse JSON lines to a table.

    ``types``: the types by column; a column that no line has is null. ``others``: whether to infer the columns that are
    not in ``types``, which are else left out. Raises `pa.ArrowInvalid`.
    """
    return pjson.read_json(
        pa.BufferReader(data),
        pjson.ReadOptions(use_threads=False, block_size=min(len(data) + 1, _MAX_BLOCK)),
        pjson.ParseOptions(
            explicit_schema=pa.schema(list(types.items())) if types else None,
            unexpected_field_behavior="infer" if others else "ignore",
        ),
    )
