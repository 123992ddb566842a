"""Which parts of files a condition lets a reader leave out: those for no row of which it can be true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ..expressions.binding import BoundExpression
from ..ports import ColumnRange
from .projection import Projection


@dataclass(frozen=True, slots=True)
class StoredCondition:
    """A `windowing.ports.Condition` over columns that the input stores.

    ``value``: the condition.
    ``schema``: the columns of the input.
    """

    value: BoundExpression
    schema: pa.Schema

    @property
    def columns(self) -> Sequence[str]:
        """The columns that it depends on."""
        return self.value.columns

    def is_never_true(self, ranges: Mapping[str, ColumnRange]) -> bool:
        """Return whether it is true for no row with such values, and fails for none."""
        from ..expressions.pruning import bounds_of, never_true  # noqa: PLC0415 - few runs have a condition

        bounds = {
            name: bounds_of(found.low, found.high, found.nulls, found.rows, self.schema.field(name).type)
            for name, found in ranges.items()
        }
        return never_true(self.value, bounds)


def stored_condition(projection: Projection) -> StoredCondition | None:
    """Return the condition of a projection where statistics can decide it: over columns of the input alone.

    A column that is computed may fail for a row, which is then to be rejected, so such rows must be read.
    """
    where = projection.where
    computed = {column.name for column in projection.computed} | {*projection.virtual}
    if where is None or computed.intersection(where.value.columns):
        return None
    return StoredCondition(where.value, projection.schema)
