"""CSV and JSON Lines parts, and files of rejected rows: exact to the last bit, and valid for any reader."""

from __future__ import annotations

import datetime as dt
import io
import json
import math
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv as arrow_csv
from pyarrow import json as arrow_json

from support.strategies import examples
from wincli.windowing.engine.rejects import reject_schema
from wincli.windowing.errors import DataError
from wincli.windowing.support.plain_values import readable
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


def test_windows_in_each_form() -> None:
    assert as_csv(WINDOWS).splitlines() == [
        '"user","window","start","spent"',
        '"ann",0,1970-01-01 00:00:00.000000,0.1',
        '"",1,1970-01-01 00:00:01.500000,2',
        ",2,,",
    ]
    assert as_jsonl(WINDOWS).splitlines() == [
        '{"user":"ann","window":0,"start":"1970-01-01T00:00:00.000000","spent":0.1}',
        '{"user":"","window":1,"start":"1970-01-01T00:00:01.500000","spent":2.0}',
        '{"user":null,"window":2,"start":null,"spent":null}',
    ]
    assert as_csv(WINDOWS[:0]) == '"user","window","start","spent"\n'
    assert as_jsonl(WINDOWS[:0]) == as_jsonl(WINDOWS.schema.empty_table()) == ""


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
    (pa.decimal128(20, 3), Decimal("1.5"), "1.500", '"1.500"'),
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


@pytest.mark.parametrize(
    ("year", "shown"), [(0, "0000"), (-5, "-0005"), (1, "0001"), (9_999, "9999"), (10_000, "10000"), (32_767, "32767")]
)
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


def test_long_tables_are_cut_and_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "_BATCH_BYTES", 64)
    table = pa.table({"n": range(100), "s": [f"{i}-{'x' * (i % 7)}" for i in range(100)]})
    assert [json.loads(line) for line in as_jsonl(table).splitlines()] == table.to_pylist()
    assert from_csv(as_csv(table), table.schema).equals(table)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "s": (pa.string(), TEXT),
    "i": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "f": (pa.float64(), st.floats(allow_nan=False, allow_infinity=False)),
    "t": (pa.timestamp("us"), st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)),
    "b": (pa.bool_(), st.booleans()),
    "d": (pa.decimal128(20, 9), st.decimals(-(10**9), 10**9, places=9)),
    "x": (pa.binary(), st.binary(max_size=5)),
    "l": (pa.list_(pa.string()), st.lists(st.none() | TEXT, max_size=4)),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in VALUES.items()])
ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, (_, values) in VALUES.items()}), min_size=1, max_size=12
)


def bits(table: pa.Table) -> list[dict[str, Any]]:
    """The rows, floats by their bits so that -0.0 and 0.0 differ."""
    rows = table.cast(table.schema.set(3, pa.field("t", pa.int64()))).to_pylist()
    return [{**row, "f": None if row["f"] is None else row["f"].hex()} for row in rows]


@given(ROWS, st.integers(0, 3))
@examples(200)
def test_rows_of_each_form_come_back_as_the_same_bits(rows: list[dict[str, Any]], skip: int) -> None:
    table = pa.Table.from_pylist(rows, schema=SCHEMA)[min(skip, len(rows) - 1) :]
    digits = [None if value is None else value.hex() for value in table["x"].to_pylist()]
    as_text = pa.schema([field.with_type(pa.string()) if field.name in "xl" else field for field in SCHEMA])
    back = from_csv(as_csv(table), as_text)
    assert bits(back.drop(["x", "l"])) == bits(table.drop(["x", "l"]))
    assert back["x"].to_pylist() == digits
    assert [value and json.loads(value) for value in back["l"].to_pylist()] == table["l"].to_pylist()
    content, told = as_jsonl(table), table.drop(["d", "x", "l"])
    assert bits(from_jsonl(content, told.schema).select(told.column_names)) == bits(told)
    for row, found, hexadecimal in zip(table.to_pylist(), content.split("\n")[:-1], digits, strict=True):
        parsed = json.loads(found)
        assert {name: parsed[name] for name in "sifbl"} == {name: row[name] for name in "sifbl"}
        assert parsed["f"] is None or isinstance(parsed["f"], float), "it never looks like an integer"
        assert parsed["d"] is None or Decimal(parsed["d"]) == row["d"]
        assert (parsed["d"] is None, parsed["x"]) == (row["d"] is None, hexadecimal)


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


# Files of rejected rows: no value is lost, and every engine reads them


PARIS = pa.timestamp("s", "Europe/Paris")
NAN, INF = float("nan"), float("inf")


def unchecked(*values: bytes | None) -> pa.StringArray:
    """Texts as a Parquet file may hold them: nobody has looked whether they are UTF-8."""
    return pa.array(values, pa.binary()).view(pa.string())


def encoded_rejects(rows: pa.Table) -> str:
    size = rows.num_rows
    told = [pa.array([value] * size) for value in ("late", "in/a.csv")] + [pa.array(range(1, size + 1), pa.int64())]
    told += [pa.nulls(size, pa.string())] * 2
    schema = reject_schema(rows.schema)
    sink = pa.BufferOutputStream()
    text.encode([pa.Table.from_arrays([*told, rows.to_struct_array()], schema=schema)], schema, sink)
    return sink.getvalue().to_pybytes().decode()


