"""Values that expressions compute of result rows, and the condition of the rows that are written (section 11)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import Mask, combined
from ..columns.conditions import is_true
from ..errors import DataError
from ..planning.plan import Plan
from ..planning.result_schema import FIXED, MARK
from ..projection.projection import ComputedColumn
from .stream_columns import only_marks


@dataclass(slots=True)
class HiddenPanes:
    """How many panes had rows, and none that the condition of the result lets through.

    ``count``: it grows as the tables of a result are read.
    """

    count: int = 0


def with_result_values(plan: Plan, tables: Iterator[pa.Table], hidden: HiddenPanes) -> Iterator[pa.Table]:
    """Add the columns of `Plan.results`, and yield the rows for which `Plan.having` is true, in the plan's columns.

    No pane has rows in two of the ``tables``. A mark of a row that is left out stays, as a mark-only row. Raises
    `DataError` where an expression fails, with key and window.
    """
    marks: list[pa.Table] = []
    for table in tables:
        for computed in plan.results:
            table = table.append_column(  # noqa: PLW2901 - the same rows with one more column
                pa.field(computed.name, computed.value.type), _values(plan, table, computed)
            )
        if plan.having is None:
            yield table.select(plan.schema.names)
            continue
        own = combined(pc.greater_equal(table["window"], 0))  # a pane of an earlier run has a number below 0
        kept = is_true(combined(_values(plan, table, plan.having))) | ~is_true(own)
        hidden.count += _panes_without(plan, table, kept)
        if not plan.options.plain:
            marks.append(_marks(plan, table, ~kept))
        yield table.select(plan.schema.names).filter(pa.array(kept))
    yield from (table for table in marks if table.num_rows)


def _values(plan: Plan, table: pa.Table, computed: ComputedColumn) -> pa.ChunkedArray | pa.Array:
    found = computed.value.evaluate(table)
    if found.failures is not None:
        at = int(np.flatnonzero(found.failures)[0])
        names = [name for name in (*plan.key, *plan.options.group_by) if name in table.column_names]
        row = table.slice(at, 1)
        cells = ", ".join(f"{name}={row[name].cast(pa.string())[0].as_py()!r}" for name in names)
        where = f"window {row['window'][0].as_py()}{' of ' + cells if cells else ''}"
        raise DataError(
            f"{computed.label} fails for {where}: {found.details[0].as_py()}", "guard it with CASE or TRY_CAST"
        )
    return found.values


def _panes_without(plan: Plan, table: pa.Table, kept: Mask) -> int:
    """Count the panes none of whose rows is kept; rows of a pane are neighbours."""
    if not len(kept):
        return 0
    names = [name for name in (*plan.key, *FIXED, "index") if name in table.column_names]
    begins = np.ones(len(kept), np.bool_)
    if len(kept) > 1:
        begins[1:] = np.logical_or.reduce([_differs(combined(table[name])) for name in names])
    return int((~np.logical_or.reduceat(kept, np.flatnonzero(begins))).sum())


def _differs(column: pa.Array) -> Mask:
    """Return where a column differs from the row before, bool (n - 1,); null equals null."""
    if pa.types.is_dictionary(column.type):
        column = column.indices
    new, old = column.slice(1), column.slice(0, len(column) - 1)
    differs = pc.fill_null(pc.not_equal(new, old), False)
    found = pc.or_(differs, pc.xor(new.is_null(), old.is_null()))
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)


def _marks(plan: Plan, table: pa.Table, left_out: Mask) -> pa.Table:
    """Return mark-only rows in the place of rows that are left out and have a mark."""
    picks = np.flatnonzero(left_out & combined(table[MARK]).is_valid().to_numpy(zero_copy_only=False))
    own = table.select(list(plan.stream_names)).take(pa.array(picks))
    return only_marks(plan, {name: own[name] for name in plan.stream_names})
