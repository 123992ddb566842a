"""Loops for disjoint panes: flat functions over one dense column and the panes ``[lo, hi)`` of its rows.

All arrays are one-dimensional, contiguous and read-only (`values.frozen`), so each kernel is compiled for one or two
types and no more: ``lo`` and ``hi`` int64 (P,), ``values`` int64 or float64 (n,), ``codes`` int32 (n,).
`inputs.dense` has removed the nulls. Every kernel returns new arrays of length P and reads each pane in row order.
The order matters: "first of equals" is the first one read, and float products round after every factor.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..columns.arrays import Ints
from ..columns.value_words import Words
from ..support.jit import fused, kernel

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]
Numbers = Ints | Floats

TAME_FROM, TAME_TO = 2.0**-400, 2.0**400  # the product of two such sizes, and its rounding error, are normal floats
_FAR = 4096  # an exponent beyond it makes any float 0 or infinite
EXACT_PRODUCT = 2.0**-960  # the rounding error of a smaller product may underflow
LIMB = 0xFFFFFFFF  # 32 bit limbs in int64 leave 31 bits for carries: 2**31 rows cannot overflow them


@kernel
def sum_and_error(a: float, b: float) -> tuple[float, float]:
    """Return ``a + b`` as a float, and exactly what rounding took from it (TwoSum)."""
    # Knuth's form, without a branch on the larger one: the branch is unpredictable and keeps loops from vectorising.
    total = a + b
    moved = total - a
    return total, (a - (total - moved)) + (b - moved)


@kernel
def product_error(a: float, b: float, product: float) -> float:
    """Return ``a * b - product`` exactly, if that is a float."""
    return fused(a, b, -product)


@kernel
def times(a: float, a_low: float, b: float, b_low: float) -> tuple[float, float]:
    """Product of two sums of two floats, with a relative error of a few ``2**-106``."""
    product = a * b
    return product, product_error(a, b, product) + (a * b_low + a_low * b)


@kernel
def between(low: float, high: float, part: float) -> float:
    """Return ``low + part * (high - low)``, also where the difference of the two overflows."""
    if np.isfinite(high - low):
        return low + (high - low) * part
    return low * (1.0 - part) + high * part


@kernel
def error_of_product(a: float, b: float, product: float) -> float:
    """Return `product_error`, or NaN where the error might underflow and so not be a float."""
    if abs(product) < EXACT_PRODUCT and a != 0.0 and b != 0.0:
        return np.nan
    return product_error(a, b, product)


@kernel
def products_and_errors(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return the floats nearest to ``a[i] * b[i]``, and the `error_of_product` of each."""
    high = a * b
    low = np.empty(a.size, np.float64)
    for i in range(a.size):
        low[i] = error_of_product(a[i], b[i], high[i])
    return high, low


