"""User functions that declare `merge`, to the bits: by whatever parts of rows that follow one another."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[Any]


def words(texts: pa.Array) -> str:
    """All texts in order."""
    return " ".join(map(str, texts.to_pylist()))


def merge_words(states: pa.Array) -> str:
    return " ".join(states.to_pylist())


words.merge = merge_words  # type: ignore[attr-defined]


def way(a: Numbers) -> list[int]:
    """The first value, the last, and the sum of the steps between; the way is this sum."""
    return [int(a[0]), int(a[-1]), int(np.abs(np.diff(a.astype(np.int64))).sum())]


def merge_ways(states: pa.Array) -> list[int]:
    first, last, total = np.array(states.to_pylist()).T
    return [int(first[0]), int(last[-1]), int(total.sum() + np.abs(first[1:] - last[:-1]).sum())]


def finish_way(state: list[int]) -> int:
    return state[2]


way.pyarrow_type = pa.list_(pa.int64())  # type: ignore[attr-defined]
way.merge = merge_ways  # type: ignore[attr-defined]
way.finish = finish_way  # type: ignore[attr-defined]


def last_above(x: Numbers, limit: float) -> float | None:
    """The last value above a limit; None where there is none, which counts for nothing."""
    above = x[x > limit]
    return float(above[-1]) if len(above) else None


def merge_last(states: Numbers, limit: float) -> float:
    assert len(states) > 1
    assert (states > limit).all()
    return float(states[-1])


last_above.merge = merge_last  # type: ignore[attr-defined]


def largest(a: Numbers, most: int) -> bytes:
    """The largest values, as bytes; their sum is the value."""
    return bytes(np.sort(a.astype(np.int64))[-most:].tobytes())


def merge_largest(states: pa.Array, most: int) -> bytes:
    return largest(np.frombuffer(b"".join(states.to_pylist()), np.int64), most)


def finish_largest(state: bytes, most: int) -> int | None:
    values = np.frombuffer(state, np.int64)
    return int(values.sum()) if len(values) == most else None


largest.merge = merge_largest  # type: ignore[attr-defined]
largest.finish = finish_largest  # type: ignore[attr-defined]
