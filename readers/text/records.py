"""Where the records of a piece of text are."""

from __future__ import annotations

from dataclasses import dataclass

from ...windowing.support.surrogates import readable
from ..schema.types import Int64s


@dataclass(frozen=True, slots=True)
class Records:
    """The records of a piece: byte ranges ``[starts, stops)`` without their line end, 0-based lines, fields."""

    starts: Int64s
    stops: Int64s
    lines: Int64s
    fields: Int64s

    def text(self, data: bytes, row: int) -> str:
        """Return one record as it stands in the file; where it is not UTF-8, as `readable` has it."""
        return readable(data[self.starts[row] : self.stops[row]])

    def without(self, data: bytes, rows: Int64s) -> bytes:
        """Return the piece without the given records, ascending."""
        kept, at = [], 0
        for row in rows:
            kept.append(data[at : self.starts[row]])
            at = int(self.starts[row + 1]) if row + 1 < len(self.starts) else len(data)
        return b"".join((*kept, data[at:]))
