"""Keys in order, whichever way they are put there: by radix, by merging runs, or by hashing them first."""

from __future__ import annotations

import gc
import math
from bisect import bisect_left
from itertools import accumulate
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import strategies as my
from wincli.windowing.columns import sort_keys
from wincli.windowing.columns.arrays import combined
from wincli.windowing.columns.radix_sort import radix_order, ranked_words
from wincli.windowing.columns.sort_keys import distinct
from wincli.windowing.columns.text_sort import merge_runs, ranked, take_column
from wincli.windowing.rows import sequence
from wincli.windowing.rows.marks import no_marks
from wincli.windowing.rows.merge import merge
from wincli.windowing.rows.sequence import Sequences, build, concatenate, group_codes, lower_bounds, order_of

TEXTS = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]
KINDS = [kind for kind in my.SORTABLE if not pa.types.is_decimal256(kind)]
KINDS += [pa.float16(), pa.time32("s"), pa.time64("us"), pa.date64(), pa.binary(3), pa.large_binary()]


@st.composite
def words(draw: st.DrawFn) -> list[int]:
    """Words that vary in few bits or in all of them."""
    shift, width = draw(st.integers(0, 63)), draw(st.integers(1, 64))
    some = st.integers(0, 2**width - 1).map(lambda n: n << shift & 2**64 - 1)
    return draw(st.lists(some, max_size=60))


@st.composite
def byte_texts(draw: st.DrawFn) -> list[bytes]:
    """Texts that begin alike, that go on where others end, with zeros in them, and again and again the same."""
    pieces = [b"", b"\0", b"a", b"b", b"\xff", b"-", b",", b"7", b"seven77", b"eight888", b"a long piece of text"]
    piece = st.sampled_from(draw(st.lists(st.sampled_from(pieces), min_size=1, max_size=len(pieces))))
    some = draw(st.lists(st.lists(piece, max_size=4).map(b"".join), min_size=1, max_size=12))
    prefix = draw(st.sampled_from([b"", b"user-", b"https://example.com/a/b/"]))
    return [prefix + text for text in draw(st.lists(st.sampled_from(some), max_size=40))]


def in_type(texts: list[bytes], kind: pa.DataType, before: int = 0) -> pa.Array:
    """Texts as a slice of an array that has some before them. Bytes above 127 become letters of two bytes."""
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    values: list[Any] = [text.decode("latin-1") for text in texts] if is_text else list(texts)
    return pa.array([values[0] if values else None] * before + values, kind).slice(before)


def in_order(values: list[Any]) -> list[Any]:
    return sorted(set(values), key=lambda v: v.encode() if isinstance(v, str) else v)


@given(words())
def test_words_are_in_the_order_of_a_stable_sort(values: list[int]) -> None:
    array = np.array(values, np.uint64)
    assert radix_order(array).tolist() == sorted(range(len(values)), key=values.__getitem__)
    codes, picks = ranked_words(array)
    ascending = sorted(set(values))
    assert codes.tolist() == [ascending.index(v) for v in values]
    assert picks.tolist() == [values.index(v) for v in ascending]


def are_ranks(found: tuple[Any, Any], values: list[Any]) -> bool:
    """Whether codes are the dense ranks of values, and picks the place of a value with each."""
    codes, picks = found
    ascending = in_order(values)
    return [values[i] for i in picks] == ascending and codes.tolist() == [ascending.index(value) for value in values]


@given(st.lists(byte_texts(), max_size=5), st.sampled_from(TEXTS), st.integers(0, 2))
def test_texts_are_ranked_bytewise_and_so_are_runs_of_them(
    runs: list[list[bytes]], kind: pa.DataType, before: int
) -> None:
    array = in_type([text for run in runs for text in run], kind, before)
    values = array.to_pylist()
    codes, picks = ranked(array)
    assert are_ranks((codes, picks), values)
    assert picks.tolist() == [values.index(value) for value in in_order(values)]
    ordered = [in_order(in_type(run, kind).to_pylist()) for run in runs]
    values = [text for run in ordered for text in run]
    array = pa.array((values[:1] or [None]) * before + values, kind).slice(before)
    assert are_ranks(merge_runs(array, np.array([0, *accumulate(map(len, ordered))], np.int64)), values)


