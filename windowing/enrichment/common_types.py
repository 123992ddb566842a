"""The type in which two columns are compared, as SQL compares them."""

from __future__ import annotations

import pyarrow as pa

_UNITS = ("s", "ms", "us", "ns")
_MOST_DIGITS = 38


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Return the type in which values of two types are compared; None where they cannot be.

    Integers are compared exactly, and with a float as float64; times in the finer of their units. A time with a zone
    and one without cannot be compared.
    """
    if left == right:
        return left
    if pa.types.is_null(left) or pa.types.is_null(right):
        return right if pa.types.is_null(left) else left
    for pick in (_integers, _floats, _decimals, _texts, _bytes, _times):
        found = pick(left, right)
        if found is not None:
            return found
    return None


def _both(test: str, left: pa.DataType, right: pa.DataType) -> bool:
    is_one = getattr(pa.types, test)
    return bool(is_one(left) and is_one(right))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _integers(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if not _both("is_integer", left, right):
        return None
    if _both("is_unsigned_integer", left, right):
        return pa.uint64()
    return pa.decimal128(20, 0) if pa.uint64() in (left, right) else pa.int64()


def _floats(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    is_any = pa.types.is_floating(left) or pa.types.is_floating(right)
    return pa.float64() if is_any and _is_number(left) and _is_number(right) else None


def _decimals(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if not (_is_number(left) and _is_number(right)):
        return None
    (digits, scale), (more, finer) = _digits(left), _digits(right)
    wanted = max(scale, finer)
    most = wanted + max(digits - scale, more - finer)
    return pa.decimal128(most, wanted) if most <= _MOST_DIGITS else None


def _digits(kind: pa.DataType) -> tuple[int, int]:
    """Return how many digits a number has at most, and how many of them are behind its point."""
    return (kind.precision, kind.scale) if pa.types.is_decimal(kind) else (20, 0)


def _texts(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    names = {pa.string(), pa.large_string()}
    return pa.large_string() if {left, right} <= names else None


def _bytes(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    def is_bytes(kind: pa.DataType) -> bool:
        types = pa.types
        return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind))

    return pa.large_binary() if is_bytes(left) and is_bytes(right) else None


def _times(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if not all(pa.types.is_timestamp(kind) or pa.types.is_date(kind) for kind in (left, right)):
        return None
    zones = [kind.tz is not None for kind in (left, right) if pa.types.is_timestamp(kind)]
    has_zone = any(zones)
    if has_zone and (not all(zones) or len(zones) < 2):
        return None
    units = [kind.unit for kind in (left, right) if pa.types.is_timestamp(kind)] or ["ms"]
    return pa.timestamp(max(units, key=_UNITS.index), "UTC" if has_zone else None)
