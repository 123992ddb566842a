"""Where the values of columns stand in a buffer of text, and the Arrow arrays that are made from there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...windowing.support.jit import kernel, njit
from .kinds import TEXT
from .record_bounds import count_line_ends
from .types import Int64s
from .value_kinds import UNSURE, field_end, kind_of_field, quoted_end

TRUE, FALSE, NULL, NUMBER, STRING = 1, 2, 3, 4, 5
"""What stands at the place of a value; 0 where a line of JSON does not name the column. CSV has nulls and texts."""


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


# Where the values of columns stand in plain records of CSV: of a small file this is quicker than to start a parser.
#
# A record is plain if it has as many fields as the header, and no quote or line end inside a quoted field.


_LF, _CR, _QUOTE = 10, 13, 34


def csv_fields(data: bytes, delimiter: str, names: Sequence[str], asked: dict[str, int]) -> Fields | None:
    """Find the values of some columns; None where a record is not plain.

    ``asked``: by column, the kinds to begin with: the values of a column with `TEXT` are not looked at.
    """
    columns = np.full(len(names), -1, np.int64)
    for at, name in enumerate(asked):
        columns[names.index(name)] = at
    line_ends = count_line_ends(data)
    kinds = np.array(list(asked.values()), np.int64)
    token = np.empty((len(asked), line_ends + 1), np.uint8)
    start, stop = (np.empty((len(asked), line_ends + 1), np.int64) for _ in range(2))
    rows = _scan(np.frombuffer(data, np.uint8), ord(delimiter), columns, kinds, token, start, stop)
    if rows < 0:
        return None
    return Fields(tuple(asked), kinds, token[:, :rows], start[:, :rows], stop[:, :rows], line_ends)


def warm() -> None:
    """Compile the loops or load them, so that workers that start later find them in the cache."""
    fields = csv_fields(b"1\n", ",", ["a"], {"a": TEXT})
    assert fields is not None, "the record is plain"
    fields.texts(b"1\n", "a")


@kernel
def _scan(
    data: npt.NDArray[np.uint8],
    delimiter: int,
    columns: Int64s,
    kinds: Int64s,
    token: npt.NDArray[np.uint8],
    start: Int64s,
    stop: Int64s,
) -> int:
    """Return the number of records, -1 where one is not plain.

    ``columns``: int64 (width,), for each field the index of its column in the other arrays, or -1. ``kinds``: the kinds
    of values are added to it. ``token``, ``start``, ``stop``: as in `Fields`, with room for all records; output.
    """
    n, row, i = data.size, 0, 0
    while i < n:
        # Invariant: i is at the first byte of a line, or at the LF of CR LF.
        if data[i] in (_LF, _CR):
            i += 1
            continue
        for column in range(columns.size):
            # Invariant: i is where a field begins; n for an empty field behind the last delimiter.
            lo = i
            is_quoted = i < n and data[i] == _QUOTE
            if is_quoted:
                lo = i + 1
                i = quoted_end(data, lo, n)
                if i == n or data[i] != _QUOTE:
                    return -1
                hi, i = i, i + 1
            else:
                i = field_end(data, i, n, delimiter)
                hi = i
            at_delimiter = i < n and data[i] == delimiter
            if at_delimiter == (column + 1 == columns.size) or not (at_delimiter or i == n or data[i] in (_LF, _CR)):
                return -1
            at = columns[column]
            if at >= 0:
                token[at, row], start[at, row], stop[at, row] = STRING if is_quoted or hi > lo else NULL, lo, hi
                if not kinds[at] & TEXT:
                    kinds[at] |= UNSURE if is_quoted and hi == lo else kind_of_field(data, lo, hi)
            i += at_delimiter
        i += i < n
        row += 1
    return row
