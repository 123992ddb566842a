"""Enrich tables in tasks of Spark: read whole, and through an exchange."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from references.enrichment import matches
from support.readers import source
from wincli.windowing.engine import enrich
from wincli.windowing.engine.enrich import load_tables
from wincli.windowing.enrichment.binding import bind_enrichment
from wincli.windowing.enrichment.step import Enrich
from wincli.windowing.language.enrichment import parse_enrichment
from wincli.windowing.spark.boot import SparkExecutor
from wincli.writers.output.sink import FileSink


@pytest.mark.parametrize("direction", ["backward", "nearest"])
@pytest.mark.parametrize("small", [1 << 20, -1], ids=["whole", "exchange"])
def test_tasks_find_the_rows_of_a_table(session: SparkExecutor, tmp_path: Path, small: int, direction: str) -> None:
    left = pa.table({"k": [f"k{i * 7 % 11}" for i in range(500)], "t": [i // 3 for i in range(500)]})
    right = pa.table({"k": [f"k{i * 5 % 13}" for i in range(200)], "t": [i // 2 for i in range(200)], "v": range(200)})
    pq.write_table(left, tmp_path / "left.parquet", row_group_size=64)
    pq.write_table(right, tmp_path / "right.parquet", row_group_size=64)
    base, table = (
        source(tmp_path / "left.parquet", split_bytes=512),
        source(tmp_path / "right.parquet", split_bytes=512),
    )
    assert len(base.splits) > 1
    bound = bind_enrichment(
        parse_enrichment(f"p=x on k asof {direction} t within 40 take v"), base.schema, table.schema
    )
    (tmp_path / "staging").mkdir()
    sink = FileSink(
        pa.fs.LocalFileSystem(), str(tmp_path / "staging"), "out", "parquet", left.schema, left.schema
    ).for_tables()
    enriched = base.with_steps([Enrich(bound, table)])
    with mock.patch.object(enrich, "SMALL_TABLE", small):
        loaded, _ = load_tables(enriched, sink, session, None, 500)

    def read(split: Any) -> list[Any]:
        return loaded.read(split, ["p_v"]).rows["p_v"].to_pylist()

    found = [value for values in session.map("read", read, loaded.splits) for value in values]
    expected = matches(left.to_pylist(), right.to_pylist(), [("k", "k")], ("t", "t"), 40, direction=direction)
    assert found == expected
    sink.drop_scratch()
    assert not list((tmp_path / "staging").iterdir())
