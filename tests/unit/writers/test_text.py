"""CSV and JSON Lines parts: exact to the last bit, and valid for any reader."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv as arrow_csv
from pyarrow import json as arrow_json

from wincli.windowing.errors import DataError
from wincli.writers.formats import csv, jsonl, text


def as_csv(table: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    csv.ENCODER.encode([table], table.schema, sink)
    return str(sink.getvalue().to_pybytes(), "utf8")


def as_jsonl(table: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    jsonl.ENCODER.encode([table], table.schema, sink)
    return str(sink.getvalue().to_pybytes(), "utf8")


def from_csv(content: str, schema: pa.Schema) -> pa.Table:
    options = arrow_csv.ConvertOptions(column_types=schema, strings_can_be_null=True, quoted_strings_can_be_null=False)
    parse = arrow_csv.ParseOptions(newlines_in_values=True)
    return arrow_csv.read_csv(io.BytesIO(content.encode()), parse_options=parse, convert_options=options)


def from_jsonl(content: str, schema: pa.Schema) -> pa.Table:
    options = arrow_json.ParseOptions(explicit_schema=schema, newlines_in_values=False)
    return arrow_json.read_json(io.BytesIO(content.encode()), parse_options=options)


WINDOWS = pa.table(
    {
        "user": pa.array(["ann", "", None]).dictionary_encode(),
        "window": [0, 1, 2],
        "start": pa.array([0, 1_500_000, None], pa.timestamp("us")),
        "spent": [0.1, 2.0, None],
    }
)


def test_csv_of_windows() -> None:
    assert as_csv(WINDOWS).splitlines() == [
        '"user","window","start","spent"',
        '"ann",0,1970-01-01 00:00:00.000000,0.1',
        '"",1,1970-01-01 00:00:01.500000,2',
        ",2,,",
    ]


def test_jsonl_of_windows() -> None:
    assert as_jsonl(WINDOWS).splitlines() == [
        '{"user":"ann","window":0,"start":"1970-01-01T00:00:00.000000","spent":0.1}',
        '{"user":"","window":1,"start":"1970-01-01T00:00:01.500000","spent":2.0}',
        '{"user":null,"window":2,"start":null,"spent":null}',
    ]


def test_no_rows_leave_a_header_or_nothing() -> None:
    assert as_csv(WINDOWS.slice(0, 0)) == '"user","window","start","spent"\n'
    assert as_jsonl(WINDOWS.slice(0, 0)) == ""
    assert as_jsonl(WINDOWS.schema.empty_table()) == ""


CELLS: list[tuple[pa.DataType, object, str, str]] = [
    (pa.int64(), -(2**63), "-9223372036854775808", "-9223372036854775808"),
    (pa.uint64(), 2**64 - 1, "18446744073709551615", "18446744073709551615"),
    (pa.bool_(), True, "true", "true"),
    (pa.float64(), 1e300, "1e+300", "1e+300"),
    (pa.float64(), -0.0, "-0", "-0.0"),
    (pa.float64(), math.nan, "nan", "null"),
    (pa.float64(), -math.inf, "-inf", "null"),
    (pa.float32(), 0.1, "0.1", "0.1"),
    (pa.float16(), 1.5, "1.5", "1.5"),
    (pa.decimal128(20, 3), decimal.Decimal("1.5"), "1.500", '"1.500"'),
    (pa.date32(), dt.date(2026, 11, 1), "2026-11-01", '"2026-11-01"'),
    (pa.time32("s"), dt.time(1, 2, 3), "01:02:03", '"01:02:03"'),
    (pa.duration("ms"), dt.timedelta(seconds=1), "1000", "1000"),
    (pa.timestamp("s"), dt.datetime(2026, 11, 1), "2026-11-01 00:00:00", '"2026-11-01T00:00:00"'),
    (pa.timestamp("ns"), 1, "1970-01-01 00:00:00.000000001", '"1970-01-01T00:00:00.000000001"'),
    (pa.timestamp("ms", "Europe/Paris"), 0, "1970-01-01 00:00:00.000Z", '"1970-01-01T00:00:00.000Z"'),
    (pa.timestamp("s", "Europe/Paris"), -(10**10), "1653-02-10 06:13:20Z", '"1653-02-10T06:13:20Z"'),
    (pa.string(), 'say "hi", \\', '"say ""hi"", \\"', '"say \\"hi\\", \\\\"'),
    (pa.large_string(), "a\nb\x00\x1f", '"a\nb\x00\x1f"', '"a\\nb\\u0000\\u001f"'),
    (pa.string_view(), "ü€🙂\u2028", '"ü€🙂\u2028"', '"ü€🙂\u2028"'),
    (pa.binary(), b"\x00\xff", '"00ff"', '"00ff"'),
    (pa.binary(2), b"\x00\xff", '"00ff"', '"00ff"'),
    (pa.large_binary(), b"", '""', '""'),
    (pa.list_(pa.int64()), [1, None], '"[1,null]"', "[1,null]"),
    (pa.list_(pa.float64()), [math.nan, 2.0], '"[null,2.0]"', "[null,2.0]"),
    (pa.large_list(pa.string()), ['"', ""], r'"[""\"""",""""]"', '["\\"",""]'),
    (pa.list_(pa.int8(), 2), [1, 2], '"[1,2]"', "[1,2]"),
    (pa.list_(pa.list_(pa.bool_())), [[True], [], None], '"[[true],[],null]"', "[[true],[],null]"),
    (
        pa.struct([("a", pa.int64()), ("b c", pa.string())]),
        {"a": 1, "b c": None},
        '"{""a"":1,""b c"":null}"',
        '{"a":1,"b c":null}',
    ),
]


@pytest.mark.parametrize(("kind", "value", "in_csv", "in_json"), CELLS, ids=lambda x: str(x)[:24])
def test_one_value_of_each_type(kind: pa.DataType, value: object, in_csv: str, in_json: str) -> None:
    array = pa.array([None, value, None], kind)
    table = pa.table({"x": array, "y": [1, 2, 3]})
    assert as_csv(table) == f'"x","y"\n,1\n{in_csv},2\n,3\n'
    assert as_jsonl(table) == f'{{"x":null,"y":1}}\n{{"x":{in_json},"y":2}}\n{{"x":null,"y":3}}\n'
    assert as_jsonl(table.slice(1, 1)) == f'{{"x":{in_json},"y":2}}\n'


def test_column_names_are_escaped() -> None:
    table = pa.table({'a "b",\\': [1]})
    assert as_csv(table) == '"a ""b"",\\"\n1\n'
    assert json.loads(as_jsonl(table)) == {'a "b",\\': 1}


def of_year(year: int, kind: pa.DataType) -> pa.Array:
    """The beginning of a year of any number of digits."""
    day = int(np.datetime64(f"{year:04}-01-01", "D").astype(np.int64))
    return pa.array([day], pa.int32()).cast(pa.date32()).cast(kind) if kind == pa.date32() else stamps(day, kind)


def stamps(day: int, kind: pa.DataType) -> pa.Array:
    return pa.array([day * 86_400], pa.timestamp("s")).cast(pa.timestamp(kind.unit)).cast(kind)


@pytest.mark.parametrize(("year", "shown"), [(0, "0000"), (-5, "-0005"), (10_000, "10000"), (32_767, "32767")])
def test_years_of_more_or_less_than_four_digits_are_written_as_they_are(year: int, shown: str) -> None:
    kinds = {"t": pa.timestamp("us"), "z": pa.timestamp("s", "UTC"), "d": pa.date32()}
    table = pa.table({name: of_year(year, kind) for name, kind in kinds.items()})
    line = f"{shown}-01-01 00:00:00.000000,{shown}-01-01 00:00:00Z,{shown}-01-01"
    assert as_csv(table).splitlines()[1] == line
    assert list(json.loads(as_jsonl(table)).values()) == line.replace(" ", "T").split(",")


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("s", "UTC"), pa.date32()], ids=str)
@pytest.mark.parametrize("write", [as_csv, as_jsonl])
@pytest.mark.parametrize("year", [32_768, -32_768])
def test_years_that_have_no_text_are_an_error(kind: pa.DataType, write: Any, year: int) -> None:
    with pytest.raises(DataError, match=r"column 'seen' holds a .* outside the years -32767 to 32767"):
        write(pa.table({"seen": of_year(year, kind)}))


@pytest.mark.parametrize("write", [as_csv, as_jsonl])
def test_the_last_and_the_first_instant_of_four_digit_years_are_fine(write: Any) -> None:
    edges = pa.array([-62_135_596_800_000_000, 253_402_300_799_999_999, None], pa.timestamp("us"))
    content = write(pa.table({"seen": edges, "n": [1, 2, 3]}))
    assert "0001-01-01" in content
    assert "9999-12-31" in content


def test_long_tables_are_cut_and_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "_BATCH_BYTES", 64)
    table = pa.table({"n": range(100), "s": [f"{i}-{'x' * (i % 7)}" for i in range(100)]})
    assert [json.loads(line) for line in as_jsonl(table).splitlines()] == table.to_pylist()
    assert from_csv(as_csv(table), table.schema).equals(table)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "s": st.none() | TEXT,
            "i": st.none() | st.integers(-(2**63), 2**63 - 1),
            "f": st.none() | st.floats(allow_nan=False, allow_infinity=False),
            "t": st.none() | st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999),
            "b": st.none() | st.booleans(),
        }
    ),
    min_size=1,
    max_size=12,
)
SCHEMA = pa.schema(
    [("s", pa.string()), ("i", pa.int64()), ("f", pa.float64()), ("t", pa.timestamp("us")), ("b", pa.bool_())]
)


def bits(table: pa.Table) -> list[dict[str, Any]]:
    """The rows, floats by their bits so that -0.0 and 0.0 differ."""
    return [
        {**row, "f": None if row["f"] is None else row["f"].hex()}
        for row in table.cast(table.schema.set(3, pa.field("t", pa.int64()))).to_pylist()
    ]


@given(ROWS)
def test_csv_comes_back_as_the_same_bits(rows: list[dict[str, Any]]) -> None:
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    assert bits(from_csv(as_csv(table), SCHEMA)) == bits(table)


@given(ROWS)
def test_jsonl_comes_back_as_the_same_bits(rows: list[dict[str, Any]]) -> None:
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    content = as_jsonl(table)
    assert bits(from_jsonl(content, SCHEMA)) == bits(table)
    parsed = [json.loads(line) for line in content.split("\n")[:-1]]
    assert [{k: r[k] for k in "sib"} for r in parsed] == [{k: r[k] for k in "sib"} for r in rows]
    assert [r["f"] if r["f"] is None else r["f"].hex() for r in parsed] == [
        r["f"] if r["f"] is None else r["f"].hex() for r in rows
    ]


@given(st.lists(st.none() | st.lists(st.none() | TEXT, max_size=4), min_size=1, max_size=6), st.integers(0, 3))
def test_lists_of_text_come_back(lists: list[list[str | None] | None], skip: int) -> None:
    table = pa.table({"x": pa.array(lists, pa.list_(pa.string()))}).slice(skip)
    assert [json.loads(line)["x"] for line in as_jsonl(table).split("\n")[:-1]] == lists[skip:]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_json_floats_never_look_like_integers(values: list[float]) -> None:
    parsed = [json.loads(line)["f"] for line in as_jsonl(pa.table({"f": values})).splitlines()]
    assert all(isinstance(value, float) for value in parsed)
    assert parsed == values


@given(st.lists(st.none() | st.decimals(-(10**9), 10**9, places=9), min_size=1), st.sampled_from([as_csv, as_jsonl]))
def test_decimals_are_exact(values: list[decimal.Decimal | None], write: Any) -> None:
    schema = pa.schema([("n", pa.int64()), ("d", pa.decimal128(20, 9))])
    table = pa.table([range(len(values)), pa.array(values, pa.decimal128(20, 9))], schema=schema)
    if write is as_csv:
        assert from_csv(as_csv(table), schema).equals(table)
    else:
        back = [json.loads(line)["d"] for line in as_jsonl(table).splitlines()]
        assert [value if value is None else decimal.Decimal(value) for value in back] == values


@given(st.lists(st.none() | st.binary(max_size=5), max_size=6), st.integers(0, 3))
def test_binary_is_hexadecimal(values: list[bytes | None], skip: int) -> None:
    array = text.hexadecimal(pa.array(values, pa.binary()).slice(skip))
    assert array.to_pylist() == [value if value is None else value.hex() for value in values[skip:]]


def test_parts_of_csv_join_under_one_header_though_a_name_has_line_ends(tmp_path: Path) -> None:
    schema = pa.schema([('a\n"b"\nc', pa.int64()), ("d", pa.string())])
    paths = [tmp_path / f"{number}.csv" for number in range(3)]
    for number, path in enumerate(paths):
        with path.open("wb") as file:
            csv.ENCODER.encode([pa.table([[number], ["x\ny"]], schema=schema)], schema, file)
    with (tmp_path / "all.csv").open("wb") as whole:
        csv.ENCODER.join(paths, whole)
    rows = "".join(f'{number},"x\ny"\n' for number in range(3))
    assert (tmp_path / "all.csv").read_text() == f'"a\n""b""\nc","d"\n{rows}'
