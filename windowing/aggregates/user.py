"""User functions as aggregates: ``module:name(x, ..)`` is called once per pane (semantics section 9).

    def spread(latency) -> float:  # in stats.py
        return float(latency.max() - latency.min())

    --agg "stats:spread(latency)"

The function gets a column of integers, floats or booleans as a read-only numpy array, and any other column as an Arrow
array. Rows with a null in one of these columns are left out. A pane without rows is null, and the function is not
called. Literals arrive as int, float or str.

A function may declare how its results are merged, by attributes that are functions. ``merge(states, ..)`` gets results
for parts of rows that follow one another, in their order, as a column, and the literals of the call; it returns what
the function returns for all these rows. ``finish(state, ..)`` gets such a result as a Python value, and makes of it the
value of the pane; without it the result is the value.
"""

from __future__ import annotations

import datetime as dt
import decimal
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, take_or_null
from ..errors import ConfigError
from ..language.spec import AggregateCall, Column
from ..support.modules import import_own
from .inputs import Dense, Inputs, PaneFailed, TwoPhase, as_ranges, dense

Function = Callable[..., Any]

_TYPES: dict[Any, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    dt.datetime: pa.timestamp("us"),
    dt.date: pa.date32(),
    dt.timedelta: pa.duration("us"),
    decimal.Decimal: pa.decimal128(38, 9),
}


def load(name: str) -> Function:
    """Import ``module:name``. Raises `ConfigError` with the reason where that fails."""
    module_name, _, function_name = name.partition(":")
    try:
        module = import_own(module_name)
    except Exception as error:  # the module's own code runs here and can raise anything
        raise ConfigError(f"{name}: cannot import module {module_name}: {reason_of(error)}") from error
    function = getattr(module, function_name, None)
    if not callable(function):
        raise ConfigError(f"{name}: module {module_name} has no function {function_name}")
    return typing.cast(Function, function)


def merge_of(function: Function) -> Function | None:
    """Return the function that merges the results of another for parts of rows; None where that declares none."""
    return typing.cast("Function | None", getattr(function, "merge", None))


def finish_of(function: Function) -> Function | None:
    """Return the function that makes values of the results of another; None where these are the values."""
    return typing.cast("Function | None", getattr(function, "finish", None))


def value_type(name: str, function: Function) -> pa.DataType:
    """Return the type of a function's values: that of the results of its ``finish``, else of its own."""
    own, finish = result_type(name, function), finish_of(function)
    return own if finish is None else result_type(f"{name}.finish", finish)


def result_type(name: str, function: Function) -> pa.DataType:
    """Return the type of a function's results: its ``pyarrow_type``, else its return annotation, else float64."""
    own = getattr(function, "pyarrow_type", None)
    if isinstance(own, pa.DataType):
        return own
    try:
        hint = typing.get_type_hints(function).get("return", float)
    except Exception as error:  # annotations are expressions and can raise anything
        raise ConfigError(f"{name}: its annotations do not read: {reason_of(error)}") from error
    found = _annotated(hint)
    if found is None:
        what = f"{name}: a result of {getattr(hint, '__name__', hint)} has no column type"
        raise ConfigError(what, f"set {name.partition(':')[2]}.pyarrow_type")
    return found


def check_arguments(text: str, function: Function, arguments: Sequence[Any]) -> None:
    """Raise `ConfigError` where a function does not accept this number of arguments."""
    try:
        inspect.signature(function).bind(*arguments)
    except ValueError:
        return  # some compiled functions have no signature
    except TypeError as error:
        raise ConfigError(f"{text}: {error}") from error


def check_merge(text: str, name: str, function: Function, literals: Sequence[Any]) -> None:
    """Raise `ConfigError` where ``merge`` or ``finish`` cannot be called with a state and these literals."""
    merge, finish = merge_of(function), finish_of(function)
    if finish is not None and merge is None:
        raise ConfigError(f"{name}: it has finish and no merge", f"set {name.partition(':')[2]}.merge")
    for word, step in (("merge", merge), ("finish", finish)):
        if step is not None and not callable(step):
            raise ConfigError(f"{name}: its {word} is not a function")
        if step is not None:
            check_arguments(f"{text}: {word}", step, [None, *literals])


def parameter(literal: Fraction | str) -> int | float | str:
    """Return a literal as the Python value that a user function gets."""
    if isinstance(literal, str):
        return literal
    return int(literal) if literal.denominator == 1 else float(literal)


def reason_of(error: Exception) -> str:
    """Return what a user's code raised, in one line."""
    return f"{type(error).__name__}: {error}".splitlines()[0] if str(error) else type(error).__name__


def _annotated(hint: Any) -> pa.DataType | None:
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        choices = [choice for choice in typing.get_args(hint) if choice is not type(None)]
        return _annotated(choices[0]) if len(choices) == 1 else None
    if isinstance(hint, type) and issubclass(hint, np.generic):
        return pa.from_numpy_dtype(np.dtype(hint))
    return _TYPES.get(hint)


# Calls of a user function over panes: of its rows at once, or of parts of them whose results are merged.


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


def phases(call: AggregateCall) -> TwoPhase | None:
    """Return the two phases of a user function; None where it declares no ``merge``."""
    if merge_of(load(call.function)) is None:
        return None
    split = states(call)
    return TwoPhase(1, lambda inputs: [split(inputs)], merged(call), in_order=True)


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
