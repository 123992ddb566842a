"""An enrichment bound to the columns of the input and of its table: types, tolerance and names, all checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from ..columns.arrays import INT64_DIGITS, is_measurable, is_number, scale_of
from ..columns.sort_keys import is_sortable
from ..errors import ConfigError, did_you_mean
from ..language.enrichment import DIRECTIONS, Enrichment, Pair
from ..language.tokens import Duration, decimal_text
from ..support.column_types import UNITS

# The type in which two columns are compared, as SQL compares them.


_MOST_DIGITS = 38


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Return the type in which values of two types are compared; None where they cannot be.

    Integers are compared exactly, and with a float as float64; times in the finer of their units. A time with a zone
    and one without cannot be compared.
    """
    both, types = (left, right), pa.types
    if left == right or types.is_null(right):
        return left
    if types.is_null(left):
        return right
    if all(map(is_number, both)):
        return _common_number(left, right)
    if all(types.is_timestamp(kind) or types.is_date(kind) for kind in both):
        stamps = [kind for kind in both if types.is_timestamp(kind)]
        zones = [kind for kind in stamps if kind.tz is not None]
        units = [kind.unit for kind in stamps] or ["ms"]
        wide = pa.timestamp(max(units, key=UNITS.index), "UTC" if zones else None)
        return wide if len(zones) in (0, 2) else None
    is_bytes = (types.is_binary, types.is_large_binary, types.is_fixed_size_binary)
    if all(any(is_one(kind) for is_one in is_bytes) for kind in both):
        return pa.large_binary()
    return pa.large_string() if {*both} <= {pa.string(), pa.large_string()} else None


def _common_number(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    both, types = (left, right), pa.types
    if any(map(types.is_floating, both)):
        return pa.float64()
    if all(map(types.is_unsigned_integer, both)):
        return pa.uint64()
    if all(map(types.is_integer, both)):
        return pa.decimal128(20, 0) if pa.uint64() in both else pa.int64()
    # An integer counts as one of 20 digits, which hold any of 64 bits.
    sizes = [(kind.precision, kind.scale) if types.is_decimal(kind) else (20, 0) for kind in both]
    scale = max(scale for _, scale in sizes)
    most = scale + max(digits - scale for digits, scale in sizes)
    return pa.decimal128(most, scale) if most <= _MOST_DIGITS else None


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """A column of each side, and the type in which they are compared."""

    left: str
    right: str
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class BoundEnrichment:
    """An enrichment that fits its two sides. It pickles.

    ``keys``: the columns that must be equal.
    ``order``: the order of an as-of enrichment; None for a plain lookup.
    ``within``: the largest distance of a match, inclusive, in ticks of the order's type (int) or as a float; None: any.
    ``strict``: whether a match is not at the row's own order.
    ``taken``: the columns to take, by their names on the right.
    ``fields``: the columns as the rows get them, in the same order.
    """

    enrichment: Enrichment
    keys: tuple[ComparedPair, ...]
    order: ComparedPair | None
    within: int | float | None
    strict: bool
    taken: tuple[str, ...]
    fields: tuple[pa.Field, ...]

    @property
    def who(self) -> str:
        return f"--enrich {self.enrichment.name}"

    @property
    def direction(self) -> str:
        """One of `DIRECTIONS`; of a lookup it means nothing."""
        return self.enrichment.asof.direction if self.enrichment.asof is not None else DIRECTIONS[0]

    @property
    def is_carried(self) -> bool:
        """Whether the last row of each key goes on in a state: what comes later looks at nothing before it."""
        return self.order is not None and self.direction == DIRECTIONS[0]

    @property
    def compared(self) -> tuple[ComparedPair, ...]:
        return (*self.keys, *([self.order] if self.order is not None else []))

    @property
    def left(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(pair.left for pair in self.compared))

    @property
    def right(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*(pair.right for pair in self.compared), *self.taken]))


def bind_enrichment(
    enrichment: Enrichment, left: pa.Schema, right: pa.Schema, own: Sequence[str] = ()
) -> BoundEnrichment:
    """Bind an enrichment to the columns of both sides.

    ``own``: columns that the table has as a stream of wincli, which are taken only by name. Raises `ConfigError` for a
    column that is missing, types that cannot be compared, and a name that the rows have already.
    """
    who = f"--enrich {enrichment.name}"
    keys = bind_keys(who, enrichment.keys, left, right)
    order, within = _order(who, enrichment, left, right)
    strict = enrichment.asof is not None and enrichment.asof.strict
    given = [(taken.column, taken.name) for taken in enrichment.take or ()]
    if enrichment.take is None:
        left_out = {*(pair.right for pair in enrichment.keys), *own}
        given = [(name, None) for name in right.names if name not in left_out]
    if not given:
        raise ConfigError(f"{who}: its table has no column besides its key", "name one behind take")
    taken, fields = bind_taken(who, enrichment.name, given, left.names, right)
    return BoundEnrichment(enrichment, keys, order, within, strict, taken, fields)


