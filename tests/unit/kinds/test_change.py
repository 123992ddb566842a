"""``change``: runs of rows of one value, whatever its type, and the mistakes that are underlined.

change(v)   v   1 1 2 2 null null 1
               [1 1]                   at 2
                   [2 2]               at null
                       [null null]     at 1
                                  [1]  open
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import wincli
from wincli.windowing.errors import ConfigError, SpecError
from wincli.windowing.language.parser import parse_window


def runs(window: str, **columns: Any) -> list[list[int]]:
    size = len(next(iter(columns.values())))
    table = pa.table({"id": range(size), **columns})
    result = wincli.aggregate(table, window, order_by="arrival", aggregates=["ids=collect(id)"])
    assert result["closed_by"].to_pylist() == ["change"] * (len(result) - 1) + ["end"]
    return result["ids"].to_pylist()


def test_nan_of_other_bits_equals_nan() -> None:
    bits = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF8000000000002], np.uint64)
    assert runs("change(v)", v=pa.array(bits.view(np.float64))) == [[0, 1, 2]]


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        (pa.int8(), 1, -1),
        (pa.uint64(), 2**64 - 1, 0),
        (pa.bool_(), True, False),
        (pa.string(), "", "a"),
        (pa.large_string(), "b", "a"),
        (pa.binary(), b"", b"\0"),
        (pa.binary(2), b"ab", b"ba"),
        (pa.decimal128(5, 2), Decimal("1.50"), Decimal("-1.50")),
        (pa.decimal256(60, 0), Decimal(10**50), Decimal(10**50 + 1)),
        (pa.date32(), 1, 0),
        (pa.time64("ns"), 1, 0),
        (pa.timestamp("ns", "Europe/Paris"), 1, 0),
        (pa.duration("us"), 1, 0),
        (pa.dictionary(pa.int8(), pa.string()), "b", "a"),
    ],
    ids=str,
)
def test_columns_of_any_type_that_sorts(kind: pa.DataType, first: Any, second: Any) -> None:
    values = [first, first, None, None, second, first]
    assert runs("change(v)", v=pa.array(values, kind)) == [[0, 1], [2, 3], [4], [5]]


def test_a_column_without_values_never_changes() -> None:
    assert runs("change(v)", v=pa.nulls(3)) == [[0, 1, 2]]


def test_values_that_cannot_be_compared_are_an_error() -> None:
    with pytest.raises(ConfigError, match="whose values cannot be compared"):
        runs("change(v)", v=pa.array([[1], [2]]))


def test_the_canonical_text_reads_back() -> None:
    text = 'tumbling, change(a, "b c")'
    assert str(parse_window('CHANGE("a","b c")')) == text
    assert parse_window(text) == parse_window('change(a, "b c")')


@pytest.mark.parametrize(
    ("window", "what", "under"),
    [
        ("change()", "at least 1 argument", "change()"),
        ("change(a, b, a)", "given twice", "a"),
        ("change(a, 5)", "expected a column", "5"),
        ("change(5)", "expected a column", "5"),
        ("sliding, change(a)", "a sliding window cannot use 'change'", "change"),
    ],
)
def test_mistakes_are_underlined(window: str, what: str, under: str) -> None:
    with pytest.raises(SpecError, match=what) as error:
        parse_window(window)
    span = error.value.span
    assert window[span.start : span.stop] == under
    assert span.start >= window.rindex(under)
