"""Row validation: which rows no window can place, and why (semantics sections 2 and 8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..clock.calendar_grid import FIRST, LAST
from ..columns.amounts import is_negative
from ..columns.arrays import Ints, Mask, combined
from ..columns.numeric import has_nan, measures, overflows, scale_of
from ..planning.plan import Plan

Reasons = npt.NDArray[np.object_]
FAILED = "expression_error"
"""The reason of a row for which an expression fails."""


def validate_rows(plan: Plan, rows: pa.RecordBatch) -> Reasons | None:
    """Return the reject reason of each row (None: kept), or None where all rows are kept.

    The first reason that applies, of ``null_order``, ``null_key`` (null or NaN), ``null_attribute``, ``nan_attribute``,
    ``negative_amount`` and ``type_overflow``: a value beyond the 64 bit ticks in which distances and clocks are
    computed, an infinite clock, or in windows with dates one beyond the years 1 to 9999. Columns with ``lag`` are not
    there yet.
    """
    late = {column.name for column in plan.lag_columns}
    return _first_reasons(rows, _violations(plan, rows, lambda name: name not in late))


def validate_lag_columns(plan: Plan, rows: pa.RecordBatch) -> Reasons | None:
    """Return the reject reason of each row as far as columns with ``lag`` say, which `validate_rows` does not know."""
    late = {column.name for column in plan.lag_columns}
    return _first_reasons(rows, _violations(plan, rows, lambda name: name in late))


def add_late(reasons: Reasons | None, late: Mask) -> Reasons | None:
    """Add the reason ``late`` to reject reasons; a row that has a reason already keeps it. ``late``: bool (n,)."""
    if not late.any():
        return reasons
    reasons = np.full(len(late), None, np.object_) if reasons is None else reasons
    reasons[late & (reasons == None)] = "late"  # noqa: E711 - element by element
    return reasons


def split_by_reason(reasons: npt.NDArray[np.object_]) -> tuple[Ints, Ints]:
    """Return the indices of rows without a reject reason, and of rows with one, both int64 and ascending."""
    is_kept = reasons == None  # noqa: E711 - element by element
    return np.flatnonzero(is_kept), np.flatnonzero(~is_kept)


def _first_reasons(rows: pa.RecordBatch, violations: Iterator[tuple[str, Mask]]) -> Reasons | None:
    reasons: Reasons | None = None
    for reason, mask in violations:
        if reasons is None:
            reasons = np.full(rows.num_rows, None, np.object_)
        reasons[mask & (reasons == None)] = reason  # noqa: E711 - element by element
    return reasons


def _violations(plan: Plan, rows: pa.RecordBatch, asked: Callable[[str], bool]) -> Iterator[tuple[str, Mask]]:
    """Yield reasons with the rows that they apply to, as far as columns that are ``asked`` for say."""
    event_time = (plan.options.event_time,) if plan.options.event_time else ()
    named = tuple(dict.fromkeys([*plan.kind.required, *event_time]))
    clock = event_time or (plan.order.columns[:1] if plan.kind.needs_clock else ())
    for reason, names in (("null_order", plan.order.columns), ("null_key", plan.key)):
        for name in filter(asked, names):
            column = combined(rows.column(name))
            yield from _null(reason, column)
            yield from _nan(reason, column)
    for name in filter(asked, named):
        column = combined(rows.column(name))
        yield from _null("null_attribute", column)
        yield from _nan("nan_attribute", column)
    for name in filter(asked, plan.kind.amounts):
        negative = is_negative(combined(rows.column(name)))
        if negative.any():
            yield "negative_amount", negative
    for name in filter(asked, dict.fromkeys([*clock, *plan.kind.measured])):
        is_overflow = overflows(combined(rows.column(name)))
        if is_overflow is not None:
            yield "type_overflow", is_overflow
    for name in filter(asked, clock):
        yield from _infinite(combined(rows.column(name)))
        if plan.kind.is_dated:
            yield from _undated(combined(rows.column(name)))


def _null(reason: str, column: pa.Array) -> Iterator[tuple[str, Mask]]:
    if column.null_count:
        yield reason, column.is_null().to_numpy(zero_copy_only=False)


def _nan(reason: str, column: pa.Array) -> Iterator[tuple[str, Mask]]:
    if has_nan(column):
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        yield reason, np.isnan(measures(column)) & valid


def _infinite(column: pa.Array) -> Iterator[tuple[str, Mask]]:
    """Yield infinite clock values: they lie in no window of a grid."""
    if pa.types.is_floating(column.type) and bool(np.isinf(measures(column)).any()):
        yield "type_overflow", np.isinf(measures(column))


def _undated(column: pa.Array) -> Iterator[tuple[str, Mask]]:
    """Yield clock values beyond the years 1 to 9999, in which dates are known."""
    values, per_second = measures(column), scale_of(column.type).per_second or 1
    low, high = (second * per_second for second in (FIRST, LAST + 1))
    if pa.types.is_uint64(column.type):  # measures are shifted down
        low, high = low - 2**63, high - 2**63
    if values.dtype == np.int64:
        low, high = max(low.__ceil__(), -(2**63)), min(high.__ceil__() - 1, 2**63 - 1)
        is_far = (values < low) | (values > high)
    else:
        is_far = (values < float(low)) | (values >= float(high))
    if is_far.any():
        yield "type_overflow", is_far
