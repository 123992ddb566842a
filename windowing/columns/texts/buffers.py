"""Columns of texts and bytes of any length as two arrays: where each begins, and the bytes of all."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..arrays import Ints

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[Any]  # int32 or int64


def is_text(dtype: pa.DataType) -> bool:
    """Whether values of a type are texts or bytes of any length, which `ranked` and `merge_runs` can sort."""
    types = pa.types
    large = types.is_large_string(dtype) or types.is_large_binary(dtype)
    return bool(large or types.is_string(dtype) or types.is_binary(dtype))


def offsets_and_bytes(texts: pa.Array) -> tuple[Ints, Bytes]:
    """Offsets of the texts, int64 (n+1,), and the bytes of all texts."""
    offsets, data = views_of_buffers(texts)
    return offsets.astype(np.int64), data


def views_of_buffers(texts: pa.Array) -> tuple[Offsets, Bytes]:
    """Offsets of the texts, int32 or int64 (n+1,), and the bytes of all texts."""
    _, offsets, content = texts.buffers()
    is_large = pa.types.is_large_string(texts.type) or pa.types.is_large_binary(texts.type)
    kind = np.int64 if is_large else np.int32
    has_any = offsets is not None and offsets.size
    bounds = np.frombuffer(offsets, kind)[texts.offset :][: len(texts) + 1] if has_any else np.zeros(1, kind)
    data = np.frombuffer(content if content is not None else b"", np.uint8)
    bounds.flags.writeable = False  # as some buffers are: kernels are compiled for one of the two
    data.flags.writeable = False
    return bounds, data
