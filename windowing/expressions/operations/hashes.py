"""A hash of values: 64 bits that are the same in every version, on every machine, and however a column is stored.

Integers of all widths have the hash of their number, floats that of their value, decimals that of their digits without
zeros at the end, times that of their seconds and nanoseconds whatever their unit and zone. Null is a value of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from ..steps import Failures, as_array, as_mask
from ..types import TEXT
from .casts import floor_divide

_Words = npt.NDArray[np.uint64]
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)
_NULL = np.uint64(0xA24BAED4963EE407)
_BYTES = 8


def hash_values(failures: Failures, *columns: Any) -> pa.Array:
    """Return the hash of each row of columns, whose order counts: uint64 (n,)."""
    found: Any = _SECOND
    for column in columns:
        values = as_array(column, failures.n)
        found = _mixed(found, np.where(as_mask(values.is_null()), _NULL, _words(values)))
    return pa.array(found)


def is_hashable(kind: pa.DataType) -> bool:
    """Return whether values of a type have a hash: all but lists, structs and intervals of months."""
    return not (t.is_nested(kind) or t.is_interval(kind))


def _mixed(seed: Any, words: _Words) -> _Words:
    """Mix words, uint64 (n,), with what came before them: splitmix64."""
    x = (words ^ seed) + _STEP
    x = (x ^ (x >> _30)) * _FIRST
    x = (x ^ (x >> _27)) * _SECOND
    return np.asarray(x ^ (x >> _31))


def _words(values: pa.Array) -> _Words:
    """Return a word for each value, arbitrary at nulls: uint64 (n,)."""
    kind = values.type
    if t.is_null(kind):
        return np.zeros(len(values), np.uint64)
    if t.is_string(kind) or t.is_binary(kind):
        return _text_words(values.fill_null("" if t.is_string(kind) else b"").cast(pa.large_binary()))
    if t.is_decimal(kind):
        digits = pc.utf8_rtrim(values.cast(TEXT), "0") if kind.scale > 0 else values.cast(TEXT)
        return _words(pc.utf8_rtrim(digits, "."))
    if t.is_floating(kind):
        floats = values.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False) + 0.0  # -0.0 is 0.0
        return np.where(np.isnan(floats), np.nan, floats).view(np.uint64)
    if t.is_date(kind):
        values = values.cast(pa.timestamp("s"))
    if t.is_temporal(kind):
        per_second = _TICKS[values.type.unit]
        ticks = values.cast(pa.int64()).fill_null(0)
        seconds = floor_divide(ticks, per_second).to_numpy(zero_copy_only=False)
        rest = ticks.to_numpy(zero_copy_only=False) - seconds * per_second
        return _mixed(seconds.view(np.uint64), (rest * (10**9 // per_second)).view(np.uint64))
    numbers = values.cast(pa.uint8()) if t.is_boolean(kind) else values
    whole = numbers.fill_null(0).to_numpy(zero_copy_only=False)
    return whole if kind == pa.uint64() else whole.astype(np.int64).view(np.uint64)


def _text_words(texts: pa.LargeBinaryArray) -> _Words:
    """Return a word for each text: its bytes are taken eight at a time, of all texts that are so long."""
    _, ends, data = texts.buffers()
    offsets = np.frombuffer(ends, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    letters = np.frombuffer(data if data is not None else b"", np.uint8)[offsets[0] : offsets[-1]]
    padded = np.concatenate([letters, np.zeros(_BYTES, np.uint8)])
    eights = np.ndarray((len(letters) + 1,), np.dtype("<u8"), padded, 0, (1,))  # the eight bytes from each byte on
    starts, left = offsets[:-1] - offsets[0], np.diff(offsets)
    found = _mixed(_FIRST, left.astype(np.uint64))
    rows = np.flatnonzero(left)
    while len(rows):
        beyond = np.uint64(8) * np.clip(_BYTES - left[rows], 0, _BYTES - 1).astype(np.uint64)
        found[rows] = _mixed(found[rows], (eights[starts[rows]] << beyond) >> beyond)
        starts, left = starts + _BYTES, left - _BYTES
        rows = rows[left[rows] > 0]
    return found
