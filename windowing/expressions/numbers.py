"""Functions over numbers, whole columns at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from .arithmetic import as_float
from .casts import cast
from .steps import Failures, as_array, blank
from .types import TEXT, integer_range, type_text


def absolute(failures: Failures, values: pa.Array) -> pa.Array:
    """Return numbers without their sign; the least integer of a type fails."""
    if not t.is_signed_integer(values.type):
        return values if t.is_integer(values.type) else pc.abs(values)
    is_least = pc.equal(values, pa.scalar(integer_range(values.type)[0], values.type))
    told = f"is no {type_text(values.type)}"
    bad = failures.add(is_least, lambda: pc.binary_join_element_wise("abs of", values.cast(TEXT), told, " "))
    return pc.abs(blank(values, bad) if bad.any() else values)


def whole(_failures: Failures, values: pa.Array, kind: pa.DataType, name: str) -> pa.Array:
    """Return ``floor`` or ``ceil`` of floats or decimals as values of a type."""
    found = (pc.floor if name == "floor" else pc.ceil)(values)
    return found.cast(kind)


def rounded(failures: Failures, values: pa.Array, places: int, kind: pa.DataType) -> pa.Array:
    """Return numbers rounded half away from zero, to so many digits behind the point, or below 0 before it."""
    if t.is_floating(values.type):
        return _rounded_floats(values, places)
    if t.is_integer(values.type):
        wide = pc.round(values.cast(pa.decimal128(20, 0)).cast(pa.decimal128(38, 0)), places, "half_towards_infinity")
        return cast(failures, wide, kind, False)
    wide = values.cast(pa.decimal256(76, values.type.scale))
    return pc.round(wide, places, "half_towards_infinity").cast(pa.decimal256(76, kind.scale)).cast(kind)


def _rounded_floats(values: pa.Array, places: int) -> pa.Array:
    """As DuckDB: the float moved by a power of ten, rounded, and moved back; itself where it cannot be moved."""
    if places == 0:
        return pc.round(values, 0, "half_towards_infinity")
    size = as_array(pa.scalar(10.0 ** abs(places)), len(values))
    wide = as_float(values, pa.float64())
    one, other = (pc.multiply, pc.divide) if places > 0 else (pc.divide, pc.multiply)
    found = other(pc.round(one(wide, size), 0, "half_towards_infinity"), size)
    keep = pc.invert(pc.is_finite(found)) if places > 0 else pa.array(np.zeros(len(values), bool))
    return as_float(pc.if_else(keep, wide, found), values.type)
