"""Boolean columns as masks, in three-valued logic: null is not true (semantics section 12)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from .arrays import Mask, combined


def is_condition(dtype: pa.DataType) -> bool:
    """Whether a column of a type may be a condition: booleans, and what has no type yet, since it has no value."""
    return bool(pa.types.is_boolean(dtype) or pa.types.is_null(dtype))


def truth(rows: pa.Table | pa.RecordBatch, name: str) -> Mask:
    """Return for which rows a column is true, bool (n,)."""
    return is_true(combined(rows.column(name)))


def is_true(values: pa.Array) -> Mask:
    """Return where a condition is true, bool (n,): null is not true."""
    if pa.types.is_null(values.type):
        return np.zeros(len(values), np.bool_)
    values = values.fill_null(False) if values.null_count else values
    return np.array(values.to_numpy(zero_copy_only=False), np.bool_)
