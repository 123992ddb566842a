"""Values and layouts that once read wrong, or not at all."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wincli.readers.formats.split_rows import converted
from wincli.readers.open import open_source
from wincli.readers.options import ReadOptions, parse_schema
from wincli.readers.values.types import ColumnType
from wincli.windowing.errors import SpecError
from wincli.windowing.local_executor import LocalExecutor


def read(path: Path, schema: str = "") -> tuple[list[object], pa.Table | None]:
    source = open_source([str(path)], ReadOptions(schema=parse_schema(schema) if schema else ()), LocalExecutor())
    batch = source.read(source.splits[0], ["x"])
    return batch.rows["x"].to_pylist(), batch.rejects


def test_a_twelve_hour_layout_needs_its_half_of_the_day(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="'%p' is missing, which gives the half of the day of '%I'"):
        parse_schema("x:timestamp(%d/%m/%Y %I:%M)")
    (tmp_path / "a.csv").write_text("x\n03/11/2026 05:30 PM\n")
    found, _ = read(tmp_path / "a.csv", "x:timestamp(%d/%m/%Y %I:%M %p)")
    assert [str(value) for value in found] == ["2026-11-03 17:30:00"]


def test_caret_points_at_the_hour_and_not_at_a_percent_sign() -> None:
    with pytest.raises(SpecError) as caught:
        parse_schema("x:timestamp(%%I %I)")
    assert (caught.value.span.start, caught.value.span.stop) == (16, 18)


@pytest.mark.parametrize("directive", ["b", "B", "h"])
def test_a_month_is_its_three_letters_or_its_whole_name(tmp_path: Path, directive: str) -> None:
    good = ["Jan", "january", "MAY", "Sep", "September", "dec", "December"]
    bad = ["Janxyz", "Janu", "Septembers", "Sept", "Mayy", "Ja", "Januarys", "Decembrrr"]
    (tmp_path / "a.csv").write_text("x\n" + "".join(f"1 {word} 2026\n" for word in good + bad))
    found, rejects = read(tmp_path / "a.csv", f"x:date(%d %{directive} %Y)")
    assert [value.month for value in found] == [1, 1, 5, 9, 9, 12, 12]  # type: ignore[attr-defined]
    assert rejects is not None
    assert rejects["_text"].to_pylist() == [f"1 {word} 2026" for word in bad]


def test_reject_shows_times_beyond_the_range_of_python(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": pa.array([1001], pa.timestamp("ns"))}), tmp_path / "a.parquet")
    found, rejects = read(tmp_path / "a.parquet", "x:timestamp")
    assert found == []
    assert rejects is not None
    assert rejects["_detail"].to_pylist() == ["column x: 1970-01-01 00:00:00.000001001 is not a timestamp"]


WITHOUT_PANDAS = """
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pandas":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Block())
from wincli.readers.open import open_source
from wincli.readers.options import ReadOptions, parse_schema
from wincli.windowing.local_executor import LocalExecutor

source = open_source([sys.argv[1]], ReadOptions(schema=parse_schema("x:timestamp")), LocalExecutor())
print(source.read(source.splits[0], ["x"]).rejects["_detail"].to_pylist())
assert "pandas" not in sys.modules
"""


def test_nanoseconds_are_shown_without_pandas(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": pa.array([1001], pa.timestamp("ns"))}), path)
    command = [sys.executable, "-c", WITHOUT_PANDAS, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "['column x: 1970-01-01 00:00:00.000001001 is not a timestamp']", done.stderr


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        (pa.timestamp("us"), 2**58, "11103-08-29 17:22:31.711744"),
        (pa.date32(), 10**7, "29349-01-26"),
        (pa.timestamp("us", "No/Where"), 5, "5"),
        (pa.duration("ns"), 1001, "1001"),
        (pa.int64(), 5, "5"),
    ],
)
def test_every_value_has_a_text(kind: pa.DataType, value: int, shown: str) -> None:
    numbers = pa.array([value], pa.int32() if pa.types.is_date(kind) else pa.int64())
    _, details = converted({"x": pa.chunked_array([numbers.cast(kind)])}, {"x": ColumnType(pa.list_(pa.bool_()))})
    assert details == {0: f"column x: {shown} is not a list<item: bool>"}


def test_a_folder_with_a_plus_sign_is_text(tmp_path: Path) -> None:
    for folder in ("x=1", "x=+5"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.csv").write_text("y\n1\n")
    found, _ = read(tmp_path)
    assert found == ["+5"]


def test_folder_values_of_many_digits_are_text(tmp_path: Path) -> None:
    (tmp_path / f"x={'1' * 19}").mkdir()
    (tmp_path / f"x={'1' * 19}" / "a.csv").write_text("y\n1\n")
    found, _ = read(tmp_path)
    assert found == ["1" * 19]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("year", [-32_767, -5, -1, 0, 1, 9_999, 10_000, 10_400, 32_767])
@pytest.mark.parametrize(
    ("schema", "kind"),
    [("timestamp", pa.timestamp("us")), ("timestamptz", pa.timestamp("us", "UTC")), ("date", pa.date32())],
)
def test_years_of_any_number_of_digits_read_back_as_results_have_them(
    tmp_path: Path, form: str, year: int, schema: str, kind: pa.DataType
) -> None:
    days = [int(np.datetime64(f"{year:04}-{rest}", "D").astype(np.int64)) for rest in ("01-01", "02-28", "12-31")]
    ticks = days if kind == pa.date32() else [day * 86_400 * 10**6 + 3_600_000_001 for day in [*days, 0]]
    column = pa.array(ticks, pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
    encoder = import_module(f"wincli.writers.formats.{form}").ENCODER
    with (tmp_path / f"a.{form}").open("wb") as file:
        encoder.encode([pa.table({"x": column})], pa.schema([("x", kind)]), file)
    source = open_source(
        [str(tmp_path / f"a.{form}")], ReadOptions(schema=parse_schema(f"x:{schema}")), LocalExecutor()
    )
    batch = source.read(source.splits[0], ["x"])
    assert batch.rejects is None
    assert batch.rows["x"].combine_chunks().equals(column)


@pytest.mark.parametrize("value", ["10000-02-30", "-0005-01-32", "10000-1-1", "-12345", "100000-01-01", "10000-01-01x"])
def test_other_texts_with_many_digits_are_no_times(tmp_path: Path, value: str) -> None:
    (tmp_path / "a.csv").write_text(f"x\n{value}\n10000-01-02\n")
    for schema in ("x:date", "x:timestamp"):
        rows = open_source([str(tmp_path / "a.csv")], ReadOptions(schema=parse_schema(schema)), LocalExecutor())
        batch = rows.read(rows.splits[0], ["x"])
        assert (len(batch.rows), batch.rejects.num_rows) == (1, 1)


def test_a_year_that_nanoseconds_do_not_hold_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n10000-01-01 00:00:00\n")
    found, rejects = read(tmp_path / "a.csv", "x:timestamp_ns")
    assert (found, rejects.num_rows if rejects is not None else 0) == ([], 1)