@given(st.data(), byte_texts(), st.sampled_from(TEXTS), st.integers(0, 2), st.booleans())
def test_texts_are_taken_as_by_arrow(
    data: st.DataObject, texts: list[bytes], kind: pa.DataType, before: int, with_null: bool
) -> None:
    array = in_type(texts, kind, before)
    if with_null:
        array = pa.concat_arrays([array, pa.nulls(1, kind)])
    picks = data.draw(st.lists(st.integers(0, len(array) - 1), max_size=30)) if len(array) else []
    taken = take_column(array, np.array(picks, np.int64))
    taken.validate(full=True)
    assert taken.equals(array.take(pa.array(picks, pa.int64())))


@pytest.mark.nightly  # copies two gigabytes
def test_texts_of_more_than_two_gigabytes_are_taken_by_arrow_which_says_so() -> None:
    array = pa.array(["x" * (1 << 20)])
    with pytest.raises(pa.ArrowInvalid, match="overflow"):
        take_column(array, np.zeros(1 << 11, np.int64))


def test_many_texts_of_all_lengths() -> None:
    rng = np.random.default_rng(7)
    pool = [b"key/%d" % n for n in range(3000)] + [rng.bytes(int(n)) for n in rng.integers(0, 40, 3000)]
    values = [pool[i] for i in rng.integers(0, len(pool), 5_000)]
    assert are_ranks(ranked(pa.array(values, pa.binary())), values)


def comparable(value: Any) -> Any:
    """A value as it sorts: bytewise, NaN behind all numbers, null behind NaN, and the two zeros the same."""
    if value is None:
        return (2, 0)
    if isinstance(value, float):
        return (1, 0) if math.isnan(value) else (0, value + 0.0)
    return (0, value.encode() if isinstance(value, str) else value)


def comparables(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column as `comparable`. Times as ticks, for Python's own do not go as far."""
    array = combined(column)
    array = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    if pa.types.is_temporal(array.type):
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    return [*map(comparable, array.to_pylist())]


@st.composite
def key_column(draw: st.DrawFn, size: int) -> pa.Array:
    kind = draw(st.sampled_from(KINDS))
    if pa.types.is_fixed_size_binary(kind):
        values: list[Any] = draw(st.lists(st.binary(min_size=3, max_size=3), min_size=size, max_size=size))
        column = pa.array(values, kind)
    elif pa.types.is_float16(kind):
        column = pa.array(np.array(draw(st.lists(st.floats(width=16), min_size=size, max_size=size)), np.float16))
    elif pa.types.is_time(kind) or kind == pa.date64():
        ticks = draw(st.lists(st.integers(0, 80_000), min_size=size, max_size=size))
        scale = 86_400_000 if kind == pa.date64() else 1
        column = pa.array([n * scale for n in ticks], pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    elif pa.types.is_floating(kind):
        floats = st.one_of(st.sampled_from([0.0, -0.0, math.nan, -math.nan, math.inf]), st.floats(width=32))
        column = pa.array(draw(st.lists(floats, min_size=size, max_size=size)), kind)
    elif pa.types.is_large_binary(kind):
        column = pa.array(draw(st.lists(st.binary(max_size=9), min_size=size, max_size=size)), kind)
    else:
        column = draw(my.column(kind, size))
    nulls = draw(st.sampled_from([None, None, *range(size)]))
    if nulls is not None:
        column = column.take(pa.array([None if i == nulls else i for i in range(size)], pa.int64()))
    is_dictionary = draw(st.booleans()) and not pa.types.is_float16(kind)
    return column.dictionary_encode().slice(draw(st.integers(0, 2))) if is_dictionary else column


@given(st.data(), st.integers(1, 2), st.sampled_from([2, 4096]))
def test_rows_are_grouped_by_the_values_of_their_keys(data: st.DataObject, count: int, sampled: int) -> None:
    size = data.draw(st.integers(1, 20))
    keys = [data.draw(key_column(size)) for _ in range(count)]
    size = min(len(key) for key in keys)
    keys = [key.slice(0, size) for key in keys]
    with patch.object(sort_keys, "_SAMPLED", sampled):
        codes, values = group_codes(keys)
    rows = [*zip(*map(comparables, keys), strict=True)]
    ascending = sorted(set(rows))
    assert codes.dtype == np.int32
    assert codes.tolist() == [ascending.index(row) for row in rows]
    assert [*zip(*map(comparables, values.columns), strict=True)] == ascending


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_a_dictionary_of_floats_has_one_zero_and_one_nan(kind: pa.DataType) -> None:
    many = np.array([1.5, 0.0, -0.0, np.nan, -np.nan], kind.to_pandas_dtype())
    key = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, 4, 2, 1], pa.int32()), pa.array(many, from_pandas=False))
    assert group_codes([key])[0].tolist() == [1, 0, 0, 2, 2, 0, 0]


