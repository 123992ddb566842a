"""Which values of a dictionary a column uses."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..support.jit import kernel
from .arrays import Mask, view_of


def used_values(column: pa.DictionaryArray) -> Mask:
    """Return whether each value of the dictionary occurs in the column: bool (values,)."""
    used = np.zeros(len(column.dictionary), np.bool_)
    indices = column.indices.drop_null()
    _mark(view_of(indices, indices.type.to_pandas_dtype()), used)
    return used


@kernel
def _mark(codes: npt.NDArray[np.integer[Any]], used: Mask) -> None:
    """Mark codes; to assign by an array of indices takes numpy ten times as long."""
    for code in codes:
        used[code] = True
