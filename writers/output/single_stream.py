"""Write a result to one stream: its part files one after the other, in the order of their names."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pyarrow as pa
from pyarrow import parquet as pq

from ...windowing.support.formats import Format
from ..formats import parquet
from .sink import PART

_HEADER = 1 << 24  # bytes: more than any header has


def write_whole(folder: Path, format: Format, file: IO[bytes]) -> None:
    """Write the parts of a result to ``file``: CSV with one header, Parquet as one file. Raises `OSError`."""
    parts = sorted(folder.glob(f"{PART}*"), key=lambda part: (len(part.name), part.name))
    if format == "parquet" and len(parts) > 1:
        parts = [_join_parts(folder, parts)]
    for place, part in enumerate(parts):
        with part.open("rb") as content:
            if format == "csv" and place:
                content.seek(_header_end(content.read(_HEADER)))
            shutil.copyfileobj(content, file, 1 << 20)
    file.flush()


def _header_end(data: bytes) -> int:
    """Return the offset behind the header of CSV, in which quoted names may contain line ends."""
    at = data.find(b"\n")
    while data.count(b'"', 0, at) % 2:
        at = data.find(b"\n", at + 1)
    return at + 1


def _join_parts(folder: Path, parts: list[Path]) -> Path:
    """Join Parquet parts to one file; concatenation would not do, because the footer holds offsets in the file."""
    whole = folder / "_whole.parquet"
    with pa.OSFile(str(whole), "wb") as file:
        parquet.encode(_tables(parts), pq.read_schema(parts[0]), file)
    return whole


def _tables(parts: list[Path]) -> Iterator[pa.Table]:
    for part in parts:
        with pq.ParquetFile(part) as file:
            for batch in file.iter_batches(parquet.ROW_GROUP):
                yield pa.Table.from_batches([batch])
