"""Texts in another order, eight bytes at a time: 2.5 M of nine bytes take 0.04 s, and 0.09 s in Arrow."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...support.jit import kernel, put_word, word_at
from ..arrays import Ints
from .buffers import Bytes, Offsets, is_text, views_of_buffers

_WORD = 8  # bytes


def take_column(column: pa.Array, picks: Ints) -> pa.Array:
    """Return the values at some places, which must be in range. Texts without nulls are taken faster than by Arrow."""
    if not is_text(column.type) or column.null_count:
        return pc.take(column, pa.array(picks), boundscheck=False)
    offsets, data = views_of_buffers(column)
    own = picks.view()
    own.flags.writeable = False
    bounds, content, size = _gathered(offsets, data, own)
    if size > len(content):
        return column.take(pa.array(picks))  # which says what is wrong
    return pa.Array.from_buffers(column.type, len(picks), [None, pa.py_buffer(bounds), pa.py_buffer(content)])


@kernel
def _gathered(offsets: Offsets, data: Bytes, picks: Ints) -> tuple[Offsets, Bytes, int]:
    """Offsets and bytes of the texts at some places, and how many bytes; no bytes if the offsets are too narrow."""
    begins, bounds = np.empty(len(picks), offsets.dtype), np.empty(len(picks) + 1, offsets.dtype)
    size, bounds[0] = 0, 0
    for i in range(len(picks)):
        begin, stop = offsets[picks[i]], offsets[picks[i] + 1]
        size += stop - begin
        begins[i], bounds[i + 1] = begin, size
    if size > np.iinfo(bounds.dtype).max:
        return bounds, np.empty(0, np.uint8), size
    # Eight bytes at once, also beyond the end of a text: the next text is written over them, and behind the last there
    # is room for eight. The last eight bytes of the source are read one by one: nothing may be read behind them.
    out, last = np.empty(size + _WORD, np.uint8), len(data) - _WORD
    for i in range(len(picks)):
        begin, at, stop = int(begins[i]), int(bounds[i]), int(bounds[i + 1])
        ahead = 0
        while at + ahead < stop and begin + ahead <= last:
            put_word(out, at + ahead, word_at(data, begin + ahead))
            ahead += _WORD
        while at + ahead < stop:
            out[at + ahead] = data[begin + ahead]
            ahead += 1
    return bounds, out[:size], size
