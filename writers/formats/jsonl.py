"""Encode JSON Lines parts: one object for each row, with every column.

Null is null. Timestamps are ISO 8601 text with the digits of the column's unit; timestamps with a zone are in UTC with
a Z. Integers and floats are numbers that read back as the same bits; NaN and the infinities, which JSON lacks, are
null. Decimals are exact text. Lists are arrays, structs are objects, binary is hexadecimal text, durations are counts
of their unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pyarrow as pa

from .encoder import Encoder, Write, plain
from .text import batches, write_lines


@contextmanager
def begin(schema: pa.Schema, file: IO[bytes] | pa.NativeFile) -> Iterator[Write]:
    """Write rows to ``file``. Raises `DataError` for a date or timestamp outside the years -32767 to 32767."""
    target = plain(schema)
    yield lambda table: write_lines(target.names, (batch.cast(target) for batch in batches(table)), file)


ENCODER = Encoder(begin)
