"""Encode JSON Lines parts: one object for each row, with every column.

Null is null. Timestamps are ISO 8601 text with the digits of the column's unit; timestamps with a zone are in UTC with
a Z. Integers and floats are numbers that read back as the same bits; NaN and the infinities, which JSON lacks, are
null. Decimals are exact text. Lists are arrays, structs are objects, binary is hexadecimal text, durations are counts
of their unit.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import IO

import pyarrow as pa

from .encoder import Encoder
from .json_text import write_lines
from .text import batches
from .types import plain


def encode(tables: Iterable[pa.Table], schema: pa.Schema, file: IO[bytes] | pa.NativeFile) -> None:
    """Write ``tables`` to ``file``. Raises `DataError` for a date or timestamp outside the years 1 to 9999."""
    target = plain(schema)
    write_lines(target.names, (batch.cast(target) for batch in chain.from_iterable(map(batches, tables))), file)


ENCODER = Encoder(encode)
