"""Files of rejected rows: no value is lost, and every engine reads them."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import json as arrow_json

from wincli.windowing.engine.rejects import reject_schema
from wincli.windowing.support.plain_values import readable
from wincli.writers.formats import text as rejects

PARIS = pa.timestamp("s", "Europe/Paris")
NAN, INF = float("nan"), float("inf")


def unchecked(*values: bytes | None) -> pa.StringArray:
    """Texts as a Parquet file may hold them: nobody has looked whether they are UTF-8."""
    return pa.array(values, pa.binary()).view(pa.string())


def encoded(rows: pa.Table, reason: str = "late", text: pa.Array | None = None) -> str:
    size = rows.num_rows
    told = [pa.array([value] * size) for value in (reason, "in/a.csv")] + [pa.array(range(1, size + 1), pa.int64())]
    told += [pa.nulls(size, pa.string()), pa.nulls(size, pa.string()) if text is None else text]
    schema = reject_schema(rows.schema)
    sink = pa.BufferOutputStream()
    rejects.encode([pa.Table.from_arrays([*told, rows.to_struct_array()], schema=schema)], schema, sink)
    return sink.getvalue().to_pybytes().decode()


def written(column: pa.Array) -> list[Any]:
    """What stands in the file for each value of a column."""
    lines = encoded(pa.table({"x": column})).split("\n")
    return [json.loads(line, parse_float=str)["row"]["x"] for line in lines if line]


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
    assert written(column) == want


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
    (line,) = encoded(pa.table({odd: [odd]})).split("\n")[:-1]
    assert json.loads(line)["row"] == {odd: odd}


ROWS = pa.table(
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
    path.write_text(encoded(ROWS))
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
    path.write_text(encoded(pa.table({"x": [1.5, NAN, -INF, None], "y": [1.0, 2.0, 3.0, 4.0]})))
    duck = duckdb.sql(f"select (row.x->>'$')::double from read_json_auto('{path}')").fetchall()
    assert str(duck) == "[(1.5,), (nan,), (-inf,), (None,)]"
    assert polars.read_ndjson(path)["row"].struct.field("x").to_list() == ["1.5", "NaN", "-Infinity", None]
    asked = pa.schema([("line", pa.int64()), ("row", pa.struct([("y", pa.float64())]))])
    options = arrow_json.ParseOptions(explicit_schema=asked, unexpected_field_behavior="ignore")
    assert arrow_json.read_json(path, parse_options=options)["row"].to_pylist()[3] == {"y": 4.0}
