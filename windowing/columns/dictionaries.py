"""Dictionaries without the values that a column does not use."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..support.jit import kernel
from .arrays import Mask, view_of


def with_used_values(column: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return a column whose dictionary has only the values that occur in it, in their order."""
    kind = column.type.index_type.to_pandas_dtype()
    used = np.zeros(len(column.dictionary), np.bool_)
    _mark(view_of(column.indices.drop_null(), kind), used)
    if used.all():
        return column
    places = (np.cumsum(used) - 1).astype(kind)
    if column.indices.null_count:
        indices = pa.array(places).take(column.indices)
    else:
        indices = pa.array(_moved(view_of(column.indices, kind), places))
    return pa.DictionaryArray.from_arrays(indices, column.dictionary.filter(pa.array(used)), safe=False)


@kernel
def _mark(codes: npt.NDArray[Any], used: Mask) -> None:
    """Mark codes; to assign by an array of indices takes numpy ten times as long."""
    for code in codes:
        used[code] = True


@kernel
def _moved(codes: npt.NDArray[Any], places: npt.NDArray[Any]) -> npt.NDArray[Any]:
    found = np.empty_like(codes)
    for i in range(codes.size):
        found[i] = places[codes[i]]
    return found