@given(st.data(), st.sampled_from([*KINDS[:-6], pa.decimal32(7, 2), pa.decimal64(12, 2)]))
def test_both_ways_to_the_distinct_values_give_the_same(data: st.DataObject, kind: pa.DataType) -> None:
    column = data.draw(my.column(kind, 30))
    hashed, values = distinct(column)
    with patch.object(sort_keys, "_SAMPLED", 2):
        sorted_by_radix, same_values = distinct(column)
    assert sorted_by_radix.tolist() == hashed.tolist()
    assert same_values.type == values.type
    assert comparables(same_values) == comparables(values)


def test_a_dictionary_of_which_few_rows_are_left_is_not_sorted_whole() -> None:
    encoded = pa.array([f"k{n}" for n in range(1000)]).dictionary_encode().take(pa.array([7, 3, 7]))
    codes, values = distinct(encoded)
    assert (codes.tolist(), values.to_pylist()) == ([1, 0, 1], ["k3", "k7"])


@given(st.lists(st.integers(0, 60), max_size=50, unique=True), st.lists(st.integers(-1, 61), max_size=6))
def test_places_of_keys_among_many(present: list[int], wanted: list[int]) -> None:
    keys, ascending = sorted(f"{n:03}" for n in present), sorted(f"{n:03}" for n in wanted)
    both = [
        pa.table({"k": pa.array(some, pa.string()), "l": pa.array([1] * len(some), pa.int8())})
        for some in (keys, ascending)
    ]
    assert lower_bounds(*both).tolist() == [bisect_left(keys, key) for key in ascending]


def test_places_of_keys_of_several_columns_with_nulls() -> None:
    keys = pa.table({"k": ["a", "a", "b", None], "l": [1.5, math.nan, -0.0, None]})
    wanted = pa.table({"k": ["a", "b", "b", None], "l": [math.nan, 0.0, 1.0, 3.5]})
    assert lower_bounds(keys, wanted).tolist() == [1, 2, 3, 3]


def test_tables_are_joined_encoded_where_all_are() -> None:
    plain, encoded = pa.array(["a", "b"]), pa.array(["b", "c"]).dictionary_encode()
    tables = [pa.table({"x": encoded, "y": [1, 2]}), pa.table({"x": plain, "y": [3, 4]})]
    both = concatenate(tables)
    assert both.to_pydict() == {"x": ["b", "c", "a", "b"], "y": [1, 2, 3, 4]}
    assert both.schema.field("x").type == pa.string()
    assert concatenate([tables[0], tables[0]]).schema.field("x").type == encoded.type


FORMS = ["plain", "dictionary", "with nulls", "nothing but nulls"]


