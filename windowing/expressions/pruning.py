"""Whether a condition can be true for any of the rows that statistics describe: what Parquet says of a row group.

The steps of a program run over ranges instead of rows: a value lies between two bounds, a condition has a set of
outcomes. Where a step could fail for a row the answer is always that it can, since a row that fails is not left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from . import arithmetic, casts, logic, texts, times
from .binding import BoundExpression
from .steps import Failures, Step, arrow_function, as_array
from .types import is_number, plain_type

Outcomes: TypeAlias = frozenset[bool | None]
ALL: Final[Outcomes] = frozenset({True, False, None})


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is known of the values of a column in some rows.

    ``low``, ``high``: no value that is not null is below or above, both inclusive; None where nothing is known. NaN
        counts as no value here: the bounds of floats say nothing of it.
    ``may_be_null``: whether there may be a null.
    ``may_be_value``: whether there may be a value that is not null.
    """

    low: pa.Scalar | None = None
    high: pa.Scalar | None = None
    may_be_null: bool = True
    may_be_value: bool = True


_UNKNOWN: Final = Bounds()


def bounds_of(low: Any, high: Any, null_count: int | None, n: int, kind: pa.DataType) -> Bounds:
    """Return the bounds of a column from the statistics of a file.

    ``low``, ``high``: values of Python, or None where the file has none; texts may be cut, as Parquet does.
    ``null_count``: the number of nulls, None where it is not known. ``n``: the number of rows. ``kind``: the column's
    type in the input, in which bounds that do not fit count as unknown.
    """
    may_be_value = null_count is None or null_count < n
    return Bounds(_scalar(low, kind), _scalar(high, kind), null_count != 0, may_be_value)


def never_true(condition: BoundExpression, columns: Mapping[str, Bounds]) -> bool:
    """Return whether a condition is true for no row, and fails for none, whose values lie in these bounds.

    A column that is not in ``columns`` may hold anything. False where that is not certain.
    """
    known: list[Bounds | Outcomes] = []
    for step in condition.program.steps:
        found = _step(step, known, columns)
        if found is None:
            return False
        known.append(found)
    return True not in _outcomes(known[-1])


def _step(step: Step, known: list[Bounds | Outcomes], columns: Mapping[str, Bounds]) -> Bounds | Outcomes | None:
    """What a step may give; None where it may fail."""
    if step.compute == "column":
        found = columns.get(step.options[0], _UNKNOWN)
        return replace(found, high=None) if t.is_floating(step.type) else found
    if step.compute == "constant":
        return _constant(step.options[0])
    operands = [known[each] for each in step.operands]
    compute: Any = step.compute
    if compute is casts.cast:
        return _cast(operands[0], step)
    if compute in {times.to_local, times.from_local}:
        return _in_zone(operands[0], step)
    if compute in _RULES:
        return _RULES[compute](operands, step)
    return (ALL if t.is_boolean(step.type) else _UNKNOWN) if compute in _TOTAL else None


def _constant(value: pa.Scalar) -> Bounds | Outcomes:
    if t.is_boolean(value.type):
        return frozenset({value.as_py()})
    if not value.is_valid or (t.is_floating(value.type) and value.as_py() != value.as_py()):
        return Bounds(None, None, not value.is_valid, value.is_valid)
    return Bounds(value, value, False, True)


def _outcomes(found: Bounds | Outcomes) -> Outcomes:
    if isinstance(found, frozenset):
        return found
    values = {True, False} if found.may_be_value else set()
    if found.low is not None and found.low.as_py() is True:
        values.discard(False)
    if found.high is not None and found.high.as_py() is False:
        values.discard(True)
    return frozenset(values | ({None} if found.may_be_null else set()))


def _cast(operand: Bounds | Outcomes, step: Step) -> Bounds | Outcomes | None:
    if isinstance(operand, frozenset) or operand.low is None or operand.high is None:
        is_exact = not isinstance(operand, frozenset) and operand.low is not None and t.is_floating(step.type)
        return _one_bound(operand, step) if is_exact and isinstance(operand, Bounds) else None
    if not (_is_ordered(operand.low.type) and _is_ordered(step.type)):
        return None
    ends = pa.concat_arrays([as_array(each, 1) for each in (operand.low, operand.high)])
    failures = Failures(2)
    found = casts.cast(failures, ends, *step.options)
    if failures.mask is not None or found.null_count:
        return None
    return Bounds(found[0], found[1], operand.may_be_null, operand.may_be_value)


def _in_zone(operand: Bounds | Outcomes, step: Step) -> Bounds | None:
    """A time on the clocks of a zone, or back: they are less than a day from UTC."""
    if isinstance(operand, frozenset) or operand.low is None or operand.high is None:
        return None
    ends = pa.concat_arrays([as_array(each, 1) for each in (operand.low, operand.high)])
    failures, day = Failures(2), pa.array([-86400, 86400]).cast(pa.duration("s"))
    wide = arithmetic.times(failures, ends, day.cast(pa.duration(step.type.unit)), "+", step.type)
    return None if failures.mask is not None else Bounds(wide[0], wide[1], operand.may_be_null, operand.may_be_value)


