"""User functions as aggregates: ``module:name(x, ..)`` is called once per pane (semantics section 9).

    def spread(latency) -> float:  # in stats.py
        return float(latency.max() - latency.min())

    --agg "stats:spread(latency)"

The function gets a column of integers, floats or booleans as a read-only numpy array, and any other column as an Arrow
array. Rows with a null in one of these columns are left out. A pane without rows is null, and the function is not
called. Literals arrive as int, float or str.
"""

from __future__ import annotations

import datetime as dt
import decimal
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints
from ..errors import ConfigError
from ..support.user_modules import import_own
from .folds.inputs import Dense, Inputs, PaneFailed, as_ranges, dense

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
        raise ConfigError(f"{name}: cannot import module {module_name}: {_reason(error)}") from error
    function = getattr(module, function_name, None)
    if not callable(function):
        raise ConfigError(f"{name}: module {module_name} has no function {function_name}")
    return typing.cast(Function, function)


def result_type(name: str, function: Function) -> pa.DataType:
    """Return the type of a function's results: its ``pyarrow_type``, else its return annotation, else float64."""
    own = getattr(function, "pyarrow_type", None)
    if isinstance(own, pa.DataType):
        return own
    try:
        hint = typing.get_type_hints(function).get("return", float)
    except Exception as error:  # annotations are expressions and can raise anything
        raise ConfigError(f"{name}: its annotations do not read: {_reason(error)}") from error
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


def parameter(literal: Fraction | str) -> int | float | str:
    """Return a literal as the Python value that a user function gets."""
    if isinstance(literal, str):
        return literal
    return int(literal) if literal.denominator == 1 else float(literal)


def calls(function: Function, is_column: Sequence[bool]) -> Callable[[Inputs], pa.Array]:
    """Return the aggregate that calls a user function; ``is_column``: which arguments are columns, not literals."""

    def compute(inputs: Inputs) -> pa.Array:
        present = as_ranges(dense(inputs))
        filled = np.flatnonzero(~present.empty)
        results = [None] * len(present.sizes)
        pane = -1
        try:
            for pane, arguments in zip(filled.tolist(), _arguments(inputs, present, filled, is_column), strict=True):
                results[pane] = function(*arguments)
        except Exception as error:  # a user's function can raise anything
            raise PaneFailed(pane, inputs.call, _reason(error)) from error
        return _converted(results, inputs)

    return compute


def _annotated(hint: Any) -> pa.DataType | None:
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        choices = [choice for choice in typing.get_args(hint) if choice is not type(None)]
        return _annotated(choices[0]) if len(choices) == 1 else None
    if isinstance(hint, type) and issubclass(hint, np.generic):
        return pa.from_numpy_dtype(np.dtype(hint))
    return _TYPES.get(hint)


def _exposed(column: pa.Array) -> Any:
    """A column as a user function gets it. Numpy and Arrow arrays both slice by ``[lo:hi]`` without a copy."""
    dtype = column.type
    if not (pa.types.is_integer(dtype) or pa.types.is_floating(dtype) or pa.types.is_boolean(dtype)):
        return column
    values = column.to_numpy(zero_copy_only=False)
    values.flags.writeable = False
    return values


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


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0] if str(error) else type(error).__name__