@given(
    st.lists(
        st.tuples(
            st.lists(st.tuples(byte_texts().map(lambda t: (t or [b""])[0]), st.integers(0, 3)), max_size=12),
            st.sampled_from(FORMS),
        ),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from([pa.string(), pa.binary()]),
    st.sampled_from([[], ["t"], ["t", "n"]]),
    st.booleans(),
)
def test_parts_merge_into_what_is_built_of_all_rows(
    drawn: list[tuple[list[tuple[bytes, int]], str]], kind: pa.DataType, order: list[str], is_keyed: bool
) -> None:
    parts = [rows for rows, _ in drawn]

    def batch(rows: list[tuple[bytes, int]], form: str = "plain") -> pa.RecordBatch:
        has = [form != "nothing but nulls" and (form != "with nulls" or i % 3 > 0) for i in range(len(rows))]
        texts = pa.array([f"{t}" if own else None for own, (_, t) in zip(has, rows, strict=True)], pa.string())
        columns = {
            "k": in_type([text for text, _ in rows], kind),
            "t": pa.array([t for _, t in rows], pa.int64()),
            "n": pa.array([7 - t if own else None for own, (_, t) in zip(has, rows, strict=True)], pa.float32()),
            "b": pa.array([t > 1 if own else None for own, (_, t) in zip(has, rows, strict=True)], pa.bool_()),
            "s": texts.dictionary_encode() if form == "dictionary" else texts,
        }
        return pa.RecordBatch.from_pydict(columns)

    key, values = ["k"] if is_keyed else [], ["t", "n", "b", "s"]
    starts = [0, *accumulate(map(len, parts))]
    batches = [batch(*each) for each in drawn]
    with patch.object(sort_keys, "_SAMPLED", 2):
        built = [
            build(rows, np.arange(start, start + rows.num_rows), key, order, values)
            for start, rows in zip(starts, batches, strict=False)
        ]
        found = merge(built)
    flat = concatenate([pa.Table.from_batches([each]) for each in batches])
    whole = build(flat, np.arange(flat.num_rows), key, order, values)
    assert as_told(found) == as_told(whole)
    for column in found.rows.columns:
        column.validate(full=True)
    encoded = {form == "dictionary" for rows, form in drawn if rows and form != "nothing but nulls"}
    if len(drawn) > 1 and encoded and not all(batch.column("s").null_count == batch.num_rows for batch in batches):
        assert pa.types.is_dictionary(found.rows.schema.field("s").type) == (encoded == {True})
    expected = sorted(
        range(flat.num_rows),
        key=lambda i: (*(comparable(flat.column(name)[i].as_py()) for name in [*key, *order]), i),
    )
    assert found.pos.tolist() == expected


def test_a_key_that_is_null_is_one_key_of_all_parts() -> None:
    texts = [["b", None, "a"], [None, "c"], ["a", None]]
    batches = [pa.RecordBatch.from_pydict({"k": pa.array(k, pa.string()), "t": pa.array([5] * len(k))}) for k in texts]
    starts = [0, *accumulate(map(len, texts))]
    found = merge([
        build(rows, np.arange(start, start + rows.num_rows), ["k"], ["t"], ["t"])
        for start, rows in zip(starts, batches, strict=False)
    ])  # fmt: skip
    assert found.keys is not None
    assert found.keys.to_pydict() == {"k": ["a", "b", "c", None]}
    assert (found.bounds.tolist(), found.pos.tolist()) == ([0, 2, 3, 4, 7], [2, 5, 0, 4, 1, 3, 6])


@given(st.data(), st.booleans())
def test_rows_are_built_alike_whether_their_keys_are_hashed_or_not(data: st.DataObject, is_log: bool) -> None:
    key = data.draw(key_column(data.draw(st.integers(1, 20)))).drop_null()
    times = data.draw(st.lists(st.integers(0, 9), min_size=len(key), max_size=len(key)))
    times = sorted(times) if is_log else times
    rows = pa.RecordBatch.from_arrays([key, pa.array(times, pa.int64())], names=["k", "t"])
    hashed = build(rows, np.arange(len(key)), ["k"], ["t"], ["t"])
    with patch.object(sort_keys, "_SAMPLED", 2):
        sorted_by_radix = build(rows, np.arange(len(key)), ["k"], ["t"], ["t"])
    assert hashed.keys is not None
    assert sorted_by_radix.keys is not None
    assert sorted_by_radix.keys.schema == hashed.keys.schema
    assert comparables(sorted_by_radix.keys.column(0)) == comparables(hashed.keys.column(0))
    assert sorted_by_radix.bounds.tolist() == hashed.bounds.tolist()
    assert sorted_by_radix.pos.tolist() == hashed.pos.tolist()
    assert sorted_by_radix.rows.equals(hashed.rows)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=30), st.sampled_from([1, 10**9]))
def test_rows_are_in_numeric_order_for_every_sort_algorithm(numbers: list[int], run: int) -> None:
    with patch.object(sequence, "_RUN", run):
        found = order_of([pa.array(numbers, pa.int64())])
    assert found.tolist() == sorted(range(len(numbers)), key=numbers.__getitem__)


def as_told(sequences: Sequences) -> list[Any]:
    keys = None if sequences.keys is None else sequences.keys.to_pydict()
    return [keys, sequences.bounds.tolist(), sequences.rows.to_pydict(), sequences.pos.tolist()]


def test_no_marks_keep_no_rows_in_memory() -> None:
    pool = pa.default_memory_pool()
    before = pool.bytes_allocated()
    rows = pa.record_batch({"t": pa.array(range(100_000), pa.int64())})
    marks = no_marks(rows, ["t"])
    del rows
    gc.collect()
    assert marks.rows.schema == pa.schema({"t": pa.int64()})
    assert pool.bytes_allocated() - before < 100_000
