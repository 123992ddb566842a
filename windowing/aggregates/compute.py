"""Bound calls over panes: one array per call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from windowing.aggregates import user
from windowing.aggregates.bind import Bound
from windowing.aggregates.inputs import Inputs, Ranges
from windowing.aggregates.table import TABLE
from windowing.aggregates.values import frozen, plain
from windowing.columns import Ints
from windowing.spec import Column


def compute(bound: Bound, rows: pa.RecordBatch, lo: Ints, hi: Ints) -> pa.Array:
    """Return the value of one call for each pane, of length P and type ``bound.type`` (semantics section 9).

    ``lo``, ``hi``: int64 (P,), pane p covers the rows ``[lo[p], hi[p])``; panes may overlap, be empty, and stand in
    any order. Nulls are skipped; a pane without values is null, counts are 0. Raises `PaneOverflow` where an integer
    or decimal does not fit, and `PaneFailed` (a `DataError`) for a user function.
    """
    arguments = bound.call.arguments
    names = tuple(a.name for a in arguments if isinstance(a, Column))
    inputs = Inputs(
        columns=tuple(plain(rows.column(name)) for name in names),
        names=names,
        literals=tuple(a for a in arguments if not isinstance(a, Column)),
        ranges=Ranges(frozen(lo), frozen(hi)),
        type=bound.type,
        call=bound.text,
    )
    return _computer(bound)(inputs)


def warm(bounds: Sequence[Bound], schema: pa.Schema) -> None:
    """Run the kernels that calls need on one row of nulls, so that the compiled ones are on disk for all processes.

    User functions are not called.
    """
    names = sorted({name for bound in bounds for name in bound.columns})
    rows = pa.RecordBatch.from_arrays([pa.nulls(1, schema.field(name).type) for name in names], names=names)
    for bound in bounds:
        if ":" not in bound.call.function:
            compute(bound, rows, np.array([0]), np.array([1]))


def _computer(bound: Bound) -> Callable[[Inputs], pa.Array]:
    if ":" not in bound.call.function:
        return TABLE[bound.call.function].compute
    is_column = [isinstance(a, Column) for a in bound.call.arguments]
    return user.calls(user.load(bound.call.function), is_column)
