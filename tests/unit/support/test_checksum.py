"""Checksums: the same however bytes come, of JSON by what it says, and another for anything else."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wincli.windowing.support.checksum import CHECKSUM, LAST, Checked, checksum, read_object, seal, unseal

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=4).filter(lambda key: key != CHECKSUM), PLAIN, max_size=5)


def test_checksum_names_its_algorithm() -> None:
    assert checksum(b"123456789") == "crc32:cbf43926"  # the check value of CRC-32
    assert checksum(pa.py_buffer(b"123456789")) == "crc32:cbf43926"


@given(st.lists(st.binary(max_size=9)))
def test_a_file_written_piece_by_piece_has_that_of_the_whole(pieces: list[bytes]) -> None:
    beneath = io.BytesIO()
    file = Checked(beneath)
    for piece in pieces:
        file.write(piece)
    file.flush()
    file.close()
    whole = b"".join(pieces)
    assert (beneath.getvalue(), file.checksum) == (whole, checksum(whole))
    assert file.nbytes == file.tell() == len(whole)
    assert not beneath.closed


@given(
    st.lists(st.sampled_from([0, 1, 9, LAST // 3, LAST - 1, LAST, LAST + 1, 3 * LAST]), max_size=6),
    st.binary(min_size=1),
)
def test_the_tail_of_a_file_is_that_of_its_last_bytes(sizes: list[int], seed: bytes) -> None:
    whole = (seed * (sum(sizes) // len(seed) + 1))[: sum(sizes)]
    file, at = Checked(io.BytesIO()), 0
    for n, size in enumerate(sizes):
        buffer = bytearray(whole[at : at + size])
        file.write(memoryview(buffer) if n % 2 else bytes(buffer))  # type: ignore[arg-type]
        buffer[:] = bytes(size)
        at += size
    assert file.tail == checksum(whole[-LAST:])


@given(OBJECTS)
def test_a_sealed_object_reads_back_from_any_layout(told: dict[str, Any]) -> None:
    for layout in ({"indent": 2}, {"sort_keys": True}, {"ensure_ascii": False}):
        assert unseal(read_object(json.dumps(seal(told), **layout).encode("utf-8", "surrogatepass"))) == told
    assert list(seal(told))[-1] == CHECKSUM
    assert unseal(told) == told


@given(OBJECTS, OBJECTS)
def test_another_object_does_not_pass_for_it(told: dict[str, Any], other: dict[str, Any]) -> None:
    changed = {**other, CHECKSUM: seal(told)[CHECKSUM]}
    if json.dumps(told, sort_keys=True) == json.dumps(other, sort_keys=True):
        assert unseal(changed) == told
    else:
        with pytest.raises(ValueError, match="its checksum is of other content"):
            unseal(changed)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", '"x"', "[" * 100_000, b"\xff", b"\0\0"], ids=range(9))
def test_what_is_no_object_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_object(text)
