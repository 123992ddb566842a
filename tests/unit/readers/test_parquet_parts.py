"""A split of Parquet in the smallest parts that can be read alone, and what tasks keep for one another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from wincli.readers.open import open_source
from wincli.readers.options import ReadOptions
from wincli.windowing.local_executor import LocalExecutor
from wincli.writers.output.sink import SCRATCH, FileSink

NO_TASKS: Any = None
"""An executor that fails where it is used: Parquet needs no task to be opened."""


def test_a_split_is_read_row_group_by_row_group(tmp_path: Path) -> None:
    for i, rows in enumerate((10, 7)):
        table = pa.table({"x": range(100 * i, 100 * i + rows)})
        pq.write_table(table, tmp_path / f"{i}.parquet", row_group_size=4)
    source = open_source([str(tmp_path)], ReadOptions(), NO_TASKS)
    assert [(split.base, split.rows) for split in source.splits] == [(0, 10), (10, 7)]
    parts = [part for split in source.splits for part in source.parts_of(split)]
    assert [(part.base, part.rows, part.ends_file) for part in parts] == [
        (0, 4, False), (4, 4, False), (8, 2, True), (10, 4, False), (14, 3, True),
    ]  # fmt: skip
    whole = [source.read(split, ["x"]) for split in source.splits]
    cut = [source.read(part, ["x"]) for part in parts]
    assert [x for batch in cut for x in batch.rows["x"].to_pylist()] == [
        x for batch in whole for x in batch.rows["x"].to_pylist()
    ]
    assert [p for batch in cut for p in batch.pos.tolist()] == list(range(17))
    assert source.line_numbers(parts[3], cut[3].pos).tolist() == [1, 2, 3, 4]
    assert source.line_numbers(parts[4], cut[4].pos).tolist() == [5, 6, 7]


def test_a_split_of_text_is_one_part(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n2\n")
    source = open_source([str(tmp_path)], ReadOptions(), LocalExecutor())
    assert source.parts_of(source.splits[0]) == [source.splits[0]]


def test_what_is_kept_is_read_back_and_forgotten(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("x", pa.int64())])
    sink = FileSink(fs.LocalFileSystem(), str(tmp_path), "out", "parquet", schema, schema)
    for rows in (pa.record_batch({"x": [1, 2], "s": ["a", None]}), pa.record_batch({"x": pa.array([], pa.int64())})):
        sink.write_scratch("piece", rows)
        assert sink.read_scratch("piece").equals(rows)
    assert [path.name for path in (tmp_path / SCRATCH).iterdir()] == ["piece.arrow"]
    sink.drop_scratch()
    assert list(tmp_path.iterdir()) == []
