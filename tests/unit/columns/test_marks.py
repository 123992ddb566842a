"""Marks: a set of none keeps nothing of the rows that it was made beside."""

from __future__ import annotations

import gc

import pyarrow as pa

from wincli.windowing.rows.marks import no_marks


def test_no_marks_keep_no_rows_in_memory() -> None:
    pool = pa.default_memory_pool()
    before = pool.bytes_allocated()
    rows = pa.record_batch({"t": pa.array(range(100_000), pa.int64())})
    marks = no_marks(rows, ["t"])
    del rows
    gc.collect()
    assert marks.rows.schema == pa.schema({"t": pa.int64()})
    assert pool.bytes_allocated() - before < 100_000
