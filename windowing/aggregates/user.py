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
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import ConfigError
from ..support.user_modules import import_own

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
