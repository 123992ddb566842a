"""Compiled loops of enrichment: a hash table of 64 bit words, and the search of the newest row at or before another."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..columns.arrays import Ints, Measures
from ..support.jit import kernel

Slots = npt.NDArray[np.int32]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@kernel
def _slot(word: int, shift: int) -> int:
    """The first slot of a word in a table of ``2**(64 - shift)`` slots: Fibonacci hashing of its mixed bits."""
    bits = np.uint64(word)
    bits ^= bits >> np.uint64(32)
    return np.int64((bits * _GOLDEN) >> np.uint64(shift))  # type: ignore[return-value]


@kernel
def hash_slots(words: Ints, shift: int) -> Slots:
    """Return a table of ``2**(64 - shift)`` slots with the place of each of the distinct ``words``; -1 is empty."""
    slots = np.full(1 << (64 - shift), -1, np.int32)
    mask = len(slots) - 1
    for i in range(len(words)):
        at = _slot(words[i], shift)
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = i
    return slots


@kernel
def places_of(wanted: Ints, words: Ints, slots: Slots, shift: int) -> Ints:
    """Return the place of each wanted word among ``words``, -1 if it is none: int64 (n,)."""
    out = np.empty(len(wanted), np.int64)
    mask = len(slots) - 1
    for i in range(len(wanted)):
        at = _slot(wanted[i], shift)
        place = np.int64(slots[at])
        # Invariant: at least half of the slots are empty, so that each chain ends.
        while place >= 0 and words[place] != wanted[i]:
            at = (at + 1) & mask
            place = np.int64(slots[at])
        out[i] = place
    return out


@kernel
def _is_before(order: float, value: float, strict: bool) -> bool:
    return order < value or (order == value and not strict)


@kernel
def newest_before(codes: Ints, at: Measures, starts: Ints, order: Measures, strict: bool) -> Ints:
    """Return, for each row, the last row of its code whose order is at most ``at`` (``strict``: less): int64 (n,).

    ``codes``: int64 (n,), -1 for a key that is none. ``starts``: int64 (codes + 1,), where the ascending ``order`` of
    each code begins. The result is -1 where there is no such row, and where ``at`` is NaN.
    """
    out = np.full(len(codes), -1, np.int64)
    near = starts[:-1].copy()
    # Logs ascend in time, so each search begins where the last one of its key ended, and doubles its steps: it costs as
    # much as the distance has digits, not as the key has rows.
    for i in range(len(codes)):
        code = codes[i]
        if code < 0:
            continue
        first, end, value = starts[code], starts[code + 1], at[i]
        lo, hi, step = near[code], near[code], 1
        # Invariant: no row after hi - 1 is before the value once the steps upwards end, and all rows before lo are once
        # those downwards end.
        if hi < end and _is_before(order[hi], value, strict):
            while hi < end and _is_before(order[hi], value, strict):
                lo = hi + 1
                hi = min(end, lo + step)
                step *= 2
        else:
            while lo > first and not _is_before(order[lo - 1], value, strict):
                hi = lo - 1
                lo = max(first, hi - step)
                step *= 2
        while lo < hi:
            middle = (lo + hi) >> 1
            if _is_before(order[middle], value, strict):
                lo = middle + 1
            else:
                hi = middle
        near[code] = lo
        if lo > first:
            out[i] = lo - 1
    return out
