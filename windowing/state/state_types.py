"""The types of a state when a run goes on from it: those that the columns have in that run, where they hold its values.

What a state holds has the types of the run that left it. Another file may have given a column a wider type since:
milliseconds are microseconds now, whole numbers are floats. The state then gets these types, exactly or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import ClockValue, combined, scale_of
from ..errors import ConfigError
from ..support.column_types import how_to_keep, plain, type_of_text

_MOST_DIGITS = 38


@dataclass(frozen=True, slots=True)
class StateTypes:
    """The types that a state gets from the run that goes on from it.

    ``now``: the columns of that run.
    ``was``: column to the text of its type in the state.
    ``shown``: what messages call the state: ``the state st at 2026-11-01``.
    ``places``: column to the file, or what else it is, that made its type what it is now.
    ``more``: column of a table of the state to its type, for those that no input has.
    """

    now: pa.Schema
    was: Mapping[str, str]
    shown: str
    places: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, pa.DataType] = field(default_factory=dict)

    def retyped(self, table: pa.Table) -> pa.Table:
        """Return a table of the state in the types of now. Raises `ConfigError` where they do not hold a value."""
        columns = [self._retyped(name, table.column(name)) for name in table.column_names]
        return pa.Table.from_arrays(columns, names=table.column_names)

    def with_all(self, rows: pa.Table, names: Sequence[str]) -> pa.Table:
        """Return rows of the state that also have those columns ``names`` that no file had so far: they are null."""
        for name in names:
            if name not in rows.column_names:
                rows = rows.append_column(name, pa.nulls(rows.num_rows, self.now.field(name).type))
        return rows

    def measure(self, column: str | None, value: ClockValue | None) -> ClockValue | None:
        """Return a measure of a clock column in the type that it has now. Raises as `retyped` does."""
        was = None if column is None else type_of_text(self.was.get(column, ""))
        if value is None or column is None or was is None or pa.types.is_null(was):
            return value
        kind = self.now.field(column).type
        scales = scale_of(was), scale_of(kind)
        if scales[0] == scales[1]:
            return value
        old, new = (Fraction(1) if scale.per_second is None else scale.per_second for scale in scales)
        exact = Fraction(value) * new / old
        if pa.types.is_floating(kind):
            if Fraction(float(exact)) != exact:
                raise self._inexact(column, f"{value}", was)
            return float(exact)
        if exact.denominator != 1 or not -(2**63) <= exact < 2**63:
            raise self._inexact(column, f"{value}", was)
        return int(exact)

    def _retyped(self, name: str, column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        kind = self.more.get(name) or (self.now.field(name).type if name in self.now.names else column.type)
        if column.type == kind or (pa.types.is_dictionary(column.type) and column.type.value_type == kind):
            return column
        values = combined(column)
        try:
            return exactly(values, kind)
        except pa.ArrowInvalid:
            raise self._inexact(name, _first_that_fails(values, kind), plain(values.type)) from None

    def _inexact(self, name: str, value: str, was: pa.DataType) -> ConfigError:
        kind = self.more.get(name) or self.now.field(name).type
        by = f", its type in {self.places[name]}," if name in self.places else ""
        what = f"column {name!r} holds {value} in {self.shown}, as {was}, and {kind}{by} does not hold that exactly"
        do = how_to_keep(name, was) if name in self.places else f"cast it, so that it stays {was}"
        return ConfigError(what, do)


def exactly(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column in another type, structs by the names of their fields.

    Raises `pa.ArrowInvalid` for a value that the type does not hold exactly.
    """
    if column.type == kind:
        return column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.null_count == len(column):
        return pa.nulls(len(column), kind)
    if pa.types.is_struct(kind) and pa.types.is_struct(column.type):
        own = {each.name: values for each, values in zip(column.type, column.flatten(), strict=True)}
        parts = [
            exactly(own[each.name], each.type) if each.name in own else pa.nulls(len(column), each.type)
            for each in kind
        ]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=column.is_null())
    if pa.types.is_list(kind) and (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        counts = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
        offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
        return pa.ListArray.from_arrays(offsets, exactly(column.flatten(), kind.value_type), mask=column.is_null())
    if pa.types.is_integer(column.type) and pa.types.is_decimal128(kind) and 0 <= kind.scale <= _MOST_DIGITS - 20:
        column = column.cast(pa.decimal128(20 + kind.scale, kind.scale))  # Arrow looks at the type, not at the values
    found = column.cast(kind)
    narrows = pa.types.is_date(kind) or pa.types.is_floating(kind)
    if narrows and pa.types.is_primitive(column.type) and not found.cast(column.type).equals(column):
        # Raise `pa.ArrowInvalid` where values have changed; NaN, which is not equal to itself, is the same.
        differs = pc.fill_null(pc.not_equal(column, found.cast(column.type)), False)
        if pa.types.is_floating(column.type):
            differs = pc.and_not(differs, pc.fill_null(pc.is_nan(column), False))
        if pc.any(differs).as_py():
            raise pa.ArrowInvalid("a value has changed")
    return found


def _first_that_fails(values: pa.Array, kind: pa.DataType) -> str:
    """Return the text of the first value that a type does not hold: found by halves."""
    low, high = 0, len(values)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            exactly(values[low:middle], kind)
            low = middle
        except pa.ArrowInvalid:
            high = middle
    value = values[low]
    return str(pc.cast(value, pa.string()).as_py() if pa.types.is_temporal(value.type) else value.as_py())
