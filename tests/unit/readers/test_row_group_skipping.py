"""A condition that Parquet statistics rule out is not read: the positions of the other rows are what they were."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wincli.readers.open import open_source
from wincli.readers.options import ReadOptions
from wincli.readers.source import FileSource
from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.local_executor import LocalExecutor
from wincli.windowing.rows.projection import Project, RowExpressions, make_projection, stored_condition

ROWS, GROUP = 10_000, 1_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    random = np.random.default_rng(1)
    table = pa.table(
        {
            "ts": np.arange(ROWS),
            "name": [f"n{i // GROUP}" for i in range(ROWS)],
            "x": random.random(ROWS),
            "sparse": pa.array([i if i < GROUP else None for i in range(ROWS)], pa.int64()),
        }
    )
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "log.parquet", row_group_size=GROUP)
    return tmp_path / "in"


def source_of(folder: Path, where: str) -> FileSource:
    source = open_source([str(folder)], ReadOptions(), LocalExecutor())
    projection = make_projection(source.schema, RowExpressions((), parse_expression(where)))
    return source.with_steps([Project(projection, (), stored_condition(projection))])


@pytest.mark.parametrize(
    ("where", "groups"),
    [
        ("ts BETWEEN 2500 AND 3500", 2),
        ("ts < 0", 0),
        ("name = 'n7'", 1),
        ("ts >= 9000 OR ts < 1000", 2),
        ("sparse IS NOT NULL", 1),
        ("ts > 8999 AND x > 2", 1),  # NaN is above all numbers, and statistics do not tell of it
        ("x > 0.5", 10),
        ("ts % 2 = 0", 10),
    ],
)
def test_row_groups_without_such_rows_are_not_read(folder: Path, where: str, groups: int) -> None:
    source = source_of(folder, where)
    (split,) = source.splits
    batch = source.read(split, ["ts", "x"])
    assert len(batch.pos) == groups * GROUP
    assert batch.skipped == ROWS - groups * GROUP
    assert batch.pos.tolist() == batch.rows["ts"].to_pylist()
    (step,) = source.steps
    plain = source.with_steps([replace(step, condition=None)]).read(split, ["ts", "x"])
    kept = [batch.pos if batch.kept is None else batch.pos[batch.kept] for batch in (batch, plain)]
    assert kept[0].tolist() == kept[1].tolist()


def test_the_bytes_of_other_row_groups_stay_on_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    groups: list[int] = []
    read = pq.ParquetFile.read_row_groups

    def noting(self: pq.ParquetFile, numbers: list[int], **options: object) -> pa.Table:
        groups.extend(numbers)
        stored = [self.metadata.row_group(each) for each in numbers]
        names = options["columns"]
        bytes_read.extend(
            group.column(at).total_compressed_size
            for group in stored
            for at in range(group.num_columns)
            if group.column(at).path_in_schema in names
        )
        return read(self, numbers, **options)

    bytes_read: list[int] = []
    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", noting)
    source = source_of(folder, "ts BETWEEN 2500 AND 3500")
    source.read(source.splits[0], ["x"])
    assert groups == [2, 3]
    assert sum(bytes_read) < (folder / "log.parquet").stat().st_size / 3


def test_rows_that_an_expression_may_fail_for_are_read(folder: Path) -> None:
    source = source_of(folder, "CAST(name AS INT) > 1")
    assert source.read(source.splits[0], ["x"]).skipped == 0
