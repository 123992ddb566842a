"""Columns as Python values for operators: those that Arrow itself gives, of the same types."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wincli.windowing.emit.operator_blocks import python_values

COLUMNS = {
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float32(): st.floats(allow_nan=False, width=32),
    pa.float64(): st.floats(allow_nan=False),
    pa.bool_(): st.booleans(),
    pa.string(): st.sampled_from(["", "a", "ü", "\x00"]) | st.text(max_size=3),
    pa.large_string(): st.text(max_size=3),
    pa.dictionary(pa.int8(), pa.string()): st.sampled_from(["row", "end", ""]),
    pa.timestamp("us"): st.datetimes(),
    pa.date32(): st.dates(),
    pa.list_(pa.int64()): st.lists(st.integers(0, 9), max_size=2),
}


@pytest.mark.parametrize("dtype", COLUMNS, ids=str)
@given(data=st.data(), sliced=st.integers(0, 3))
def test_values_are_those_of_arrow(dtype, data, sliced):
    values = data.draw(st.lists(COLUMNS[dtype], max_size=9) | st.lists(st.none() | COLUMNS[dtype], max_size=9))
    column = pa.array(values, dtype).slice(sliced)
    found = python_values("x", column)
    assert found == column.to_pylist()
    assert [type(value) for value in found] == [type(value) for value in column.to_pylist()]


def test_equal_texts_are_one_object():
    first, second, third = python_values("x", pa.array(["long ago"] * 3))
    assert first is second is third
