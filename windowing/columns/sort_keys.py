"""Sort keys: any sortable column as int64 words that compare as the values do, dense ranks, and rows sorted by them.

Words serve only for sorting: two values have the same word if and only if they are equal. Types without such a word in
64 bit (text, wide decimals) get ranks among the values of the column.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .arrays import SIGN_BIT, Ints, Mask, combined, is_measurable, measures, overflows, view_of
from .radix_sort import ranks, sort_words
from .text_sort import is_text, ranked, sort_texts, take_column

_SAMPLED = 4096  # sampled rows, by which `hardly_repeats` decides between sorting and hashing


def is_sortable(dtype: pa.DataType) -> bool:
    """Whether values of a type have one order, so that they can be a key or an order column."""
    types = pa.types
    return bool(
        is_measurable(dtype)
        or is_text(dtype)
        or types.is_boolean(dtype)
        or types.is_decimal(dtype)
        or types.is_null(dtype)
        or types.is_fixed_size_binary(dtype)
    )


def sort_keys(column: pa.Array) -> Ints:
    """Return int64 words of shape (n,) that sort as the values do, nulls last.

    Words of types that are not 64 bit numbers are ranks, which are comparable only within this column.
    """
    dtype = column.type
    if column.null_count:
        # Words of a column with nulls: ticks, with the largest int64 for null, or ranks if some value has that tick.
        floats = pa.types.is_floating(column.type)
        if not (floats or pa.types.is_integer(column.type) or pa.types.is_temporal(column.type)):
            return _ranks(column)
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        own = _float_keys(measures(column).astype(np.float64)) if floats else measures(column)
        ticks = np.where(valid, own, np.iinfo(np.int64).min)
        last = np.iinfo(np.int64).max
        return _ranks(column) if ticks.max() == last else np.where(valid, ticks, last)
    if pa.types.is_boolean(dtype):
        return view_of(column.cast(pa.uint8()), np.uint8).astype(np.int64)
    if pa.types.is_floating(dtype):
        return _float_keys(measures(column).astype(np.float64))
    if is_measurable(dtype) and overflows(column) is None:
        return measures(column)
    return _ranks(column)


def has_common_words(column: pa.Array) -> bool:
    """Whether the words of a column depend on each value alone, so that words of several such columns compare."""
    if column.null_count or not is_measurable(column.type):
        return False
    return pa.types.is_floating(column.type) or overflows(column) is None


def _float_keys(values: npt.NDArray[np.float64]) -> Ints:
    bits = np.where(np.isnan(values), np.nan, values + 0.0).view(np.int64)  # the two zeros are one value, so are NaNs
    return np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)


def _ranks(column: pa.Array) -> Ints:
    codes, values = distinct(column)
    if not column.null_count:
        return codes.astype(np.int64)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return np.where(valid, codes, len(values))


def distinct(column: pa.Array) -> tuple[npt.NDArray[Any], pa.Array]:
    """Return for each row the rank of its value, and the different values in ascending order.

    Codes at nulls are arbitrary. The values are in the form of `as_values`, and some may occur in no row. If nearly all
    rows have different values, the rows are sorted by radix; otherwise the values are hashed first.
    """
    column = as_values(column)
    if hardly_repeats(column):
        codes, picks = ranks(*sort_rows(column))
        return codes, take_column(column, picks)
    return sort_codes(column if pa.types.is_dictionary(column.type) else column.dictionary_encode())


def as_values(column: pa.Array) -> pa.Array:
    """Return a column in the form in which `distinct` returns values.

    Small decimals become decimal128 and small floats float32; floats have one zero and one NaN. A dictionary of floats,
    or one that is longer than its rows, is decoded.
    """
    types = pa.types
    if types.is_dictionary(column.type) and (
        len(column.dictionary) > len(column)
        or types.is_floating(column.type.value_type)  # 0.0 and -0.0 are two entries there
    ):
        column = column.dictionary_decode()
    if types.is_decimal32(column.type) or types.is_decimal64(column.type):
        column = column.cast(pa.decimal128(38, column.type.scale))
    if not types.is_floating(column.type):
        return column
    wide = column.cast(pa.float32()) if types.is_float16(column.type) else column
    wide = pc.add(wide, pa.scalar(0.0, wide.type))
    return pc.if_else(pc.is_nan(wide), pa.scalar(float("nan"), wide.type), wide)  # NaNs have many bit patterns


def hardly_repeats(column: pa.Array) -> bool:
    """Whether evenly spaced rows of a column, in the form of `as_values`, hardly repeat a value.

    False for a column with nulls or few rows, and for types without words.
    """
    is_number = is_measurable(column.type)
    if column.null_count or len(column) < _SAMPLED or not (is_number or is_text(column.type)):
        return False
    sample = column.take(pa.array(np.linspace(0, len(column) - 1, _SAMPLED).astype(np.int64)))
    return len(sample.unique()) > _SAMPLED * 63 // 64 and not (is_number and overflows(column) is not None)


def sort_rows(column: pa.Array) -> tuple[Ints, Mask]:
    """Return the stable permutation that sorts rows, and which rows, once sorted, differ in value from the row before.

    For a column that `hardly_repeats`.
    """
    if is_text(column.type):
        return sort_texts(column)
    return sort_words(sort_keys(column).view(np.uint64) ^ SIGN_BIT)


def sort_codes(encoded: pa.DictionaryArray) -> tuple[Ints, pa.Array]:
    """Return the codes of a dictionary array renumbered so that they sort as the values do, and the sorted values.

    Codes at nulls are arbitrary. Some values may occur in no row.
    """
    indices, values = encoded.indices, encoded.dictionary
    if is_text(values.type) and not values.null_count:
        codes, picks = ranked(values)
        rank, values = codes.astype(np.int64), take_column(values, picks)
    else:
        ascending = pc.sort_indices(values)
        rank, values = np.empty(len(values), np.int64), values.take(ascending)
        rank[ascending.to_numpy()] = np.arange(len(values))
    if indices.null_count:
        indices = indices.fill_null(len(rank))
    return np.append(rank, 0)[indices.to_numpy()], values


def last_in_order(*tables: pa.Table | None) -> pa.Table | None:
    """Return the largest row of all tables, compared by columns, the most significant first; None if there is no row.

    The tables have the same columns, in the same types.
    """
    known = [table for table in tables if table is not None]
    if not known:
        return None
    rows = pa.concat_tables(known)
    for name in rows.column_names:
        column = combined(rows.column(name))
        if not len(column):
            return None
        order = sort_keys(column)
        rows = rows.filter(pa.array(order == order.max()))
    return rows.slice(0, 1) if rows.num_columns and rows.num_rows else None


def sorts_before(rows: pa.RecordBatch, position: pa.Table | None) -> Mask:
    """Return which rows sort before a position, (n,); none where there is no position.

    A row whose deciding value is null does not.
    """
    out, ties = np.zeros(rows.num_rows, np.bool_), np.ones(rows.num_rows, np.bool_)
    if position is None:
        return out
    for name in position.column_names:
        column = combined(rows.column(name))
        order = sort_keys(pa.concat_arrays([column, combined(position.column(name)).cast(column.type)]))
        valid = pc.is_valid(column).to_numpy(zero_copy_only=False)
        out |= ties & valid & (order[:-1] < order[-1])
        ties &= valid & (order[:-1] == order[-1])
    return out
