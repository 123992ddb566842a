"""Hashes and digests of rows: equal values have equal ones however arrays hold them, other values have others."""

from __future__ import annotations

import decimal
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wincli.windowing.columns.row_digest import RowDigest
from wincli.windowing.columns.row_hashes import ROWS, RowHasher, hasher_of
from wincli.writers.formats.parquet import with_used_values

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_INTS = st.integers(-(2**63), 2**63 - 1)
_FLOATS = st.sampled_from([0.0, -0.0, math.nan, math.inf, 1.5]) | st.floats()
_TYPES = {
    pa.int64(): _INTS,
    pa.int8(): st.integers(-128, 127),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.bool_(): st.booleans(),
    pa.float64(): _FLOATS,
    pa.float32(): st.floats(width=32),
    pa.string(): _TEXTS,
    pa.binary(): st.binary(max_size=20),
    pa.binary(3): st.binary(min_size=3, max_size=3),
    pa.timestamp("us", "UTC"): _INTS,
    pa.date32(): st.integers(-1000, 1000),
    pa.decimal128(10, 2): st.decimals(-1000, 1000, places=2),
    pa.list_(pa.float64()): st.lists(st.none() | _FLOATS, max_size=3),
    pa.list_(pa.int32(), 2): st.lists(st.none() | st.integers(0, 3), min_size=2, max_size=2),
    pa.struct({"a": pa.int64(), "b": pa.string()}): st.fixed_dictionaries({"a": st.none() | _INTS, "b": _TEXTS}),
    pa.map_(pa.string(), pa.int64()): st.lists(st.tuples(_TEXTS, st.none() | _INTS), max_size=2),
}
_CODED = (pa.int64(), pa.string(), pa.float64(), pa.timestamp("us", "UTC"))


@st.composite
def _tables(draw: st.DrawFn) -> pa.Table:
    kinds = draw(st.lists(st.sampled_from(list(_TYPES)), min_size=1, max_size=4))
    rows = draw(st.integers(0, 12))
    columns = [pa.array(draw(st.lists(st.none() | _TYPES[k], min_size=rows, max_size=rows)), k) for k in kinds]
    return pa.table({f"c{at}": column for at, column in enumerate(columns)})


