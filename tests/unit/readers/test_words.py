"""Loops over bytes that take eight at a time find what a loop over single bytes finds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import examples
from wincli.readers.values.value_kinds import digits_end, field_end, plain_end, quoted_end

LAW = examples(300, deadline=None)
BYTES = st.one_of(
    st.binary(max_size=40), st.lists(st.sampled_from(b'0189:/,"\\\n\r\x1f \x80\xff,a'), max_size=40).map(bytes)
)


def first(data: bytes, start: int, ends: object) -> int:
    """Return where the first byte stands for which a condition is true; the size for none."""
    assert callable(ends)
    return next((at for at in range(start, len(data)) if ends(data[at])), len(data))


@LAW
@given(data=BYTES, start=st.integers(0, 9))
def test_the_first_byte_of_each_sort_is_found(data: bytes, start: int) -> None:
    start = min(start, len(data))
    view, n = np.frombuffer(data, np.uint8), len(data)
    assert digits_end(view, start, n) == first(data, start, lambda byte: not 48 <= byte <= 57)
    assert field_end(view, start, n, 44) == first(data, start, lambda byte: byte in b",\r\n")
    assert quoted_end(view, start, n) == first(data, start, lambda byte: byte in b'"\r\n')
    assert plain_end(view, start, n) == first(data, start, lambda byte: byte in b'"\\' or byte < 32)
