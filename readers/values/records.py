"""The positions of records in the bytes of a text file."""

from __future__ import annotations

from dataclasses import dataclass

from ...windowing.support.plain_values import readable
from .types import Int64s


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