@kernel
def limb_sums(values: Ints, high_mask: int, lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
    """Exact sums as ``high * 2**32 + low``; ``high_mask`` is -1 for signed words, `LIMB` for unsigned ones."""
    high = np.empty(lo.size, np.int64)
    low = np.empty(lo.size, np.int64)
    for p in range(lo.size):
        # Invariant: upper * 2**32 + lower is the true sum so far; no step can overflow, so the loop has no checks.
        upper = 0
        lower = 0
        for i in range(lo[p], hi[p]):
            upper += (values[i] >> 32) & high_mask
            lower += values[i] & LIMB
        high[p] = upper
        low[p] = lower
    return high, low


@kernel
def exact_products(values: Ints, unsigned: bool, lo: Ints, hi: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Product of each pane's integers, and which products do not fit int64. A product with a zero always fits."""
    out = np.empty(lo.size, np.int64)
    over = np.zeros(lo.size, np.bool_)
    largest = np.uint64(1) << np.uint64(63)
    for p in range(lo.size):
        # Magnitude and sign apart: a product may be -2**63, whose magnitude is no int64. Overflow is sticky, and only
        # a zero further on can undo it, so the loop reads the pane to its end.
        size = np.uint64(1)
        negative = False
        zero = False
        for i in range(lo[p], hi[p]):
            minus = values[i] < 0 and not unsigned
            factor = np.uint64(-values[i]) if minus else np.uint64(values[i])
            negative ^= minus
            zero |= values[i] == 0
            over[p] |= factor > 0 and size > largest // factor
            size *= factor
        over[p] = not zero and (over[p] or size > largest or (size == largest and not negative))
        out[p] = np.int64(0) if zero else np.int64(-size) if negative else np.int64(size)
    return out, over


@kernel
def tamed(value: float) -> tuple[float, int]:
    """Return a number of magnitude ``[0.5, 1)`` and a binary exponent; 0, infinity and NaN come back unchanged."""
    if value == 0.0 or not np.isfinite(value):
        return value, 0
    digits, exponent = math.frexp(value)
    return digits, exponent


@kernel
def scaled(value: float, exponent: int) -> float:
    """Return ``value * 2**exponent``."""
    return math.ldexp(value, min(max(exponent, -_FAR), _FAR)) if exponent else value


@kernel
def float_products(values: Floats, lo: Ints, hi: Ints) -> Floats:
    """Product of each pane's floats, rounded at every step; intermediate products cannot overflow or underflow."""
    out = np.empty(lo.size, np.float64)
    for p in range(lo.size):
        # Invariant: the product so far is product * 2**exponent; abs(product) is tame (see above), 0, inf or NaN.
        product = 1.0
        exponent = 0
        for i in range(lo[p], hi[p]):
            factor = values[i]
            if not TAME_FROM < abs(factor) < TAME_TO:
                factor, more = tamed(factor)
                exponent += more
            product *= factor
            if not TAME_FROM < abs(product) < TAME_TO:
                product, more = tamed(product)
                exponent += more
        out[p] = scaled(product, exponent)
    return out


@kernel
def first_smallest(values: Numbers, lo: Ints, hi: Ints) -> Ints:
    """Row of each pane's smallest value, the first of equals, NaN skipped; -1 where there is none."""
    out = np.empty(lo.size, np.int64)
    for p in range(lo.size):
        best = -1
        for i in range(lo[p], hi[p]):
            # values[i] == values[i] is false for NaN alone; a NaN is never less than the best one either.
            if (best < 0 and values[i] == values[i]) or values[i] < values[best]:
                best = i
        out[p] = best
    return out


@kernel
def first_largest(values: Numbers, lo: Ints, hi: Ints) -> Ints:
    """Row of each pane's largest value, the first of equals, NaN skipped; -1 where there is none."""
    out = np.empty(lo.size, np.int64)
    for p in range(lo.size):
        best = -1
        for i in range(lo[p], hi[p]):
            if (best < 0 and values[i] == values[i]) or values[i] > values[best]:
                best = i
        out[p] = best
    return out


@kernel
def equal_counts(values: Numbers, picks: Ints, lo: Ints, hi: Ints) -> Ints:
    """How many of each pane's values equal the value in row ``picks``; 0 where ``picks`` is -1."""
    out = np.zeros(lo.size, np.int64)
    for p in range(lo.size):
        if picks[p] >= 0:
            for i in range(lo[p], hi[p]):
                out[p] += values[i] == values[picks[p]]
    return out


@kernel
def below_and_equal(values: Numbers, picks: Ints, lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
    """How many of each pane's values are below the value in row ``picks``, and equal to it, NaN last; 0 at -1."""
    below, equal = np.zeros(lo.size, np.int64), np.zeros(lo.size, np.int64)
    for p in range(lo.size):
        if picks[p] >= 0:
            value = values[picks[p]]
            for i in range(lo[p], hi[p]):
                alike = values[i] == value or (np.isnan(values[i]) and np.isnan(value))
                equal[p] += alike
                below[p] += values[i] < value or (np.isnan(value) and not alike)
    return below, equal


@kernel
def longest(lo: Ints, hi: Ints) -> int:
    """Number of rows of the longest pane."""
    rows = 0
    for p in range(lo.size):
        rows = max(rows, hi[p] - lo[p])
    return rows


@kernel
def continues_previous(lo: Ints, hi: Ints, base: Ints, p: int) -> bool:
    """Whether pane p can be computed from the pane before it: both are of one sequence and no bound falls.

    A sequence that has only nulls has no entries and can share its base with another sequence. If so, bounds that fall
    separate the two; bounds that rise do no harm.
    """
    return p > 0 and base[p] == base[p - 1] and lo[p] >= lo[p - 1] and hi[p] >= hi[p - 1]


# Loops over disjoint panes that find equal values: how many are different, and which occurs most often.
#
# All arrays are one-dimensional, contiguous and read-only (`values.frozen`), as in `loops`. The rows of a short pane
# are compared with each other: to encode all values in one dictionary takes much longer where most of them are
# different.


FEW = 16
"""Rows of a pane, at most, of which each is compared with those before it; of more rows the codes are looked up."""


class EqualityKeys(NamedTuple):
    """What decides which values of a column are equal, for n values.

    ``words``: uint64 (n,), equal for equal values and for no others; empty for texts.
    ``offsets``: int64 (n + 1,), where the bytes of each text begin in ``data``; empty for all but texts.
    ``data``: uint8, the bytes of texts.
    """

    words: Words
    offsets: Ints
    data: npt.NDArray[np.uint8]


@kernel
def _are_equal(keys: EqualityKeys, i: int, j: int) -> bool:
    if not keys.offsets.size:
        return keys.words[i] == keys.words[j]
    one, other = keys.offsets[i], keys.offsets[j]
    size = keys.offsets[i + 1] - one
    if keys.offsets[j + 1] - other != size:
        return False
    at = 0
    while at < size and keys.data[one + at] == keys.data[other + at]:
        at += 1
    return at == size


@kernel
def first_equals(keys: EqualityKeys, codes: Codes, distinct: int, rows: int, lo: Ints, hi: Ints) -> Ints:
    """The first row of its pane with an equal value, for each row: int64 (rows,); -1 for a row in no pane.

    ``codes``: int32 (rows,), below ``distinct``, equal for equal values; read only in panes of more than `FEW` rows.
    """
    first = np.full(rows, -1, np.int64)
    seen = np.full(distinct, -1, np.int64)
    for p in range(lo.size):
        if hi[p] - lo[p] > FEW:
            for i in range(lo[p], hi[p]):
                # A row that another pane has seen is not within the bounds, so nothing is cleared between panes.
                if not lo[p] <= seen[codes[i]] < hi[p]:
                    seen[codes[i]] = i
                first[i] = seen[codes[i]]
            continue
        for i in range(lo[p], hi[p]):
            first[i] = i
            for j in range(lo[p], i):
                # Only first appearances are compared: each of the other rows equals one of them.
                if first[j] == j and _are_equal(keys, i, j):
                    first[i] = j
                    break
    return first


@kernel
def most_frequent(first: Ints, lo: Ints, hi: Ints) -> Ints:
    """Row of the first appearance of each pane's most frequent value, the earliest of equals; -1 where empty.

    ``first``: as `first_equals` returns it.
    """
    out = np.full(lo.size, -1, np.int64)
    counts = np.zeros(longest(lo, hi), np.int64)
    for p in range(lo.size):
        # Invariant: all counts are 0 before and after a pane; they are those of the first appearances.
        best = 0
        for i in range(lo[p], hi[p]):
            counts[first[i] - lo[p]] += 1
            best = max(best, counts[first[i] - lo[p]])
        for i in range(lo[p], hi[p]):
            if counts[i - lo[p]] == best and out[p] < 0:
                out[p] = i
            counts[i - lo[p]] = 0
    return out


@kernel
def distinct_counts(first: Ints, lo: Ints, hi: Ints) -> Ints:
    """How many different values each pane holds. ``first``: as `first_equals` returns it."""
    out = np.zeros(lo.size, np.int64)
    for p in range(lo.size):
        for i in range(lo[p], hi[p]):
            out[p] += first[i] == i
    return out


@kernel
def distinct_rows(first: Ints, total: int, lo: Ints, hi: Ints) -> Ints:
    """Rows in which each pane's values appear first, pane after pane, of shape (total,)."""
    out = np.empty(total, np.int64)
    count = 0
    for p in range(lo.size):
        for i in range(lo[p], hi[p]):
            if first[i] == i:
                out[count] = i
                count += 1
    return out


@kernel
def most_at_once(begins: Numbers, until: Numbers, lo: Ints, hi: Ints) -> Ints:
    """The most entries of each pane at one instant. They begin in order, and last ``[begins, until)`` or an instant."""
    most = np.zeros(lo.size, np.int64)
    for p in range(lo.size):
        ends = np.sort(until[lo[p] : hi[p]])
        # Invariant: ``ended`` entries end at or before the instant, of which ``instants`` never lasted any longer: they
        # are in ``ends``, too, so they count as gone as soon as they are there, but for the instant itself.
        ended, i = 0, lo[p]
        while i < hi[p]:
            now, here = begins[i], 0
            while i < hi[p] and begins[i] == now:
                here += until[i] == now
                i += 1
            while ended < ends.size and ends[ended] <= now:
                ended += 1
            most[p] = max(most[p], i - lo[p] - ended + here)
    return most