def _value(value: object) -> object:
    """A value as the rule reads: all NaN are one, -0.0 is 0.0; fields by name, items and entries by place."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    if isinstance(value, dict):
        return tuple(sorted((name, repr(_value(each))) for name, each in value.items()))
    if isinstance(value, list | tuple):
        return tuple(repr(_value(each)) for each in value)
    return value


def _rows(table: pa.Table) -> list[str]:
    return [repr([_value(each) for each in row.values()]) for row in table.to_pylist()]


def _hashes(table: pa.Table, schema: pa.Schema | None = None) -> list[int]:
    found: list[int] = RowHasher(schema or table.schema).hashes(table).tolist()
    return found


@given(table=_tables())
def test_two_rows_have_one_hash_exactly_if_their_values_are_equal(table: pa.Table) -> None:
    as_text = [str(each) for each in table.schema.types]
    if any("timestamp" in each for each in as_text):  # Python has no times of these years
        table = table.cast(
            pa.schema([f.with_type(pa.int64()) if pa.types.is_timestamp(f.type) else f for f in table.schema])
        )
    by_value = dict(zip(_rows(table), _hashes(table), strict=True))
    assert _hashes(table) == [by_value[row] for row in _rows(table)]
    assert len(set(by_value.values())) == len(by_value)


@given(table=_tables(), data=st.data())
def test_the_digest_does_not_depend_on_chunks_order_or_dictionaries(table: pa.Table, data: st.DataObject) -> None:
    digest = RowHasher(table.schema).digest(table)
    order = data.draw(st.permutations(range(table.num_rows)))
    cut = data.draw(st.integers(0, table.num_rows))
    moved = table.take(pa.array(order, pa.int64()))
    pieces = [moved.slice(0, cut), moved.slice(cut)]
    hasher = RowHasher(table.schema)
    assert hasher.digest(pa.concat_tables(pieces)) == digest
    assert hasher.digest(pieces[1]) + RowHasher(table.schema).digest(pieces[0]) == digest
    assert RowHasher(table.schema).digest(table.select(table.column_names[::-1])) == digest
    coded = [c.dictionary_encode() if c.type in _CODED else c for c in moved.columns]
    assert RowHasher(table.schema).digest(pa.table(coded, names=table.column_names).slice(0)) == digest


@given(table=_tables(), data=st.data())
def test_digests_by_code_add_up_to_that_of_all_rows(table: pa.Table, data: st.DataObject) -> None:
    codes = np.array(data.draw(st.lists(st.integers(0, 2), min_size=table.num_rows, max_size=table.num_rows)), np.int64)
    hasher = RowHasher(table.schema)
    for code, digest in enumerate(hasher.digests(table, codes, 3)):
        assert digest == RowHasher(table.schema).digest(table.filter(pa.array(codes == code)))


_ONE = pa.table({"a": [1, 2]})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (_ONE, _ONE.rename_columns(["b"])),
        (_ONE, _ONE.cast(pa.schema({"a": pa.int32()}))),
        (_ONE, _ONE.append_column("b", pa.nulls(2))),
        (_ONE, pa.table({"a": [1, 2, 2]})),
        (pa.table({"a": [1.0], "b": [2.0]}), pa.table({"a": [-1.0], "b": [-2.0]})),
        (pa.table({"a": [1], "b": [2]}), pa.table({"a": [2], "b": [1]})),
    ],
    ids=["name", "type", "column of nulls", "row that is there twice", "signs of two floats", "values change places"],
)
def test_other_rows_have_another_digest(one: pa.Table, other: pa.Table) -> None:
    assert RowHasher(one.schema).digest(one) != RowHasher(other.schema).digest(other)


def test_values_that_json_lacks_are_null_where_only_finite_ones_count() -> None:
    lossy = pa.table({"a": [1.0, math.nan, math.inf, None], "l": [[math.nan], [1.0], None, []]})
    null = pa.table({"a": [1.0, None, None, None], "l": [[None], [1.0], None, []]}, schema=lossy.schema)
    assert RowHasher(lossy.schema, finite=True).digest(lossy) == RowHasher(lossy.schema).digest(null)


def test_blocks_of_a_long_table_are_hashed_as_its_rows_are() -> None:
    size = 2 * ROWS + 3
    rows = pa.table({"a": np.arange(size), "b": pa.array((["x", None, "z"] * size)[:size])})
    found = np.array(_hashes(rows), np.uint64)
    assert found[ROWS + 5] == _hashes(rows.slice(ROWS + 5, 1))[0]
    assert len(set(found.tolist())) == rows.num_rows


def test_decimals_of_any_width_and_large_texts_have_the_words_of_their_values() -> None:
    value = [decimal.Decimal("1.50"), None]
    schema = pa.schema({"d": pa.decimal128(10, 2), "s": pa.string()})
    narrow = pa.table({"d": pa.array(value, pa.decimal128(10, 2)), "s": ["a", None]})
    wide = pa.table({"d": pa.array(value, pa.decimal256(40, 2)), "s": pa.array(["a", None], pa.large_string())})
    assert _hashes(narrow, schema) == _hashes(wide, schema)


@pytest.mark.parametrize("is_coded", [False, True])
def test_values_are_hashed_in_the_type_in_which_they_are_written(is_coded: bool) -> None:
    given = pa.table(
        {"t": pa.array([1000, None], pa.timestamp("us")), "x": [0.1, None], "n": pa.array([1, 2], pa.int8())}
    )
    schema = pa.schema({"t": pa.timestamp("ms"), "x": pa.float32(), "n": pa.int64()})
    coded = pa.table([column.dictionary_encode() for column in given.columns], names=given.column_names)
    assert _hashes(coded if is_coded else given, schema) == _hashes(given.cast(schema))


def test_a_digest_reads_back_from_its_text_and_from_no_other() -> None:
    digest = RowDigest(1, 2**64 - 1)
    assert str(digest) == "rows1:ffffffffffffffff0000000000000001"
    texts = [str(digest), None, "", "rows1:12", "rows2:" + "0" * 32, 5]
    assert [RowDigest.parse(text) for text in texts] == [digest, *[None] * 5]


def test_a_union_has_no_hash() -> None:
    union = pa.dense_union([pa.field("a", pa.int64())])
    assert hasher_of(pa.schema({"a": pa.list_(union)})) is None


@pytest.mark.parametrize("values", ["abcde", "abcab"])
@given(codes=st.lists(st.none() | st.integers(0, 4), max_size=12), kind=st.sampled_from([pa.int8(), pa.int32()]))
def test_a_dictionary_keeps_the_values_that_its_column_uses_once(
    values: str, codes: list[int | None], kind: pa.DataType
) -> None:
    column = pa.DictionaryArray.from_arrays(pa.array(codes, kind), pa.array(list(values)))
    found = with_used_values(column)
    assert (found.type, found.to_pylist()) == (column.type, column.to_pylist())
    used = sorted({code for code in codes if code is not None})
    assert found.dictionary.to_pylist() == list(dict.fromkeys(values[code] for code in used))
