"""Comparisons, three-valued logic, CASE and COALESCE over whole columns."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from .steps import Failures, Frame, Program, as_array, as_mask, run, run_array

_COMPARE: dict[str, Callable[..., Any]] = {
    "=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip
_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The signs of comparisons, with those that say the same of the sides exchanged."""


def compare(_failures: Failures, left: Any, right: Any, sign: str) -> pa.Array:
    """Compare values of one type. NaN equals NaN and is larger than all other floats; null where one is null."""
    if t.is_floating(left.type):
        return _compare_floats(left, right, sign)
    return _COMPARE[sign](left, right)


def is_distinct(failures: Failures, left: Any, right: Any, negated: bool) -> pa.Array:
    """Compare values of one type, where null equals null: true or false, never null. ``negated``: IS NOT DISTINCT."""
    if t.is_null(left.type):
        return pa.array(np.full(failures.n, negated))  # null and null
    differs = pc.fill_null(compare(failures, left, right, "<>"), False)
    found = pc.or_(differs, pc.xor(pc.is_null(left), pc.is_null(right)))
    return pc.invert(found) if negated else found


def both(_failures: Failures, *conditions: Any) -> Any:
    """AND: false where one is false, else null where one is null."""
    return reduce(pc.and_kleene, conditions)


def either(_failures: Failures, *conditions: Any) -> Any:
    """OR: true where one is true, else null where one is null."""
    return reduce(pc.or_kleene, conditions)


def opposite(_failures: Failures, condition: pa.Array) -> pa.Array:
    """NOT: null for null."""
    return pc.invert(condition)


def is_null(_failures: Failures, values: pa.Array, negated: bool) -> pa.Array:
    """Whether values are null, or with ``negated`` are not."""
    return pc.is_valid(values) if negated else pc.is_null(values)


def is_in(_failures: Failures, values: pa.Array, known: pa.Array, has_null: bool) -> pa.Array:
    """Whether values are among ``known``, which has no null; null for null, and, with ``has_null``, for all others."""
    found = pc.is_in(values, value_set=known)
    return pc.if_else(
        pc.or_(pc.is_null(values), pc.and_(pc.invert(found), has_null)), pa.scalar(None, pa.bool_()), found
    )


def nulls(failures: Failures, *values: Any) -> pa.Array:
    """Return nulls of the type that is the last of ``values``, the others of which are computed for their failures."""
    return pa.nulls(failures.n, values[-1])


def null_where(_failures: Failures, values: Any, rows: Any) -> pa.Array:
    """Return values with null where ``rows`` is true."""
    return pc.if_else(pc.fill_null(rows, False), pa.scalar(None, values.type), values)


def case(
    frame: Frame, conditions: tuple[Program, ...], values: tuple[Program, ...], default: Program | None
) -> pa.Array:
    """CASE: for each row the value of the first condition that is true. Only what a row takes can fail it."""
    n = frame.failures.n
    waiting = np.ones(n, bool)
    kind = values[0].type
    found = pa.nulls(n, kind)
    for condition, value in zip(conditions, values, strict=True):
        if not waiting.any():
            return found
        branch = frame.apart()
        taken = as_mask(run_array(condition, branch)) & waiting
        frame.failures.add_all(branch.failures, waiting)
        found = _fill(found, value, frame, taken)
        waiting &= ~taken
    return found if default is None else _fill(found, default, frame, waiting)


def coalesce(frame: Frame, values: tuple[Program, ...]) -> pa.Array:
    """COALESCE: for each row the first value that is not null. Only what a row takes can fail it."""
    n = frame.failures.n
    waiting = np.ones(n, bool)
    found = pa.nulls(n, values[0].type)
    for value in values:
        if waiting.any():
            branch = frame.apart()
            part = run_array(value, branch)
            frame.failures.add_all(branch.failures, waiting)
            found = pc.if_else(pa.array(waiting), part, found)
            waiting &= ~as_mask(part.is_valid())
            if branch.failures.mask is not None:
                waiting &= ~branch.failures.mask
    return found


def extreme(failures: Failures, *values: Any) -> pa.Array:
    """Return the largest of values of one type that are not null, or the smallest: the last of ``values`` says which.

    That is ``<`` or ``>``, the sign with which the one that is returned follows others.
    """
    first, *others, sign = values
    found = as_array(first, failures.n)
    for value in others:
        other = as_array(value, failures.n)
        is_better = pc.if_else(pc.is_null(found), True, pc.fill_null(compare(failures, found, other, sign), False))
        found = pc.if_else(is_better, other, found)
    return found


def _fill(found: pa.Array, value: Program, frame: Frame, rows: Any) -> pa.Array:
    if not rows.any():
        return found
    branch = frame.apart()
    part = run(value, branch)
    frame.failures.add_all(branch.failures, rows)
    part = part if isinstance(part, pa.Scalar) else as_array(part, len(found))
    return pc.if_else(pa.array(rows), part, found)


def _compare_floats(left: Any, right: Any, sign: str) -> pa.Array:
    if isinstance(left, pa.Scalar):
        left, right, sign = right, left, MIRRORED[sign]
    if isinstance(right, pa.Scalar) and not (right.is_valid and right.as_py() != right.as_py()):
        # Arrow's comparisons with NaN are false: of > and >= the opposite of the opposite is true
        return pc.invert(_COMPARE[_OPPOSITE[sign]](left, right)) if sign in {">", ">="} else _COMPARE[sign](left, right)
    one, other = pc.is_nan(left), pc.is_nan(right)
    if sign in {"=", "<>"}:
        same = pc.or_(pc.equal(left, right), pc.and_(one, other))
        return same if sign == "=" else pc.invert(same)
    if sign in {">", "<="}:
        more = pc.or_(pc.greater(left, right), pc.and_(one, pc.invert(other)))
        return more if sign == ">" else pc.invert(more)
    less = pc.or_(pc.less(left, right), pc.and_(other, pc.invert(one)))
    return less if sign == "<" else pc.invert(less)
