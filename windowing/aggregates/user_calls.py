"""Calls of a user function over panes: of its rows at once, or of parts of them whose results are merged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, take_or_null
from ..language.spec import AggregateCall, Column
from .folds.inputs import Dense, Inputs, PaneFailed, as_ranges, dense
from .user import Function, finish_of, load, merge_of, parameter, reason_of, result_type


def values(call: AggregateCall) -> Callable[[Inputs], pa.Array]:
    """Return the aggregate that calls a user function for all rows of each pane."""
    function = load(call.function)
    find, finish = states(call), finish_of(function)
    return find if finish is None else lambda inputs: _finished(finish, find(inputs), inputs)


def states(call: AggregateCall) -> Callable[[Inputs], pa.Array]:
    """Return the aggregate whose values are what the function itself returns, before its ``finish``."""
    function = load(call.function)
    dtype, is_column = result_type(call.function, function), [isinstance(a, Column) for a in call.arguments]

    def compute(inputs: Inputs) -> pa.Array:
        present = as_ranges(dense(inputs))
        filled = np.flatnonzero(~present.empty)
        calls = _arguments(inputs, present, filled, is_column)
        return _called(function, filled, calls, replace(inputs, type=dtype))

    return compute


def merged(call: AggregateCall) -> Callable[[Inputs], pa.Array]:
    """Return the aggregate over panes of states, those of parts of rows that follow one another.

    A state that is the only one of its pane is as it would be without parts, and is not merged.
    """
    function = load(call.function)
    merge, finish = merge_of(function), finish_of(function)
    assert merge is not None
    is_column = [True, *(False for a in call.arguments if not isinstance(a, Column))]

    def compute(inputs: Inputs) -> pa.Array:
        present = as_ranges(dense(inputs))
        (column,) = present.columns
        several = np.flatnonzero(present.sizes > 1)
        calls = _arguments(inputs, present, several, is_column)
        of_merge = replace(inputs, type=column.type, call=f"{inputs.call}: merge")
        found = _called(merge, several, calls, of_merge)
        place = np.where(present.sizes == 1, present.ranges.lo, -1)
        place[several] = len(column) + several
        picked = take_or_null(pa.concat_arrays([column, found]), place)
        return picked.cast(inputs.type) if finish is None else _finished(finish, picked, inputs)

    return compute


def _finished(finish: Function, found: pa.Array, inputs: Inputs) -> pa.Array:
    """Return the value that ``finish`` makes of each state; null for null."""
    filled = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
    literals = [parameter(literal) for literal in inputs.literals]

    def finish_one(state: pa.Scalar) -> Any:
        return finish(state.as_py(), *literals)

    calls = zip(found.drop_null(), strict=True)
    return _called(finish_one, filled, calls, replace(inputs, call=f"{inputs.call}: finish"))


def _called(function: Function, panes: Ints, calls: Iterable[tuple[Any, ...]], inputs: Inputs) -> pa.Array:
    """Call a function for some panes; others are null. Raises `PaneFailed`."""
    results: list[Any] = [None] * len(inputs.ranked.membership)
    pane = -1
    try:
        for pane, arguments in zip(panes.tolist(), calls, strict=True):
            results[pane] = function(*arguments)
    except Exception as error:  # a user's function can raise anything
        raise PaneFailed(pane, inputs.call, reason_of(error)) from error
    return _converted(results, inputs)


def _arguments(inputs: Inputs, present: Dense, filled: Ints, is_column: Sequence[bool]) -> Iterator[tuple[Any, ...]]:
    """Yield the arguments of the call for each pane of ``filled``."""
    # Iterators slice without a line of Python a call, and slices that do not live on give the collector nothing to do.
    lo, hi = present.ranges.lo[filled].tolist(), present.ranges.hi[filled].tolist()
    columns, literals = iter(present.columns), iter(inputs.literals)
    return zip(
        *(
            map(_exposed(next(columns)).__getitem__, map(slice, lo, hi))
            if column
            else repeat(parameter(next(literals)), len(lo))
            for column in is_column
        ),
        strict=True,
    )


def _exposed(column: pa.Array) -> Any:
    """A column as a user function gets it. Numpy and Arrow arrays both slice by ``[lo:hi]`` without a copy."""
    dtype = column.type
    if not (pa.types.is_integer(dtype) or pa.types.is_floating(dtype) or pa.types.is_boolean(dtype)):
        return column
    values = column.to_numpy(zero_copy_only=False)
    values.flags.writeable = False
    return values


def _converted(results: list[Any], inputs: Inputs) -> pa.Array:
    try:
        return pa.array(results, inputs.type)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        pane, value = next((i, value) for i, value in enumerate(results) if not _fits(value, inputs.type))
        reason = f"it returned {value!r:.60}, which is not {inputs.type}"
        raise PaneFailed(pane, inputs.call, reason) from None


def _fits(value: Any, dtype: pa.DataType) -> bool:
    try:
        pa.array([value], dtype)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return False
    return True
