"""Types of columns: which holds two, which a text gives, and how a schema text names them."""

from __future__ import annotations

import subprocess
import sys
from itertools import permutations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wincli.readers.options import parse_schema
from wincli.readers.values.kinds import join, kind_of_texts, type_of
from wincli.readers.values.types import arrow_type, column_type, unify
from wincli.windowing.errors import InputError, SpecError
from wincli.windowing.support.column_types import common_type, plain, schema_entry, type_of_text

TYPES = [
    *(pa.null(), pa.int8(), pa.uint8(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64(), pa.float32(), pa.float64()),
    *(pa.decimal128(10, 2), pa.decimal128(5, 4), pa.bool_(), pa.string(), pa.binary(), pa.date32()),
    *(pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("us", "UTC"), pa.duration("ms"), pa.duration("us")),
    *(pa.list_(pa.int64()), pa.list_(pa.float64()), pa.struct([("x", pa.int64())]), pa.struct([("y", pa.string())])),
]


@pytest.mark.parametrize(
    ("a", "b", "wide"),
    [
        (pa.int8(), pa.int32(), pa.int32()),
        (pa.uint8(), pa.int8(), pa.int16()),
        (pa.uint32(), pa.int32(), pa.int64()),
        (pa.uint64(), pa.int64(), None),
        (pa.int64(), pa.float64(), pa.float64()),
        (pa.int64(), pa.float32(), pa.float64()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.null(), pa.string(), pa.string()),
        (pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("us")),
        (pa.timestamp("ns", "UTC"), pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC")),
        (pa.timestamp("us", "UTC"), pa.timestamp("us"), None),
        (pa.timestamp("us"), pa.timestamp("us", "Europe/Paris"), None),
        (pa.time32("s"), pa.time64("us"), pa.time64("us")),
        (pa.time32("s"), pa.time32("ms"), pa.time32("ms")),
        (pa.time64("us"), pa.time64("ns"), pa.time64("ns")),
        (pa.time64("us"), pa.timestamp("us"), None),
        (pa.date32(), pa.timestamp("us"), pa.timestamp("us")),
        (pa.date32(), pa.timestamp("us", "UTC"), None),
        (pa.decimal128(10, 2), pa.decimal128(5, 4), pa.decimal128(12, 4)),
        (pa.decimal128(38, 0), pa.decimal128(38, 10), pa.decimal256(48, 10)),
        (pa.decimal128(10, 2), pa.int32(), pa.decimal128(12, 2)),
        (pa.decimal128(10, 2), pa.float64(), None),
        (pa.int64(), pa.string(), None),
        (pa.bool_(), pa.int64(), None),
        (pa.list_(pa.int32()), pa.list_(pa.float64()), pa.list_(pa.float64())),
        (pa.list_(pa.int32()), pa.list_(pa.string()), None),
        (
            pa.struct([("x", pa.int64())]),
            pa.struct([("x", pa.float64()), ("y", pa.bool_())]),
            pa.struct([("x", pa.float64()), ("y", pa.bool_())]),
        ),
    ],
)
def test_the_type_that_holds_both(a: pa.DataType, b: pa.DataType, wide: pa.DataType | None) -> None:
    assert common_type(a, b) == wide
    assert common_type(b, a) == wide


def test_instants_of_two_zones_keep_the_zone_that_comes_first_and_the_finest_unit() -> None:
    paris, utc = pa.timestamp("ms", "Europe/Paris"), pa.timestamp("ns", "UTC")
    assert common_type(paris, utc) == pa.timestamp("ns", "Europe/Paris")
    assert common_type(utc, paris) == utc


@pytest.mark.parametrize(
    "kind",
    [*TYPES, pa.time32("ms"), pa.time64("ns"), pa.float16(), pa.list_(pa.struct([("a", pa.decimal128(9, 3))]))],
    ids=str,
)
def test_a_type_is_read_back_from_its_text(kind: pa.DataType) -> None:
    assert type_of_text(str(kind)) == kind


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        (pa.dictionary(pa.int32(), pa.large_string()), pa.string()),
        (pa.large_list(pa.large_string()), pa.list_(pa.string())),
        (pa.struct([pa.field("a", pa.int64(), False), pa.field("b c", pa.map_(pa.string(), pa.int8()))]), None),
        (pa.date64(), pa.date32()),
        (pa.binary(4), None),
    ],
    ids=str,
)
def test_the_text_of_a_type_gives_its_plain_form_or_none(kind: pa.DataType, form: pa.DataType | None) -> None:
    assert type_of_text(str(kind)) == form


@given(st.sampled_from(TYPES), st.sampled_from(TYPES))
def test_widening_is_symmetric_and_neutral_to_itself(a: pa.DataType, b: pa.DataType) -> None:
    wide = common_type(a, b)
    if pa.types.is_struct(a) and pa.types.is_struct(b):
        assert {f.name for f in wide} == {f.name for f in common_type(b, a)}
    else:
        assert common_type(b, a) == wide
    assert common_type(a, a) == a
    if wide is not None:
        assert common_type(wide, a) == wide