def _one_bound(operand: Bounds, step: Step) -> Bounds | None:
    assert operand.low is not None
    if not t.is_floating(operand.low.type) or step.type.bit_width < operand.low.type.bit_width:
        return None
    return Bounds(pa.scalar(operand.low.as_py(), step.type), None, operand.may_be_null, operand.may_be_value)


def _is_ordered(kind: pa.DataType) -> bool:
    return is_number(kind) or t.is_timestamp(kind) or t.is_date(kind)


def _compare(operands: list[Bounds | Outcomes], step: Step) -> Outcomes:
    left, right = operands
    if isinstance(left, frozenset) or isinstance(right, frozenset):
        return ALL
    nulls: Outcomes = frozenset({None} if left.may_be_null or right.may_be_null else ())
    if not (left.may_be_value and right.may_be_value):
        return nulls
    return nulls | _PAIRS[step.options[0]](left, right)


def _less(left: Bounds, right: Bounds) -> Outcomes:
    return _pair(_holds(pc.less, left.low, right.high), _holds(pc.greater_equal, left.high, right.low))


def _less_equal(left: Bounds, right: Bounds) -> Outcomes:
    return _pair(_holds(pc.less_equal, left.low, right.high), _holds(pc.greater, left.high, right.low))


def _equal(left: Bounds, right: Bounds) -> Outcomes:
    can_be = _holds(pc.less_equal, left.low, right.high) and _holds(pc.less_equal, right.low, left.high)
    ends = (left.low, left.high, right.low, right.high)
    is_one = all(each is not None and each.equals(ends[0]) for each in ends)
    return _pair(can_be, not is_one)


def _pair(can_be_true: bool, can_be_false: bool) -> Outcomes:
    return frozenset({*([True] if can_be_true else []), *([False] if can_be_false else [])})


def _holds(compare: Callable[..., Any], left: pa.Scalar | None, right: pa.Scalar | None) -> bool:
    """Whether bounds compare so; true where one of them is not known."""
    return left is None or right is None or bool(compare(left, right).as_py())


def _not(outcomes: Outcomes) -> Outcomes:
    return frozenset(None if each is None else not each for each in outcomes)


def _both(operands: list[Bounds | Outcomes], _step: Step) -> Outcomes:
    found: Outcomes = frozenset({True})
    for operand in map(_outcomes, operands):
        found = frozenset(_and(one, other) for one in found for other in operand)
    return found


def _and(one: bool | None, other: bool | None) -> bool | None:
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def _is_null(operands: list[Bounds | Outcomes], step: Step) -> Outcomes:
    operand = operands[0]
    if isinstance(operand, frozenset):
        found = _pair(None in operand, bool(operand - {None}))
    else:
        found = _pair(operand.may_be_null, operand.may_be_value)
    return _not(found) if step.options[0] else found


def _is_in(operands: list[Bounds | Outcomes], step: Step) -> Outcomes:
    operand, (known, has_null) = operands[0], step.options
    if isinstance(operand, frozenset):
        return ALL
    can_be = operand.may_be_value and any(
        _holds(pc.less_equal, operand.low, each) and _holds(pc.less_equal, each, operand.high) for each in known
    )
    nulls: Outcomes = frozenset({None} if operand.may_be_null or has_null else ())
    return nulls | _pair(can_be, operand.may_be_value)


def _scalar(value: Any, kind: pa.DataType) -> pa.Scalar | None:
    if value is None:
        return None
    try:
        return pa.scalar(value, plain_type(kind))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None


_PAIRS: Final[Mapping[str, Callable[[Bounds, Bounds], Outcomes]]] = {
    "<": _less, "<=": _less_equal, ">": lambda left, right: _less(right, left), "=": _equal,
    ">=": lambda left, right: _less_equal(right, left), "<>": lambda left, right: _not(_equal(left, right)),
}  # fmt: skip
_RULES: Final[Mapping[Any, Callable[[list[Bounds | Outcomes], Step], Bounds | Outcomes]]] = {
    logic.compare: _compare, logic.both: _both, logic.is_null: _is_null, logic.is_in: _is_in,
    logic.either: lambda operands, step: _not(_both([_not(_outcomes(each)) for each in operands], step)),
    logic.nulls: lambda _, step: frozenset({None}) if t.is_boolean(step.type) else Bounds(None, None, True, False),
    logic.opposite: lambda operands, _step: _not(_outcomes(operands[0])),
}  # fmt: skip
_TOTAL: Final = frozenset({
    logic.is_distinct, logic.null_where, arithmetic.floats, texts.trim,
    texts.substring, texts.replace, texts.split_part, texts.concat, texts.join, texts.like, texts.regexp_matches,
    texts.regexp_extract, texts.list_items, texts.member, arrow_function, times.part,
    times.epoch, times.truncate, times.days_between, logic.extreme, texts.hash_values,
})  # fmt: skip
"""Steps that no row fails, of whose values nothing is known here."""
