"""Sketches of the values of each pane, and what they estimate (semantics section 9).

The sketches are those of Apache DataSketches in their binary form, which Spark SQL and other programs merge. Values are
hashed as these do. Sketches of panes are made of rows and never of sketches, so a result does not depend on cuts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import Ints
from ..columns.text_sort import is_text, offsets_and_bytes
from ..errors import DataError
from ..rows.membership import sizes
from .inputs import Dense, Inputs, TwoPhase, as_ranges, dense, filtered, floats, frozen, masked

_FINEST_SHARE = 10**6
_LARGEST = 2**31 - 1  # bytes of a column of binary
_NAN = np.uint64(0x7FF8000000000000)
_SET, _PLACED = 1, 2  # modes of a sketch: a set, and a byte for each place; 0 is a list


def hll_sketches(is_merged: bool = False) -> Callable[[Inputs], pa.Array]:
    """Return the aggregate of HyperLogLog sketches of the different values, as `hll_sketch_agg` of Spark gives them.

    Null without a value. ``is_merged``: whether of sketches of parts of a pane.
    """

    def compute(inputs: Inputs) -> pa.Array:
        present = as_ranges(dense(inputs))
        return _binary(*_hll(present, is_merged), present)

    return compute


def approx_distinct_counts(is_merged: bool = False) -> Callable[[Inputs], pa.Array]:
    """Return the aggregate of the estimated number of different values: that of `hll_sketches`."""
    return lambda inputs: _estimates(*_hll(as_ranges(dense(inputs)), is_merged))


def _estimates(sketches: npt.NDArray[np.uint8], offsets: Ints) -> pa.Array:
    import datasketches  # noqa: PLC0415 - an extra

    first, mode = offsets[:-1], sketches[offsets[:-1] + 7] & 3
    counts = sketches[first + 6].astype(np.int64)  # of a list
    of_set = first[mode == _SET, np.newaxis] + np.arange(8, 12)
    counts[mode == _SET] = sketches[of_set].view("<i4")[:, 0]
    for pane in np.flatnonzero(mode == _PLACED).tolist():
        sketch = sketches[offsets[pane] : offsets[pane + 1]].tobytes()
        counts[pane] = round(datasketches.hll_sketch.deserialize(sketch).get_estimate())
    return pa.array(counts)


def kll_sketches(inputs: Inputs) -> pa.Array:
    """The KLL sketch of the values in order: of bigints where all integers of the type are, else of doubles."""
    from . import sketch_loops  # noqa: PLC0415 - few jobs make sketches

    column = inputs.columns[0]
    present = as_ranges(dense(inputs)) if holds_bigints(column.type) else _without_nan(inputs)
    values = present.columns[0].cast(pa.int64()) if holds_bigints(column.type) else present.columns[0]
    sketches, offsets = sketch_loops.kll_sketches(frozen(values.to_numpy()), present.ranges.lo, present.ranges.hi)
    return _binary(sketches, offsets, present)


def approx_quantiles(inputs: Inputs) -> pa.Array:
    """Quantile q of the KLL sketch of the values as doubles: one of the values; NaN skipped."""
    from . import sketch_loops  # noqa: PLC0415 - few jobs make sketches

    present, share = _without_nan(inputs), inputs.literals[0].limit_denominator(_FINEST_SHARE)
    values = frozen(present.columns[0].to_numpy())
    found = sketch_loops.kll_quantiles(values, share.numerator, share.denominator, present.ranges.lo, present.ranges.hi)
    return masked(found, present.empty, inputs.type)


def holds_bigints(kind: pa.DataType) -> bool:
    """Whether every value of a type is a whole number of 64 bits with a sign."""
    return bool(pa.types.is_integer(kind) and kind != pa.uint64())


def is_hashable(kind: pa.DataType) -> bool:
    """Whether values of a type have one form that is hashed: no decimals, times of day, durations or nested values."""
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_date, pa.types.is_timestamp)
    return is_text(kind) or pa.types.is_fixed_size_binary(kind) or any(test(kind) for test in tests)


def _hll(present: Dense, is_merged: bool) -> tuple[npt.NDArray[np.uint8], Ints]:
    """Return the sketches of all panes one after the other, and where each begins: int64 (P+1,)."""
    from . import sketch_loops  # noqa: PLC0415 - few jobs make sketches

    lo, hi = present.ranges.lo, present.ranges.hi
    if is_merged:
        parts = [sketch_loops.coupons_of(np.frombuffer(each, np.uint8)) for each in present.columns[0].to_pylist()]
        before = np.cumsum([0, *map(len, parts)])
        lo, hi, coupons = before[lo], before[hi], np.concatenate([np.empty(0, np.uint32), *parts])
    else:
        coupons = _coupons(present.columns[0])
    found: tuple[npt.NDArray[np.uint8], Ints] = sketch_loops.hll_sketches(frozen(coupons), frozen(lo), frozen(hi))
    return found


def _coupons(column: pa.Array) -> npt.NDArray[np.uint32]:
    """Hash values: texts by their bytes, others by 8 bytes, a bigint, or a double with one zero and one NaN."""
    from . import sketch_loops  # noqa: PLC0415 - few jobs make sketches

    kind, coupons_of_numbers = column.type, sketch_loops.number_coupons
    if is_text(kind) or pa.types.is_fixed_size_binary(kind):
        offsets, content = offsets_and_bytes(column.cast(pa.large_binary()))
        return sketch_loops.bytes_coupons(frozen(offsets), frozen(content))
    if pa.types.is_floating(kind):
        values = floats(column)
        values = np.where(values == 0, 0.0, values)  # for -0.0
        return coupons_of_numbers(frozen(np.where(np.isnan(values), _NAN, values.view(np.uint64))))
    if kind == pa.uint64():
        return coupons_of_numbers(frozen(column.to_numpy()))
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("ns" if kind.unit == "ns" else "us", kind.tz))  # Spark counts microseconds
    elif pa.types.is_date(kind):
        column = column.cast(pa.date32()).cast(pa.int32())
    whole = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return coupons_of_numbers(frozen(whole.view(np.uint64)))


def _without_nan(inputs: Inputs) -> Dense:
    """Return the panes as ranges, and their values that are neither null nor NaN as float64."""
    present = dense(inputs)
    values = floats(present.columns[0])
    membership = present.membership
    if (is_nan := np.isnan(values)).any():
        values, membership = values[~is_nan], filtered(membership, ~is_nan)
    column: Any = pa.array(values)
    return as_ranges(replace(present, columns=(column,), membership=membership, sizes=sizes(membership)))


def _binary(content: npt.NDArray[np.uint8], offsets: Ints, present: Dense) -> pa.Array:
    if len(content) > _LARGEST:
        what = f"the sketches of {len(offsets) - 1:,} windows have {len(content):,} bytes, more than fit a column"
        raise DataError(what, "use windows that overlap less, or fewer of them")
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(content)]
    whole = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)
    return pc.if_else(pa.array(present.empty), pa.scalar(None, pa.binary()), whole)


def phases(merge: Callable[[Inputs], pa.Array]) -> TwoPhase:
    """Return the two phases of what ``merge`` makes of the `hll_sketches` of parts."""
    split = hll_sketches()
    return TwoPhase(1, lambda inputs: [split(inputs)], merge, in_order=True)
