"""Where the values of columns stand in plain records of CSV: of a small file this is quicker than to start a parser.

A record is plain if it has as many fields as the header, and no quote or line end inside a quoted field.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...windowing.support.jit import kernel
from ..schema.kinds import TEXT
from ..schema.types import Int64s
from .fields import NULL, STRING, Fields
from .record_bounds import count_line_ends
from .value_kinds import UNSURE, kind_of_field
from .words import field_end, quoted_end

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
