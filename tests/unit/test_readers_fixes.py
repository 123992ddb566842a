"""Values and layouts that once read wrong, or not at all."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from readers.open import open_source
from readers.options import ReadOptions, parse_schema
from windowing.errors import SpecError


def read(path: Path, schema: str = "") -> tuple[list[object], pa.Table | None]:
    source = open_source(
        [str(path)], ReadOptions(schema=parse_schema(schema) if schema else ()), lambda f, xs: [*map(f, xs)]
    )
    batch = source.read(source.splits[0], ["x"])
    return batch.rows["x"].to_pylist(), batch.rejects


def test_a_twelve_hour_layout_needs_its_half_of_the_day(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="without '%p' nobody knows the half of the day of '%I'"):
        parse_schema("x:timestamp(%d/%m/%Y %I:%M)")
    (tmp_path / "a.csv").write_text("x\n03/11/2026 05:30 PM\n")
    found, _ = read(tmp_path / "a.csv", "x:timestamp(%d/%m/%Y %I:%M %p)")
    assert [str(value) for value in found] == ["2026-11-03 17:30:00"]


def test_a_reject_tells_times_that_python_has_no_value_for(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": pa.array([1001], pa.timestamp("ns"))}), tmp_path / "a.parquet")
    found, rejects = read(tmp_path / "a.parquet", "x:timestamp")
    assert found == []
    assert rejects is not None
    assert rejects["_detail"].to_pylist() == ["column x: 1970-01-01 00:00:00.000001001 is not a timestamp"]


def test_a_folder_with_a_plus_sign_is_text(tmp_path: Path) -> None:
    for folder in ("x=1", "x=+5"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.csv").write_text("y\n1\n")
    found, _ = read(tmp_path)
    assert found == ["+5"]
