"""``change(column, ..)``: until a row whose value is distinct from that of the key's row before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....columns.arrays import Mask, combined
from ....columns.sort_keys import as_values, is_sortable
from ....errors import ConfigError
from ....language.conditions import operand_column
from ....language.row_policies import Change
from ....rows.marks import Marks
from ....rows.panes import Panes
from ....rows.sequence import Sequences, one_batch
from ...context import WindowContext
from ...contract import Explain
from ..boundaries import ended_by_next_row
from ..policy import TumblingPolicy
from ..rules.gather import Gathered


@dataclass(frozen=True, slots=True)
class ChangePolicy(TumblingPolicy):
    """``change(column, ..)``.

    ``value``: as in the spec.
    """

    value: Change

    why: ClassVar[str] = "change"
    ends_before: ClassVar[bool] = True

    @property
    def attributes(self) -> tuple[str, ...]:
        """The columns that are compared."""
        return tuple(map(operand_column, self.value.columns))

    @property
    def required(self) -> tuple[str, ...]:
        """None: null is a value like others, and so is NaN."""
        return ()

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:  # noqa: ARG002
        """Raise `ConfigError` where values cannot be compared."""
        if not is_sortable(dtype):
            raise ConfigError(f"column {name!r} is {dtype}, whose values cannot be compared", "name another column")

    def panes(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Panes:  # noqa: ARG002
        """Return windows that end before a row that is distinct from the row before it."""
        flags = self._changes(sequences)
        begins = sequences.bounds[:-1]
        flags[begins[begins < sequences.bounds[1:]]] = True
        return ended_by_next_row(sequences, np.flatnonzero(flags), "change")

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        """Say which rows are distinct from the row before them."""
        rules.ends_before(rule, self._changes(sequences))

    def edge_labels(
        self,
        segment: Sequences,
        marks: Marks,  # noqa: ARG002
        panes: Panes,  # noqa: ARG002
    ) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Return the values of the two rows, a batch of one row each."""
        ends = segment.rows.select(list(self.attributes)).take(pa.array([0, len(segment) - 1]))
        return ends.slice(0, 1), ends.slice(1, 1)

    def splits(self, before: pa.RecordBatch, after: pa.RecordBatch) -> bool:
        """Return whether the values of two neighbouring rows are distinct."""
        return bool(self._distinct_from_row_before(one_batch(pa.Table.from_batches([before, after])))[0])

    def _changes(self, sequences: Sequences) -> Mask:
        """Return which rows are distinct from the row before them, of whatever key, bool (n,)."""
        flags = np.zeros(len(sequences), np.bool_)
        flags[1:] = self._distinct_from_row_before(sequences.rows)
        return flags

    def _distinct_from_row_before(self, rows: pa.RecordBatch) -> Mask:
        """Return for each row but the first whether it is distinct from the one before it, bool (n - 1,)."""
        columns = [_distinct(combined(rows.column(name))) for name in self.attributes]
        return np.logical_or.reduce(columns) if rows.num_rows else np.empty(0, np.bool_)


def _distinct(column: pa.Array) -> Mask:
    """Return where a column's value is distinct from the one before: null equals null, NaN NaN, and 0.0 equals -0.0."""
    if pa.types.is_null(column.type) or len(column) < 2:
        return np.zeros(max(len(column) - 1, 0), np.bool_)
    column = as_values(column)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    new, old = column.slice(1), column.slice(0, len(column) - 1)
    distinct = pc.not_equal(new, old)
    if column.null_count:
        distinct = pc.if_else(distinct.is_valid(), distinct, pc.xor(new.is_null(), old.is_null()))
    if pa.types.is_floating(column.type):
        both = pc.and_(pc.is_nan(new), pc.is_nan(old)).fill_null(False)
        distinct = pc.and_(distinct, pc.invert(both))
    return distinct.to_numpy(zero_copy_only=False)
