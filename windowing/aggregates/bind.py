"""Binding: an aggregate call is checked against a schema, so every mistake is reported before a row is read."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

from ..errors import ConfigError, install_extra
from ..language.canonical import decimal_text
from ..language.spec import AggregateCall, Column
from ..support.suggest import did_you_mean
from . import user
from .folds.values import plain_type
from .table import NEEDS_SKETCHES, TABLE, Aggregate, Kind


@dataclass(frozen=True, slots=True)
class Bound:
    """A call that fits its columns. It holds names and types and no code, so it pickles.

    ``name``: name of the result column.
    ``type``: type of the result column.
    ``columns``: names of the columns that the call reads, each once.
    ``call``: the call as parsed.
    ``filter``: the boolean column of the rows that a user function looks at; None: all rows of the pane.
    ``is_second_step``: whether the columns hold what the first phase of a partial aggregation left (`two_phase`).
    """

    name: str
    type: pa.DataType
    columns: tuple[str, ...]
    call: AggregateCall
    is_second_step: bool = False
    filter: str | None = None

    @property
    def text(self) -> str:
        """The call as written, without its name."""
        return call_text(self.call)

    @property
    def is_user_function(self) -> bool:
        """Whether it calls ``module:name``."""
        return ":" in self.call.function


def call_text(call: AggregateCall) -> str:
    """Return ``function(arguments)``."""
    return call.text


def columns_of(call: AggregateCall) -> tuple[str, ...]:
    """Return the names of the columns that a call reads, each once, in the order of the arguments."""
    return tuple(dict.fromkeys(a.name for a in call.arguments if isinstance(a, Column)))


def bind(call: AggregateCall, schema: pa.Schema) -> Bound:
    """Check a call against the columns of a schema and find the type of its result (semantics section 9).

    Raises `ConfigError` for an unknown function or column, wrong arguments, or a type that does not fit.
    """
    text = call_text(call)
    types = _column_types(call, schema)
    if ":" in call.function:
        return Bound(call.name, _bind_user(call, text), columns_of(call), call)
    if call.function not in TABLE:
        raise ConfigError(f"{text}: there is no aggregate {call.function}", did_you_mean(call.function, TABLE))
    aggregate = TABLE[call.function]
    _check_count(aggregate, call, text)
    for parameter, argument in zip(aggregate.parameters, call.arguments, strict=False):
        if parameter.kind.literal:
            _check_literal(parameter.name, parameter.kind, argument, text)
        else:
            _check_column(aggregate, parameter.kind, argument, types, text)
    if call.function in NEEDS_SKETCHES and find_spec("datasketches") is None:
        raise ConfigError(f"{text}: the package datasketches is not installed", install_extra("sketch"))
    given = aggregate.types_of([types[a.name] for a in call.arguments if isinstance(a, Column)])
    return Bound(call.name, aggregate.result(*given), columns_of(call), call)


def _column_types(call: AggregateCall, schema: pa.Schema) -> dict[str, pa.DataType]:
    for name in columns_of(call):
        if name not in schema.names:
            raise ConfigError(f"{call_text(call)}: there is no column {name}", did_you_mean(name, schema.names))
    return {name: plain_type(schema.field(name).type) for name in columns_of(call)}


def _bind_user(call: AggregateCall, text: str) -> pa.DataType:
    if not columns_of(call):
        raise ConfigError(f"{text}: it reads no column", "give it at least one")
    function = user.load(call.function)
    user.check_arguments(text, function, call.arguments)
    user.check_merge(text, call.function, function, [a for a in call.arguments if not isinstance(a, Column)])
    return user.value_type(call.function, function)


def _check_count(aggregate: Aggregate, call: AggregateCall, text: str) -> None:
    takes, given = len(aggregate.parameters), len(call.arguments)
    if aggregate.required <= given <= takes:
        return
    words = "1 argument" if takes == 1 else f"{takes} arguments"
    most = "at most " if aggregate.required < takes else ""
    raise ConfigError(f"{text}: {aggregate.name} takes {most}{words} and got {given}", f"write {aggregate.signature}")


def _check_literal(name: str, kind: Kind, argument: Any, text: str) -> None:
    if isinstance(argument, Column):
        raise ConfigError(f"{text}: {name} is the column {argument.name}", f"{name} must be {kind.words}")
    if not kind.fits(argument):
        raise ConfigError(f"{text}: {name} is {_literal_text(argument)}", f"{name} must be {kind.words}")


def _check_column(aggregate: Aggregate, kind: Kind, argument: Any, types: dict[str, pa.DataType], text: str) -> None:
    if not isinstance(argument, Column):
        raise ConfigError(f"{text}: {_literal_text(argument)} is not a column", f"write {aggregate.signature}")
    dtype = kind.type_of(types[argument.name])
    if not kind.fits(dtype):
        what = f"{text}: column {argument.name} is {type_words(dtype)}"
        raise ConfigError(what, f"{aggregate.name} needs {kind.words}")


def type_words(dtype: pa.DataType) -> str:
    """Return the name of a type for messages: ``text``, ``boolean``, otherwise the name that Arrow uses."""
    if pa.types.is_string(dtype) or pa.types.is_large_string(dtype):
        return "text"
    return "boolean" if pa.types.is_boolean(dtype) else str(dtype)


def _literal_text(literal: Fraction | str) -> str:
    return f"'{literal}'" if isinstance(literal, str) else decimal_text(literal)
