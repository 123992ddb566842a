from __future__ import annotations

from itertools import permutations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wincli.readers.schema.kinds import join, kind_of_texts, type_of
from wincli.readers.schema.unify import common_type, unify
from wincli.windowing.errors import InputError

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
        (pa.timestamp("us", "UTC"), pa.timestamp("us", "Europe/Paris"), None),
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
    assert unify([("1", one), ("2", two)], {}) == pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.bool_())])


def test_a_clash_names_both_files_the_column_and_the_types() -> None:
    files = [
        ("in/1.csv", pa.schema([("n", pa.null())])),
        ("in/2.csv", pa.schema([("n", pa.int64())])),
        ("in/3.csv", pa.schema([("n", pa.string())])),
    ]
    with pytest.raises(InputError) as caught:
        unify(files, {})
    assert str(caught.value) == (
        "column 'n' is int64 in in/2.csv and string in in/3.csv; "
        "give it one type with --schema 'n:TYPE', or cast it in one of them"
    )
    assert unify(files, {"n": pa.string()}) == pa.schema([("n", pa.string())])


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
