"""Both sides of a join read as one input: positions, columns, rejects, and parts of several inputs."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from wincli.readers.joined import join_sources, left_files, sides_of
from wincli.readers.open import open_source
from wincli.readers.options import ReadOptions
from wincli.readers.order_ranges import OrderRange, SourceRange, merge
from wincli.readers.source import FileSource
from wincli.windowing.language.joins import parse_join
from wincli.windowing.language.parser import parse_window
from wincli.windowing.local_executor import LocalExecutor
from wincli.windowing.planning.sides import bind_sides
from wincli.windowing.rows.projection import RowExpressions

LEFT = "ts,k,v\n1,a,10\n4,b,20\nzz,a\n8,,30\n"
RIGHT = {"at": [1.0, 2.0, 5.0], "sym": ["a", "b", "a"], "mid": pa.array([1, 2, 3], pa.int32())}


def _open(path: Path) -> FileSource:
    return open_source([str(path)], ReadOptions(), LocalExecutor())


@pytest.fixture
def logs(tmp_path: Path) -> tuple[FileSource, FileSource]:
    (tmp_path / "left" / "dt=2026-01-01").mkdir(parents=True)
    (tmp_path / "left" / "dt=2026-01-01" / "x.csv").write_text(LEFT)
    pq.write_table(pa.table(RIGHT), tmp_path / "right.parquet")
    return _open(tmp_path / "left"), _open(tmp_path / "right.parquet")


def _joined(logs: tuple[FileSource, FileSource], more: str = "") -> FileSource:
    left, right = logs
    join = parse_join(f"q=other on k=sym by ts=at left {more}")
    window: Any = parse_window("around(2, 1)")
    return join_sources(left, right, bind_sides(join, window, left.schema, right.schema))


def _rows(source: FileSource, columns: list[str]) -> list[tuple[Any, ...]]:
    found = []
    for split in source.splits:
        batch = source.read(split, columns)
        found += list(zip(batch.pos.tolist(), *(batch.rows[name].to_pylist() for name in columns), strict=True))
    return found


def test_rows_of_both_sides_have_one_key_and_one_order_and_null_in_what_they_lack(
    logs: tuple[FileSource, FileSource],
) -> None:
    source = pickle.loads(pickle.dumps(_joined(logs)))
    assert source.schema.names == ["q_at", "q_mid", "_side", "ts", "k", "v", "dt"]
    assert source.schema.field("ts").type == pa.float64()
    assert source.schema.field("q_mid").type == pa.int32()
    assert _rows(source, ["_side", "k", "ts", "q_mid", "v"]) == [
        (0, 2, "a", 1.0, 1, None),
        (1, 2, "b", 2.0, 2, None),
        (2, 2, "a", 5.0, 3, None),
        (3, 1, "a", 1.0, None, 10),
        (4, 1, "b", 4.0, None, 20),
        (6, 1, None, 8.0, None, 30),
    ]
    assert [split.rows for split in source.splits] == [3, 4]
    assert _rows(source, []) == [(0,), (1,), (2,), (3,), (4,), (6,)]


def test_a_column_of_either_side_may_have_no_name(tmp_path: Path) -> None:
    pq.write_table(pa.table({**RIGHT, "": [7, 8, 9]}), tmp_path / "nameless.parquet")
    pq.write_table(pa.table({"ts": [6.0], "k": ["a"], "": ["x"]}), tmp_path / "left.parquet")
    source = _joined((_open(tmp_path / "left.parquet"), _open(tmp_path / "nameless.parquet")))
    assert _rows(source, ["ts", "q_", ""]) == [
        (0, 1.0, 7, None),
        (1, 2.0, 8, None),
        (2, 5.0, 9, None),
        (3, 6.0, None, "x"),
    ]


def test_the_left_arrives_first_where_the_join_is_strict(logs: tuple[FileSource, FileSource]) -> None:
    source = _joined(logs, "strict")
    assert _rows(source, ["_side"]) == [(0, 1), (1, 1), (3, 1), (4, 2), (5, 2), (6, 2)]


def test_a_key_that_is_only_a_key_is_read_as_a_dictionary(logs: tuple[FileSource, FileSource]) -> None:
    source = _joined(logs)
    kinds = {source.read(split, ["k", "_side"], ["k"]).rows["k"].type for split in source.splits}
    assert kinds == {pa.dictionary(pa.int32(), pa.string())}


def test_rejects_and_lines_are_those_of_the_file(logs: tuple[FileSource, FileSource]) -> None:
    source = _joined(logs)
    batch = source.read(source.splits[1], ["ts"])
    assert batch.rejects is not None
    assert batch.rejects["_row"].to_pylist() == [4]
    assert source.line_numbers(source.splits[1], batch.pos).tolist() == [2, 3, 5]
    assert source.file_name(source.splits[0]) == "right.parquet"


def test_files_of_the_left_are_told_apart(logs: tuple[FileSource, FileSource]) -> None:
    source = _joined(logs)
    assert len(source.files) == 2
    assert [Path(file.path).name for file in left_files(source)] == ["x.csv"]
    assert sides_of(source) is not None
    assert sides_of(logs[0]) is None
    assert list(left_files(logs[0])) == list(logs[0].files)


def test_parts_of_two_inputs_keep_both_sides(logs: tuple[FileSource, FileSource], tmp_path: Path) -> None:
    wide = pa.table({**RIGHT, "mid": pa.array([2**40, 5, 6])})
    pq.write_table(wide, tmp_path / "later.parquet")
    one, two = _joined(logs), _joined((logs[0], _open(tmp_path / "later.parquet")))
    bound = pa.table({"ts": [2.0]})
    ranges = [SourceRange(one, 0, OrderRange(bound)), SourceRange(two, 100, OrderRange(None, bound))]
    source = merge(ranges, RowExpressions())
    assert source.schema.field("q_mid").type == pa.int64()
    assert _rows(source, ["_side", "ts", "q_mid"]) == [
        (1, 2, 2.0, 2),
        (2, 2, 5.0, 3),
        (4, 1, 4.0, None),
        (6, 1, 8.0, None),
        (100, 2, 1.0, 2**40),
        (103, 1, 1.0, None),
    ]
    assert list(source.rights) == ["q"]