def test_columns_come_in_order_of_first_appearance() -> None:
    one, two = pa.schema([("a", pa.int64()), ("b", pa.null())]), pa.schema([("c", pa.bool_()), ("b", pa.string())])
    found = unify([("1", one), ("2", two)], {})
    assert found.schema == pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.bool_())])
    assert found.places == {"a": "1", "b": "2", "c": "2"}


def test_known_types_come_first_and_columns_that_only_they_have_come_last() -> None:
    paris, utc = pa.timestamp("us", "Europe/Paris"), pa.timestamp("us", "UTC")
    known = [("the state", pa.schema([("x", pa.int64()), ("gone", pa.string()), ("at", paris), ("y", pa.float64())]))]
    file = ("1", pa.schema([("at", utc), ("y", pa.int8()), ("x", pa.float32()), ("new", pa.null())]))
    found = unify([file], {}, known)
    fields = [("at", paris), ("y", pa.float64()), ("x", pa.float64()), ("new", pa.null()), ("gone", pa.string())]
    assert found.schema == pa.schema(fields)
    assert found.places == {"at": "the state", "y": "the state", "x": "1", "new": "1", "gone": "the state"}


FILES = [
    ("in/1.csv", pa.schema([("n", pa.null())])),
    ("in/2.csv", pa.schema([("n", pa.int64())])),
    ("in/3.csv", pa.schema([("n", pa.string())])),
]


def test_a_clash_names_both_files_the_column_the_types_and_the_entry_that_settles_it() -> None:
    with pytest.raises(InputError) as caught:
        unify(FILES, {}, is_text=True)
    assert str(caught.value) == (
        "column 'n' is int64 in in/2.csv and string in in/3.csv; "
        "read it as one type with --schema 'n:string', or cast it in one of them"
    )
    assert unify(FILES, {"n": pa.string()}).schema == pa.schema([("n", pa.string())])


def test_a_clash_with_what_is_known_keeps_the_type_that_is_known() -> None:
    with pytest.raises(InputError) as caught:
        unify(FILES[2:], {}, [("the state st at 2026-11-01", pa.schema([("n", pa.int64())]))])
    assert str(caught.value) == (
        "column 'n' is int64 in the state st at 2026-11-01 and string in in/3.csv; "
        "read it as it was, with --schema 'n:int64'"
    )


@pytest.mark.parametrize(
    ("a", "b", "is_text", "entry"),
    [
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), False, "'n:timestamptz'"),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), True, "'n:string'"),
        (pa.decimal128(9, 2), pa.float64(), False, "'n:float64'"),
        (pa.uint64(), pa.int64(), False, "'n:decimal(20,0)'"),
        (pa.bool_(), pa.int64(), False, "'n:string'"),
        (pa.list_(pa.int64()), pa.string(), True, "no type of --schema"),
    ],
)
def test_the_entry_reads_the_values_of_both_types(a: pa.DataType, b: pa.DataType, is_text: bool, entry: str) -> None:
    with pytest.raises(InputError) as caught:
        unify([("1", pa.schema([("n", a)])), ("2", pa.schema([("n", b)]))], {}, is_text=is_text)
    assert entry in caught.value.do


@pytest.mark.parametrize("name", ["n", " n", "a:b", 'say "n"'])
def test_the_entry_of_a_schema_names_the_column(name: str) -> None:
    entry = schema_entry(name, "string").removeprefix("--schema '").removesuffix("'")
    assert parse_schema(entry) == ((name, "string"),)


TEXTS = {
    "2020-01-01": pa.date32(),
    "9999-12-31": pa.date32(),
    "2020-01-01 10:00:00": pa.timestamp("us"),
    "2020-01-01T10:00:00.123456": pa.timestamp("us"),
    "2020-01-01 10:00:00.1234567": pa.timestamp("ns"),
    "9999-12-31T00:00:00": pa.timestamp("us"),
    "2020-01-01T10:00:00Z": pa.timestamp("us", "UTC"),
    "2020-01-01T10:00:00.123456789+02:00": pa.timestamp("ns", "UTC"),
    "12:30": pa.string(),
    "x": pa.string(),
}


def kind_of_all(texts: list[str | None]) -> int:
    return kind_of_texts(pa.chunked_array([pa.array(texts, pa.string())]))


@pytest.mark.parametrize(("text", "kind"), TEXTS.items())
def test_the_type_of_a_text(text: str, kind: pa.DataType) -> None:
    assert type_of(kind_of_all([text, None])) == kind


def test_the_type_of_a_column_is_that_of_its_values_joined_in_any_order() -> None:
    for texts in permutations(TEXTS, 3):
        a, b, c = (kind_of_all([text]) for text in texts)
        assert type_of(kind_of_all(list(texts))) == type_of(join(join(a, b), c)) == type_of(join(a, join(b, c)))


# Names and types in a schema text


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
def test_the_type_of_a_result_is_read_back_from_its_text(kind: pa.DataType) -> None:
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
