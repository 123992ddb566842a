"""What the tests of the readers share: opening with everything pickled on the way, as between processes."""

from __future__ import annotations

import csv
import gzip
import io
import json
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from wincli.readers.open import open_source
from wincli.readers.options import ReadOptions, parse_schema
from wincli.readers.source import FileSource
from wincli.readers.values.types import Named
from wincli.windowing.local_executor import LocalExecutor


def source(
    *paths: Path | str, schema: str = "", known: Sequence[Named] = (), named: Sequence[str] = (), **options: Any
) -> FileSource:
    given = ReadOptions(schema=parse_schema(schema) if schema else (), **options)
    with mock.patch("wincli.readers.open._SCANNED_HERE", -1):
        opened = open_source([str(path) for path in paths], given, LocalExecutor(pickles=True), known, named)
    return pickle.loads(pickle.dumps(opened))


def types(opened: FileSource) -> dict[str, str]:
    return {field.name: str(field.type) for field in opened.schema}


@dataclass
class Everything:
    rows: list[dict[str, Any]]
    pos: list[int]
    lines: list[int]
    rejects: list[dict[str, Any]]


def read_all(opened: FileSource, columns: list[str] | None = None) -> Everything:
    """Read all splits and check what holds for every source: positions go up, and nothing is lost."""
    names = opened.schema.names if columns is None else columns
    out = Everything([], [], [], [])
    base = 0
    for index, split in enumerate(opened.splits):
        batch = opened.read(split, names)
        rejects = batch.rejects.to_pylist() if batch.rejects is not None else []
        assert split.index == index
        assert split.base == base
        assert batch.pos.dtype == np.int64
        assert len(batch.pos) + len(rejects) == split.rows
        assert batch.rows.schema.types == [opened.schema.field(name).type for name in names]
        out.rows += batch.rows.to_pylist()
        out.pos += batch.pos.tolist()
        out.lines += opened.line_numbers(split, batch.pos).tolist()
        out.rejects += rejects
        base += split.rows
    assert out.pos == sorted(set(out.pos))
    return out


def column(opened: FileSource, name: str) -> list[Any]:
    return [row[name] for row in read_all(opened, [name]).rows]


def put(path: Path, table: pa.Table | dict[str, Any], **options: Any) -> Path:
    """Write rows in the format of the name, with nothing of wincli; ``options``: of Arrow's writers."""
    table = pa.table(table)
    form = path.name.lstrip(".").partition(".")[2]
    if form == "parquet":
        pq.write_table(table, path, **options)
    elif form == "orc":
        orc.write_table(table, path, **options)
    else:
        path.write_bytes(gzip.compress(_text(form, table), mtime=0) if form.endswith("gz") else _text(form, table))
    return path


def _text(form: str, table: pa.Table) -> bytes:
    if form.startswith("jsonl"):
        return "".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode()
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [table.column_names, *zip(*table.to_pydict().values(), strict=True)]
    )
    return text.getvalue().encode()
