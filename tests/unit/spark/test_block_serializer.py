"""What crosses between Python and Java comes out as it went in; blocks are not copied where they arrive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from wincli.windowing.spark.block_serializer import BlockSerializer

BLOCKS = [(3, b"x"), (1, b""), (70_000, b"y" * 64), (0, b".!" * 999)]


def test_blocks_are_views_of_the_bytes_that_arrive_at_aligned_places() -> None:
    serializer = BlockSerializer()
    frame = serializer.dumps([(index, pa.py_buffer(data)) for index, data in BLOCKS])
    found = serializer.loads(frame)
    assert [(index, block.to_pybytes()) for index, block in found] == BLOCKS
    begin = pa.py_buffer(frame).address
    assert [block.address - begin for _, block in found] == [0, 64, 64, 128]


@pytest.mark.parametrize(
    "value", [[], [(1, b"!")], [(1, None), (2, pa.py_buffer(b"a"))], {"a": b"!"}, [("!",)], None, b"!"]
)
def test_other_values_are_pickled(value: Any) -> None:
    serializer = BlockSerializer()
    assert serializer.dumps(value)[-1:] == b"."
    assert serializer.loads(serializer.dumps(value)) == value


def test_arrays_stay_writable() -> None:
    serializer = BlockSerializer()
    (array,) = serializer.loads(serializer.dumps([np.arange(3)]))
    array += 1
    assert array.tolist() == [1, 2, 3]
