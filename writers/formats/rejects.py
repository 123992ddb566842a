"""Encode rejects: always JSON Lines, whatever the output format, with a suffix that no part has.

Engines other than Spark and pyarrow do not skip folders whose name begins with ``_``. A glob over the parts of a
result, such as ``out/**/*.parquet``, would count rejects as rows if they had the suffix of parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import IO

import pyarrow as pa

from .json_text import write_lines
from .text import batches


def file_name(index: int, suffix: str = "") -> str:
    """Return the name of the file of rejects of task ``index``; ``suffix``: as in `FileSink`."""
    return f"rejects-{index:05d}{suffix}.ndjson"


def encode(tables: Iterable[pa.Table], schema: pa.Schema, file: IO[bytes] | pa.NativeFile) -> None:
    """Write ``tables`` of ``schema`` to ``file``, one object for each row, without loss of values (see `json_text`)."""
    write_lines(schema.names, chain.from_iterable(map(batches, tables)), file, exact=True)
