"""Hashes of keys, the same in every process: rows of one key meet in one partition, whatever types they come in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..columns.arrays import Ints, view_of
from ..support.jit import kernel
from .key_index import as_dictionary, has_words, words_of

_PRIME = np.uint64(0x100000001B3)
_BASIS = np.uint64(0xCBF29CE484222325)
_MIX = np.uint64(0xBF58476D1CE4E5B9)


def partitions_of(keys: Sequence[pa.Array], count: int) -> Ints:
    """Return the partition of each key, in ``[0, count)``; arbitrary at nulls: int64 (n,)."""
    hashes = np.zeros(len(keys[0]), np.uint64)
    for column in keys:
        hashes = (hashes ^ _hashes(column)) * _MIX
        hashes ^= hashes >> np.uint64(31)
    return (hashes % np.uint64(count)).astype(np.int64)


def _hashes(column: pa.Array) -> npt.NDArray[np.uint64]:
    if has_words(column.type):
        return words_of(column).view(np.uint64) * _PRIME
    encoded = as_dictionary(column)
    values = encoded.dictionary.cast(pa.large_binary())
    _, ends, data = values.buffers()
    offsets = pa.Array.from_buffers(pa.int64(), len(values) + 1, [None, ends], offset=values.offset)
    letters = pa.Array.from_buffers(pa.uint8(), data.size if data else 0, [None, data])
    hashes = hash_texts(view_of(offsets, np.int64), view_of(letters, np.uint8))
    indices = encoded.indices.fill_null(len(values)) if encoded.indices.null_count else encoded.indices
    return np.append(hashes, np.uint64(0))[indices.to_numpy()]


@kernel
def hash_texts(offsets: Ints, data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """Return the FNV-1a hash of each text: uint64 (n,). ``offsets``: int64 (n + 1,), where its bytes begin."""
    out = np.empty(len(offsets) - 1, np.uint64)
    for i in range(len(out)):
        found = _BASIS
        for at in range(offsets[i], offsets[i + 1]):
            found = (found ^ np.uint64(data[at])) * _PRIME
        out[i] = found
    return out
