"""Names of partition folders: as Hive and Spark write them, and read back as the same values."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wincli.readers.files.walk import folder_values
from wincli.windowing.errors import DataError
from wincli.writers.output.partitioning import NULL, can_name, escape, folders_of

HIVE_ESCAPES = [*range(1, 0x20), 0x7F, *map(ord, "\"#%'*/:=?\\{[]^")]
"""The characters that `ExternalCatalogUtils.escapePathName` of Spark escapes."""


def names(values: list[Any], kind: pa.DataType | None = None) -> list[str]:
    """Return the folder of each value of a column ``x``, without its name."""
    codes, folders = folders_of(["x"], [pa.chunked_array([pa.array(values, kind)])])
    assert len(set(folders)) == len(folders)
    return [folders[code].removeprefix("x=") for code in codes]


def test_the_characters_that_hive_escapes_are_escaped_and_no_others() -> None:
    for code in range(1, 0x300):
        assert escape(chr(code)) == (f"%{code:02X}" if code in HIVE_ESCAPES else chr(code))
    assert escape("\0") == "%00", "no file system takes it as it is"


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1, -5, None], pa.int64(), ["1", "-5", NULL]),
        ([True, False], None, ["true", "false"]),
        ([dt.date(2026, 11, 1)], None, ["2026-11-01"]),
        ([dt.date(2026, 11, 1)], pa.date64(), ["2026-11-01"]),
        ([dt.datetime(2026, 11, 1)], pa.timestamp("us"), ["2026-11-01 00%3A00%3A00"]),
        ([dt.datetime(2026, 11, 1, 1, 2, 3, 450_000)], pa.timestamp("ns"), ["2026-11-01 01%3A02%3A03.45"]),
        ([1_793_494_800], pa.timestamp("s", "Europe/Berlin"), ["2026-11-01 01%3A00%3A00"]),
        ([dt.time(10, 0), dt.time(10, 0, 0, 500)], None, ["10%3A00%3A00", "10%3A00%3A00.0005"]),
        ([Decimal("0.00000001"), Decimal("2.50000000")], pa.decimal128(12, 8), ["0.00000001", "2.50000000"]),
        ([0.0, -0.0, 1.0, 0.001, 1e-4, 1e7, 9_999_999.5, -1.5e300], None,
         ["0.0", "-0.0", "1.0", "0.001", "1.0E-4", "1.0E7", "9999999.5", "-1.5E300"]),
        ([float("nan"), float("inf"), -float("inf"), None], None, ["NaN", "Infinity", "-Infinity", NULL]),
        ([0.1, 3e10], pa.float32(), ["0.1", "3.0E10"]),
        (["a", "", None, "..", "a b", "é", "A"], None, ["a", NULL, NULL, "..", "a b", "é", "A"]),
        ([None, None], pa.null(), [NULL, NULL]),
    ],
)  # fmt: skip
def test_values_are_written_as_spark_casts_them_to_text(values: Any, kind: Any, expected: list[str]) -> None:
    assert names(values, kind) == expected


def test_rows_of_a_dictionary_and_of_several_chunks_get_the_folders_of_their_values() -> None:
    column = pa.chunked_array([pa.array(["a", None, "b"]), pa.array([], pa.string()), pa.array(["b", ""])])
    for each in (column, column.dictionary_encode()):
        codes, folders = folders_of(["x", "y=z"], [each, pa.chunked_array([pa.array([1, 1, 1, 2, 1])])])
        rows = [folders[code] for code in codes]
        assert rows == [f"x={x}/y%3Dz={y}" for x, y in [("a", 1), (NULL, 1), ("b", 1), ("b", 2), (NULL, 1)]]


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=20) | st.none(), min_size=1))
def test_a_reader_of_hive_folders_gets_the_texts_back(values: list[str | None]) -> None:
    for name, value in zip(names(values, pa.string()), values, strict=True):
        assert "/" not in name
        assert folder_values(f"x={name}/part-00000.parquet") == {"x": None if value in ("", NULL) else value}


def test_a_value_that_no_folder_can_be_named_by_is_an_error_that_says_so() -> None:
    with pytest.raises(DataError, match="a folder with 302 bytes, and a name has at most 255: x=aaaa"):
        names(["a" * 300])
    bad = pa.array([b"\xff"], pa.binary()).view(pa.string())
    with pytest.raises(DataError, match=r"no UTF-8 text: b'\\xff'"):
        folders_of(["x"], [pa.chunked_array([bad])])
    assert not any(map(can_name, [pa.binary(), pa.list_(pa.int8()), pa.duration("s"), pa.struct([("a", pa.int8())])]))
