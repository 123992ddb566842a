"""Lines of JSON: the parser over blocks of them, and the lines that are no objects, found by halving."""

from __future__ import annotations

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
_TOO_DEEP = f"the line nests more than {DEEPEST} levels"


@dataclass(frozen=True, slots=True)
class JsonLines:
    """Lines of JSON, none of them blank, and where each is."""

    data: bytes
    records: Records

    def __len__(self) -> int:
        return len(self.records.starts)

    def are_objects(self) -> Mask:
        """Return which lines may be handed to the parser.

        It crashes on a block that begins with ``null`` and on lines that nest without end, and takes an object over
        several lines for one row. Of lines that each begin and end as objects none goes on in the next, so there are as
        many objects as lines only if each line is one.
        """
        return are_objects(self.data, self.records)

    def why_none(self, rows: Int64s) -> list[str]:
        """Say of some lines that are no objects why."""
        records = self.records
        some = Records(records.starts[rows], records.stops[rows], records.lines[rows], records.fields[rows])
        return [_TOO_DEEP if deep else "the line is not one JSON object" for deep in are_deep(self.data, some)]

    def without(self, rows: Int64s) -> JsonLines:
        """Return the lines but for some, ascending."""
        data = self.records.without(self.data, rows)
        return JsonLines(data, locate_lines(data)[0])

    def block(self, start: int, stop: int) -> bytes:
        """Return the bytes of lines ``[start, stop)``."""
        return self.data[self.records.starts[start] : self.records.stops[stop - 1]]


def good_lines(lines: JsonLines) -> tuple[JsonLines, Int64s]:
    """Return the lines that are one JSON object each, and the rows of the others, ascending, among all."""
    braced = lines.are_objects()
    others = np.flatnonzero(~braced)
    rest = lines.without(others)
    bad: list[int] = []
    _halve(rest, 0, len(rest), bad)
    torn = np.array(bad, np.int64)
    return rest.without(torn), np.union1d(others, np.flatnonzero(braced)[torn])


def _halve(lines: JsonLines, start: int, stop: int, bad: list[int]) -> None:
    if start == stop or _is_rows(lines.block(start, stop), stop - start):
        return
    if stop - start == 1:
        bad.append(start)
        return
    half = (start + stop) // 2
    _halve(lines, start, half, bad)
    _halve(lines, half, stop, bad)


def _is_rows(block: bytes, rows: int) -> bool:
    """Whether every line is one object; what its values are does not matter, for no column is looked at."""
    try:
        return is_utf8(block) and len(parse_lines(block, {_NO_COLUMN: pa.null()}, others=False)) == rows
    except pa.ArrowInvalid:
        return False


def is_utf8(data: bytes) -> bool:
    """Whether all text is UTF-8, which the parser does not check."""
    try:
        if not data.isascii():
            data.decode()
    except UnicodeDecodeError:
        return False
    return True


def parse_lines(block: bytes, types: Mapping[str, pa.DataType], *, others: bool) -> pa.Table:
    """Parse lines; columns that are not in ``types`` are inferred, or left out. A column nobody has is null."""
    return pjson.read_json(
        pa.BufferReader(block),
        pjson.ReadOptions(use_threads=False, block_size=min(len(block) + 1, _MAX_BLOCK)),
        pjson.ParseOptions(
            explicit_schema=pa.schema(list(types.items())) if types else None,
            unexpected_field_behavior="infer" if others else "ignore",
        ),
    )
