"""The hash of a value is the same in every version, and however its column is stored."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from wincli.windowing.expressions.binding import bind
from wincli.windowing.expressions.syntax import parse_expression


def hashes(*columns: pa.Array, text: str = "") -> list[int]:
    names = "abc"[: len(columns)]
    table = pa.table(dict(zip(names, columns, strict=True)))
    found = bind(parse_expression(text or f"hash({', '.join(names)})"), table.schema).evaluate(table)
    assert found.failures is None
    assert found.values.type == pa.uint64()
    return list(found.values.to_pylist())


FIXED = {
    "null": (None, 60338211391643844),
    "zero": (0, 13483730677883737428),
    "int": (42, 9818375044422628026),
    "negative": (-1, 11110557558371208229),
    "float": (2.5, 11718587504483817694),
    "bool": (True, 2565029508400401471),
    "empty": ("", 9405173842691950960),
    "text": ("abc", 14139204768547201607),
    "long text": ("The quick brown fox", 6528145515626985961),
    "decimal": (Decimal("12.50"), 3682133424491957761),
    "date": (date(2026, 3, 5), 11045038259461895385),
    "time": (datetime(2026, 3, 5, 14, 30, 15, 250000), 13319366844081717179),
}


@pytest.mark.parametrize("name", FIXED)
def test_a_hash_is_what_it_was(name: str) -> None:
    value, wanted = FIXED[name]
    assert hashes(pa.array([value])) == [wanted]


SAME: list[list[tuple[Any, pa.DataType]]] = [
    [(5, kind) for kind in (pa.int8(), pa.int32(), pa.int64(), pa.uint16(), pa.uint64())],
    [(-5, pa.int8()), (-5, pa.int64())],
    [(2.5, pa.float32()), (2.5, pa.float64())],
    [(0.0, pa.float64()), (-0.0, pa.float64())],
    [(float("nan"), pa.float64()), (-float("nan"), pa.float64()), (float("nan"), pa.float32())],
    [(Decimal("1.50"), pa.decimal128(10, 2)), (Decimal("1.500"), pa.decimal128(38, 3))],
    [(Decimal("100"), pa.decimal128(10, 0)), (Decimal("100.00"), pa.decimal128(10, 2))],
    [("äbc", pa.string()), ("äbc", pa.large_string()), ("äbc", pa.dictionary(pa.int32(), pa.string()))],
    [(datetime(2026, 1, 1, 12), pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")],
    [(datetime(1960, 1, 1), pa.timestamp("us")), (date(1960, 1, 1), pa.date32())],
    [(datetime(2026, 1, 1, tzinfo=UTC), pa.timestamp("us", zone)) for zone in ("UTC", "Asia/Tokyo")],
    [(None, kind) for kind in (pa.null(), pa.int64(), pa.string(), pa.timestamp("us"), pa.decimal128(9, 2))],
]  # fmt: skip


@pytest.mark.parametrize("values", SAME)
def test_equal_values_of_one_family_have_one_hash(values: list[tuple[Any, pa.DataType]]) -> None:
    found = {hashes(pa.array([value, None, value], kind).slice(at, 1))[0] for value, kind in values for at in (0, 2)}
    assert len(found) == 1


def test_other_values_have_other_hashes() -> None:
    texts = pa.array(["", "\0", "\0\0", "a", "ab", "ba", "a" * 8, "a" * 9, "a" * 16, "a" * 17, "b" + "a" * 16, None])
    numbers = pa.array(np.arange(100_000))
    for column in (texts, numbers, pa.array(np.arange(1000) / 8), numbers.cast(pa.string())):
        assert len(set(hashes(column))) == len(column)


def test_the_hash_of_several_values_depends_on_each_and_on_their_order() -> None:
    one, other = pa.array([1, 1, 2, 2]), pa.array([1, 2, 1, 2])
    assert len(set(hashes(one, other))) == 4
    assert hashes(one, other)[1] != hashes(other, one)[1]
    assert hashes(one, one) != hashes(one)


def test_hashes_fill_buckets_evenly() -> None:
    counts = np.bincount(np.array(hashes(pa.array(np.arange(80_000)), text="hash(a) % 8"), np.int64), minlength=8)
    assert counts.min() > 9_700
    assert counts.max() < 10_300