@pytest.mark.parametrize(
    ("column", "want"),
    [
        (pa.array([2**63 - 1, -(2**63), None]), [2**63 - 1, -(2**63), None]),
        (pa.array([2**64 - 1], pa.uint64()), [2**64 - 1]),
        (pa.array([0.1, -0.0, 1e300, None]), ["0.1", "-0.0", "1e+300", None]),
        (pa.array([NAN, INF, -INF, None]), ["NaN", "Infinity", "-Infinity", None]),
        (pa.array([1.5, NAN], pa.float16()), ["1.5", "NaN"]),
        (pa.array([Decimal("12345678901234567890.123456789")]), ["12345678901234567890.123456789"]),
        (pa.array([Decimal("1" * 60 + ".5")], pa.decimal256(70, 1)), ["1" * 60 + ".5"]),
        (pa.array([0, 2**62], pa.timestamp("us")), ["1970-01-01T00:00:00.000000", f"{2**62} us since 1970-01-01"]),
        (pa.array([1, -(2**62)], PARIS), ["1970-01-01T00:00:01Z", f"{-(2**62)} s since 1970-01-01"]),
        (pa.array([253_402_300_799_999_999, 253_402_300_800_000_000], pa.timestamp("us")),
         ["9999-12-31T23:59:59.999999", "253402300800000000 us since 1970-01-01"]),
        (pa.array([2**63 - 1], pa.timestamp("ns")), ["2262-04-11T23:47:16.854775807"]),
        (pa.array([0, 2**31 - 1, None], pa.date32()), ["1970-01-01", "2147483647 days since 1970-01-01", None]),
        (pa.array([1], pa.time64("us")), ["00:00:00.000001"]),
        (pa.array([-2], pa.duration("ms")), [-2]),
        (pa.array([b"\xff\0", b"", None]), ["ff00", "", None]),
        (pa.array([b"ab"], pa.binary(2)), ["6162"]),
        (unchecked(b"caf\xe9\\", "caf\u00e9\\".encode(), None), ["caf\\xe9\\\\", "caf\u00e9\\", None]),
        (pa.array([[1.5, NAN], None, []]), [["1.5", "NaN"], None, []]),
        (pa.array([{"a": {"b": [INF]}}, {"a": None}, None]), [{"a": {"b": ["Infinity"]}}, {"a": None}, None]),
        (pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())), [[{"key": "k", "value": 1}], [], None]),
        (pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a":1}'])), ['{"a":1}']),
        (pa.nulls(2), [None, None]),
        (pa.array([{}, None], pa.struct([])), [{}, None]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)  # fmt: skip
def test_no_value_is_lost_or_refused(column: pa.Array, want: list[Any]) -> None:
    lines = encoded_rejects(pa.table({"x": column})).split("\n")
    assert [json.loads(line, parse_float=str)["row"]["x"] for line in lines if line] == want


@given(st.lists(st.sampled_from([b"\\", b"x", b"ff", b"\xff", b"\xe9", "\u00e9".encode(), b"\n"])).map(b"".join))
def test_bytes_that_are_no_text_can_be_had_back(data: bytes) -> None:
    text = readable(data)
    if text.encode() != data:
        escaped = re.sub(rb"\\(\\|x..)", lambda found: _byte(found[1]), text.encode())
        assert escaped == data
    else:
        assert text == data.decode()


def _byte(escape: bytes) -> bytes:
    return b"\\" if escape == b"\\" else bytes.fromhex(escape[1:].decode())


def test_every_line_is_json_whatever_the_texts_hold() -> None:
    odd = "".join(map(chr, range(0x20))) + '"\\/\u2028\x7f\U0001f600'
    (line,) = encoded_rejects(pa.table({odd: [odd]})).split("\n")[:-1]
    assert json.loads(line)["row"] == {odd: odd}


REJECTED = pa.table(
    {
        "ts": pa.array([None, 1_700_000_000_000_000, 0], pa.timestamp("us", "UTC")),
        "user": ["a", None, 'q"'],
        "n": [2**53 + 1, None, -1],
        "price": [Decimal("1.10"), None, Decimal("2.20")],
        "tags": [[1, 2], [], None],
    }
)


def test_duckdb_polars_and_pyarrow_read_them(tmp_path: Path) -> None:
    path = tmp_path / "rejects-00000.ndjson"
    path.write_text(encoded_rejects(REJECTED))
    want = [2**53 + 1, None, -1]
    duck = duckdb.sql(f"select line, row.n, row.price::decimal(9,2), row.ts::timestamptz is null from '{path}'")
    assert duck.fetchall() == [
        (1, want[0], Decimal("1.10"), True),
        (2, None, None, False),
        (3, want[2], Decimal("2.20"), False),
    ]
    frame = polars.read_ndjson(path)
    assert frame["row"].struct.field("n").to_list() == want
    assert frame["row"].struct.field("tags").to_list() == [[1, 2], [], None]
    read = arrow_json.read_json(path)
    assert [row and row["n"] for row in read["row"].to_pylist()] == want


def test_engines_read_a_float_column_with_values_that_json_lacks(tmp_path: Path) -> None:
    """As text where it holds such a value; pyarrow, which takes one kind of value a column, where it is told which."""
    path = tmp_path / "rejects-00000.ndjson"
    path.write_text(encoded_rejects(pa.table({"x": [1.5, NAN, -INF, None], "y": [1.0, 2.0, 3.0, 4.0]})))
    duck = duckdb.sql(f"select (row.x->>'$')::double from read_json_auto('{path}')").fetchall()
    assert str(duck) == "[(1.5,), (nan,), (-inf,), (None,)]"
    assert polars.read_ndjson(path)["row"].struct.field("x").to_list() == ["1.5", "NaN", "-Infinity", None]
    asked = pa.schema([("line", pa.int64()), ("row", pa.struct([("y", pa.float64())]))])
    options = arrow_json.ParseOptions(explicit_schema=asked, unexpected_field_behavior="ignore")
    assert arrow_json.read_json(path, parse_options=options)["row"].to_pylist()[3] == {"y": 4.0}
