"""Lines of JSON: parses many lines in one call, and finds the lines that are not one object each by bisection."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.json as pjson

from ..schema.types import Int64s, Mask
from .record_bounds import DEEPEST, are_deep, are_objects, locate_lines
from .records import Records

_MAX_BLOCK = 2**31 - 1
_NO_COLUMN = "_wincli_no_column"
_BIG_NUMBER = re.compile(rb'"(?:[^"\\]|\\.)*"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?[eE]\+?[0-9]{3,}')  # or a text
_TOO_DEEP = f"the line nests more than {DEEPEST} levels"


@dataclass(frozen=True, slots=True)
class JsonLines:
    """The lines of a buffer of JSON Lines that are not blank.

    ``data``: the bytes of the buffer.
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
