"""The first rows of an input: those that a whole read has first, from no more files and bytes than hold them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from support.readers import put, read_all, source
from support.strategies import examples
from wincli.readers.formats.csv import CsvReader
from wincli.readers.formats.jsonl import JsonReader

ROWS = [(7, 10), (0, 10), (5, 2), (4, 10)]
"""For each file its rows, and the rows of a group."""


@pytest.fixture(params=["csv", "jsonl", "parquet", "orc", "csv.gz"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Four files, whose rows are numbered through."""
    first = 0
    for number, (rows, group) in enumerate(ROWS):
        n = pa.array(range(first, first + rows), pa.int64())
        options = {"row_group_size": group} if request.param == "parquet" else {}
        t = pa.array(["x" * (at % 4) for at in range(rows)], pa.string())
        put(tmp_path / f"{number}.{request.param}", {"n": n, "t": t}, **options)
        first += rows
    return tmp_path


@pytest.mark.parametrize("split_bytes", [1, 20, 1 << 20])
def test_the_first_rows_are_those_of_a_whole_read(log: Path, split_bytes: int) -> None:
    whole = read_all(source(log, split_bytes=split_bytes))
    for limit in (1, 6, 7, 8, 12, 13, 16, 17):
        opened = source(log, split_bytes=split_bytes, limit=limit)
        found = read_all(opened)
        assert (found.rows, found.pos, found.lines) == (whole.rows[:limit], whole.pos[:limit], whole.lines[:limit])
        assert opened.is_cut == (limit < 16)
        ends = [split.file for split in opened.splits if split.ends_file]
        sizes = [rows for rows, _ in ROWS]
        assert ends == [file for file in range(len(opened.files)) if sum(sizes[: file + 1]) <= limit]


def test_files_beyond_the_first_rows_are_not_opened(log: Path) -> None:
    last = next(log.glob("3.*"))
    last.write_bytes(b"\xff\xfe no file of any format")
    opened = source(log, limit=8)
    assert [Path(file.path).name[0] for file in opened.files] == ["0", "1", "2"]
    assert [row["n"] for row in read_all(opened).rows] == list(range(8))


def test_types_and_rejects_are_those_of_the_first_rows_however_the_file_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" + "1,2\n" * 49 + "3\n" + "x,2.5\n" + "3,4\n4\n" * 50)
    for split_bytes in (1, 7, 100, 1 << 20):
        for limit, kinds in ((50, [pa.int64(), pa.int64()]), (51, [pa.string(), pa.float64()])):
            opened = source(path, limit=limit, split_bytes=split_bytes)
            assert opened.schema.types == kinds
            found = read_all(opened)
            assert (len(found.rows), [each["_row"] for each in found.rejects]) == (limit - 1, [51])
    packed = tmp_path / "y.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert [each["_row"] for each in read_all(source(packed, limit=51)).rejects] == [51]


@pytest.mark.parametrize(
    ("reader", "head", "line"), [(CsvReader, "a,b\n", "1,2\n"), (JsonReader, "", '{"a": 1, "b": 2}\n')]
)
def test_of_a_large_file_only_the_beginning_is_scanned(tmp_path: Path, reader: Any, head: str, line: str) -> None:
    path = tmp_path / ("x.csv" if head else "x.jsonl")
    path.write_text(head + line * ((24 << 20) // len(line)))
    scanned: list[int] = []
    real = reader.scan

    def scan(self: Any, byte_range: Any) -> Any:
        result = real(self, byte_range)
        scanned.append(result.nbytes)
        return result

    with mock.patch.object(reader, "scan", scan):
        opened = source(path, limit=10)
    assert sum(split.rows for split in opened.splits) == 10
    assert sum(scanned) < 20 << 20


LINES = st.lists(st.sampled_from(["1,2", "3", "", "x,y", "5,6,7", '"a,b",1', "é,2"]), max_size=12)


@examples(60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LINES, st.sampled_from(["\n", "\r\n", "\r"]), st.booleans(), st.integers(1, 8), st.integers(1, 40))
def test_any_text_is_cut_behind_its_first_records(
    tmp_path: Path, lines: list[str], end: str, ends: bool, limit: int, split_bytes: int
) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes((end.join(["a,b", *lines]) + (end if ends else "")).encode())
    schema = "a:string, b:string"
    whole, found = (
        read_all(source(path, schema=schema, split_bytes=split_bytes, **more)) for more in ({}, {"limit": limit})
    )
    kept = [at for at in whole.pos if at < limit]
    assert (found.pos, found.rows) == (kept, whole.rows[: len(kept)])
    assert found.rejects == whole.rejects[: len(found.rejects)]
    every = len(whole.pos) + len(whole.rejects)
    assert len(found.pos) + len(found.rejects) == min(limit, every)
    assert source(path, limit=limit, split_bytes=split_bytes).schema == source(path, limit=limit).schema
