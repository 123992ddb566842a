"""Boolean columns as masks, in three-valued logic: null is not true (semantics section 12)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from .arrays import Mask, combined


def truth(rows: pa.RecordBatch, name: str) -> Mask:
    """Return for which rows a column is true, bool (n,)."""
    column = combined(rows.column(name))
    if pa.types.is_null(column.type):
        return np.zeros(len(column), np.bool_)
    return np.asarray(column.fill_null(False).to_numpy(zero_copy_only=False), np.bool_).copy()
