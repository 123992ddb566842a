"""Where the values of columns stand in a buffer of text, and the Arrow arrays that are made from there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...windowing.support.jit import njit
from ..schema.types import Int64s

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
    """Write where each text ends behind those before it, int32 (n + 1,), and return the number of nulls."""
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
        for i in range(size):
            values[ends[row] + i] = data[at + i]