OF_TABLE: Final = ("the input", "its table")
"""What messages call the left and the right of an enrichment."""


def bind_keys(
    who: str, keys: Sequence[Pair], left: pa.Schema, right: pa.Schema, sides: tuple[str, str] = OF_TABLE
) -> tuple[ComparedPair, ...]:
    """Return the columns that must be equal, with their types. Raises as `bind_enrichment`."""
    found = tuple(bind_pair(who, pair, left, right, sides) for pair in keys)
    for pair in found:
        if not is_sortable(pair.type):
            raise ConfigError(f"{who}: key {pair.left!r} is {pair.type}", "a key is a number, a text or a time")
    return found


def bind_pair(
    who: str, pair: Pair, left: pa.Schema, right: pa.Schema, sides: tuple[str, str] = OF_TABLE
) -> ComparedPair:
    """Return a column of each side, with the type in which they are compared. Raises as `bind_enrichment`.

    ``sides``: what messages call them.
    """
    kinds = []
    for name, schema, other, side in ((pair.left, left, right, sides[0]), (pair.right, right, left, sides[1])):
        if name not in schema.names:
            do = did_you_mean(name, schema.names)
            if pair.left == pair.right and name in other.names:
                do += f"; where {sides[1]} calls it otherwise, say LEFT=RIGHT"
            raise ConfigError(f"{who}: {side} has no column {name!r}", do)
        kinds.append(schema.field(name).type)
    kind = common_type(*kinds)
    if kind is None:
        what = f"{who}: {pair.left!r} is {kinds[0]} and {pair.right!r} of {sides[1]} is {kinds[1]}"
        raise ConfigError(
            f"{what}: these do not compare", "give both columns one type before, in the files or with --schema"
        )
    return ComparedPair(pair.left, pair.right, kind)


def _order(
    who: str, enrichment: Enrichment, left: pa.Schema, right: pa.Schema
) -> tuple[ComparedPair | None, int | float | None]:
    """Return the order of an as-of enrichment, and its tolerance."""
    if enrichment.asof is None:
        return None, None
    order, within = bind_pair(who, enrichment.asof.order, left, right), enrichment.asof.within
    if pa.types.is_null(order.type):  # neither side has a value, so nothing matches, whatever the type
        order = replace(order, type=pa.float64())
    if not is_measurable(order.type) or (pa.types.is_decimal(order.type) and order.type.precision > INT64_DIGITS):
        what = f"{who}: the order {order.left!r} is compared as {order.type}"
        raise ConfigError(what, "an as-of order is a time or a number of 64 bits; give its type with --schema")
    for field in (left.field(order.left), right.field(order.right)):
        if isinstance(within, Duration) and within and pa.types.is_integer(field.type):
            what = f"{who}: {within.written} is a time, and column {field.name!r} is {field.type}"
            do = f'read it as a time, as with --schema "{field.name}:timestamp(unix_ms)" (or unix, unix_us, unix_ns)'
            plain = f"or say it without a unit: {decimal_text(within)}, with which a state goes on"
            raise ConfigError(f"{what}, numbers without a unit", f"{do}; {plain}")
    scale, ticks = scale_of(order.type), None
    if within is not None:
        ticks = float(within) if scale.per_second is None else min(scale.floor(within), 2**63 - 1)
    return order, ticks


def bind_taken(
    who: str,
    table: str,
    given: Sequence[tuple[str, str | None]],
    names: Sequence[str],
    right: pa.Schema,
    side: str = OF_TABLE[1],
) -> tuple[tuple[str, ...], tuple[pa.Field, ...]]:
    """Return the columns to take, and as what: under the name that is given, or that of the ``table`` before its own.

    ``names``: those that there are already. ``side``: what messages call the right. Raises as `bind_enrichment`.
    """
    fields: list[pa.Field] = []
    for column, name in given:
        if column not in right.names:
            raise ConfigError(f"{who}: {side} has no column {column!r}", did_you_mean(column, right.names))
        field = pa.field(name or f"{table}_{column}", right.field(column).type)
        if field.name in names or field.name in (each.name for each in fields):
            what = f"{who}: the rows have a column {field.name!r} already"
            raise ConfigError(what, f"take it under another name: take {column} as NAME")
        fields.append(field)
    return tuple(column for column, _ in given), tuple(fields)
