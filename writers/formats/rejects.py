"""Rejected rows: JSON Lines, whatever the format of the output, with a suffix that no part has.

Engines other than Spark and pyarrow do not pass over folders whose name begins with ``_``: a glob over the parts of a
result, ``out/**/*.parquet``, would count rejects as rows if they were parts like others.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc

from .json_text import objects
from .text import batches, content


def file_name(index: int) -> str:
    """Return the name of the rejects of task ``index``."""
    return f"rejects-{index:05d}.ndjson"


def encode(tables: Iterable[pa.Table], schema: pa.Schema, file: IO[bytes] | pa.NativeFile) -> None:
    """Write ``tables`` of ``schema`` to ``file``, one object a row, with no value lost (see `json_text`)."""
    for batch in chain.from_iterable(map(batches, tables)):
        lines = pc.binary_join_element_wise(objects(schema.names, batch.columns, exact=True), "\n", "")
        file.write(content(lines).data)
