"""How values travel between Python and Java: as pickles, but the bytes of blocks stand behind a pickle, not in it."""

from __future__ import annotations

import pickle
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark.serializers import CPickleSerializer

_END = b"!"  # the last byte of a pickle is a dot
_WORD = 8
_ALIGNED = 64  # Arrow's arrays in a block stand as they would in one of their own


class BlockSerializer(CPickleSerializer):  # type: ignore[misc]
    """Spark's serializer, which copies each block once where it is sent, and not at all where it arrives.

    A list of (slice, block) pairs is a frame: the blocks, the pickle of their slices and sizes, and the pickle's size.
    """

    def dumps(self, obj: Any) -> bytes:
        """Return a frame of blocks, or the pickle of another value."""
        if not (type(obj) is list and obj and all(type(each) is tuple and type(each[-1]) is pa.Buffer for each in obj)):
            return super().dumps(obj)
        pairs = pickle.dumps([(index, block.size) for index, block in obj])
        blocks = chain.from_iterable((block, bytes(-block.size % _ALIGNED)) for _, block in obj)
        return b"".join([*blocks, pairs, len(pairs).to_bytes(_WORD, "little"), _END])

    def loads(self, obj: bytes, encoding: str = "bytes") -> Any:
        """Return the pairs of a frame, whose blocks are views of it, or another value."""
        if obj[-1:] != _END:
            return super().loads(obj, encoding)
        end = len(obj) - len(_END) - _WORD
        size = int.from_bytes(obj[end : end + _WORD], "little")
        frame, at, found = pa.py_buffer(obj), 0, []
        for index, length in pickle.loads(obj[end - size : end]):
            found.append((index, frame.slice(at, length)))
            at += length + -length % _ALIGNED
        return found
