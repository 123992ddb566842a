"""The file formats: their names, and the suffixes of file names that stand for them.

The job model, the options and their help are made from these. `readers.open` has the reader of each format,
`writers.output.sink` the encoder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

Format: TypeAlias = Literal["parquet", "csv", "jsonl"]

FORMATS: tuple[Format, ...] = get_args(Format)

SUFFIXES: Mapping[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}
