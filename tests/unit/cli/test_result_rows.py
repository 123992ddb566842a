"""The rows of a result, read back as a table: in order, in their types, and only where a condition can be true."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.in_process import wincli_here
from wincli.cli.inspection.results.result import open_result_folder, open_rows, rejects_of
from wincli.windowing.errors import DamagedError, InputError
from wincli.windowing.expressions.syntax import parse_expression

ROWS = 40


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of two users, with one row whose time is missing."""
    times = [None if row == 7 else row * 1_000_000 for row in range(ROWS)]
    columns = {"user": ["a", "b"] * (ROWS // 2), "ts": pa.array(times, pa.timestamp("us")), "amount": [1.5] * ROWS}
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    return tmp_path


def run(folder: Path, *options: str) -> None:
    words = ["run", "--window", "count(2)", "--key", "user", "--order-by", "ts", *options, "log.parquet", "out"]
    found = wincli_here(*words, cwd=folder)
    assert found.code == 0, found.stderr


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl", "orc"])
def test_rows_come_in_order_and_in_the_types_of_the_manifest(log: Path, form: str) -> None:
    run(log, "--output-format", form)
    result = open_result_folder(str(log / "out"))
    found = pa.concat_tables(result.rows.tables(["user", "window", "window_start"]))
    assert found.schema.types == [pa.string(), pa.int64(), pa.timestamp("us")]
    assert found["user"].to_pylist() == ["a"] * 10 + ["b"] * 10
    assert found["window"].to_pylist() == [*range(10)] * 2
    assert result.manifest["rows_out"] == found.num_rows


def test_a_condition_leaves_out_rows_and_the_parts_that_cannot_have_any(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(log)
    table = pq.read_table(next((log / "out").glob("part-*.parquet")))
    pq.write_table(table, log / "few.parquet", row_group_size=5)
    result = open_rows(str(log / "few.parquet"))
    read: list[int] = []
    inner = type(result.source).read

    def counting(self: object, split: object, *rest: object) -> object:
        read.append(1)
        return inner(self, split, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(type(result.source), "read", counting)
    where = parse_expression("user = 'b' and \"window\" >= 7")
    found = pa.concat_tables(result.tables(["window"], where))
    assert found["window"].to_pylist() == [7, 8, 9]
    assert len(read) == 1, "one of four row groups has windows of b from 5 on"


def test_rejects_are_rows_too(log: Path) -> None:
    run(log)
    rejects = rejects_of(open_result_folder(str(log / "out")))
    assert rejects is not None
    found = pa.concat_tables(rejects.tables())
    assert found["reason"].to_pylist() == ["null_order"]


def test_a_result_without_rejects_has_none(log: Path) -> None:
    run(log, "--where", "ts is not null")
    assert rejects_of(open_result_folder(str(log / "out"))) is None


def test_what_is_no_result_is_told(log: Path) -> None:
    with pytest.raises(InputError, match="is no result of wincli"):
        open_result_folder(str(log))
    run(log)
    with pytest.raises(InputError, match="is no result of wincli"):
        open_result_folder(str(log / "out" / "_wincli"))


def test_a_part_that_is_gone_is_told(log: Path) -> None:
    run(log)
    next((log / "out").glob("part-*.parquet")).unlink()
    with pytest.raises(DamagedError, match="lacks part-"):
        open_result_folder(str(log / "out"))
