from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

from wincli.readers.options import parse_schema
from wincli.readers.values.types import arrow_type, column_type
from wincli.windowing.errors import SpecError
from wincli.windowing.support.column_types import plain


def test_names_and_types_of_a_schema_text() -> None:
    text = 'ts:timestamp(%d/%m/%y %H:%M), amount : Decimal(10,2),"a:b, ""c""":LONG,n:double,z:timestamp[tz]'
    assert parse_schema(text) == (
        ("ts", "timestamp(%d/%m/%y %H:%M)"),
        ("amount", "decimal(10,2)"),
        ('a:b, "c"', "int64"),
        ("n", "float64"),
        ("z", "timestamptz"),
    )


def test_a_format_may_hold_commas_colons_and_parentheses() -> None:
    assert parse_schema("t:timestamp(%a, %d (%b) %Y %H:%M),n:int") == (
        ("t", "timestamp(%a, %d (%b) %Y %H:%M)"),
        ("n", "int64"),
    )


@pytest.mark.parametrize(
    ("text", "message", "caret"),
    [
        ("n:intt", "unknown type 'intt'; did you mean 'int'?", "  ^^^^"),
        ("a:int,n", "this is not name:type", "      ^"),
        ("a:int,", "a column is missing here", "      ^"),
        ("a:int,a:int", "column 'a' is given twice", "      ^^^^^"),
        ("t:timestamp(%H", "this ( is never closed", "           ^"),
        ("t:timestamp(%Q)", "unknown directive '%Q'", "            ^^"),
        ("t:timestamp()", "an empty format", "           ^^"),
        ("d:decimal(2,3)", "this decimal has no right precision and scale", "  ^^^^^^^^^^^^"),
        ("d:decimal", "this decimal has no right precision and scale", "  ^^^^^^^"),
        ("n:int(5)", "int takes nothing in ( )", "     ^^^"),
        ("", "a column is missing here", "^"),
    ],
)
def test_a_schema_text_that_does_not_read_shows_where(text: str, message: str, caret: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_schema(text)
    first, source, line = str(caught.value).split("\n")
    assert first.startswith(message)
    assert source == f"  {text}"
    assert line == f"  {caret}"


def test_type_names_map_to_arrow_types() -> None:
    assert column_type("timestamp").type == pa.timestamp("us")
    assert column_type("timestamp(%H %z)").type == pa.timestamp("us", "UTC")
    assert column_type("decimal(10,2)").type == pa.decimal128(10, 2)
    assert column_type("date(%d)").format == "%d"


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.int64(), pa.uint64(), pa.float64(), pa.float32(), pa.bool_(), pa.string(), pa.binary(), pa.date32()),
        *(pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns", "Europe/Paris"), pa.duration("us")),
        *(pa.decimal128(38, 2), pa.list_(pa.string()), pa.list_(pa.list_(pa.timestamp("us"))), pa.null()),
    ],
)
def test_a_type_is_read_back_from_its_text(kind: pa.DataType) -> None:
    assert arrow_type(str(kind)) == kind


def test_a_type_text_that_no_result_holds_is_no_type() -> None:
    assert arrow_type("map<string, int64>") is None
    assert arrow_type("list<item: nonsense>") is None


def test_plain_types_have_no_dictionaries_views_or_large_offsets() -> None:
    assert plain(pa.dictionary(pa.int8(), pa.large_string())) == pa.string()
    assert plain(pa.list_(pa.field("element", pa.string_view()))) == pa.list_(pa.string())
    assert plain(pa.struct([("x", pa.large_binary())])) == pa.struct([("x", pa.binary())])
    assert plain(pa.int16()) == pa.int16()


def test_options_load_neither_pyarrow_nor_numpy() -> None:
    code = "import sys, wincli.readers.options; print(sorted({'pyarrow', 'numpy', 'numba'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
