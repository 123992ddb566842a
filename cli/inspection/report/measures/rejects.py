"""Rejected rows over time: late rows and others, as far as they have an order value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...results.result import ResultFolder, rejects_of
from ..calendar import LATE
from ..report import Axis
from .measured import LATE_ROWS, REJECTS, Measured
from .panes import axis_values

_TIME = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?$"
_INSTANT = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:?\d\d)$"


def add_rejects(results: Sequence[ResultFolder], measured: Measured) -> int:
    """Count the rejected rows of results in the steps of ``measured``; return how many have no place there."""
    if measured.axis.scale == "window":
        return 0
    return sum(_add(result, measured) for result in results)


def _add(result: ResultFolder, measured: Measured) -> int:
    rows = rejects_of(result)
    if rows is None or not {"reason", "row"} <= set(rows.schema.names):
        return 0
    apart = 0
    for table in rows.tables(["reason", "row"]):
        values, has_place = _values(table["row"], measured.axis)
        is_late = pc.equal(table["reason"], LATE).fill_null(False).to_numpy()[has_place].astype(np.int64)
        measured.steps.add(values[has_place], **{LATE_ROWS: is_late, REJECTS: 1 - is_late})
        apart += int(np.count_nonzero(~has_place))
    return apart


def _values(rows: pa.ChunkedArray, axis: Axis) -> tuple[np.ndarray, np.ndarray]:
    """Return the order value of each row, and whether it has one."""
    nothing = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)
    if not pa.types.is_struct(rows.type) or rows.type.get_field_index(axis.name) < 0:
        return nothing
    column = pc.struct_field(rows, axis.name)
    if axis.scale == "time" and pa.types.is_string(column.type):
        column = _times(column, axis)
    try:
        values = axis_values(column, axis.scale)
    except (pa.ArrowException, AttributeError):
        return nothing
    has_place = pc.is_valid(column).to_numpy()
    return values, has_place & np.isfinite(values) if values.dtype.kind == "f" else has_place


def _times(texts: pa.ChunkedArray, axis: Axis) -> pa.ChunkedArray:
    """Return texts as times; null for those that are none."""
    form = _INSTANT if axis.is_utc else _TIME
    good = pc.if_else(pc.match_substring_regex(texts, form).fill_null(False), texts, None)
    kind = pa.timestamp("us", "UTC" if axis.is_utc else None)
    try:
        return pc.cast(good, kind)
    except pa.ArrowInvalid:  # such as the 31st of February
        return pa.chunked_array([pa.nulls(len(texts), kind)])
