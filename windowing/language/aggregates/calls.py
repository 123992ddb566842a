"""The aggregate rule of the language: a function, its columns and constants, and its output column (section 9)."""

from __future__ import annotations

from typing import Final

from .. import spec
from ..calls import Argument, read_arguments
from ..tokens import PLAIN, Cursor
from .names import ALIASES

_FORM: Final = "write it as [NAME=]FUNCTION(COLUMN, ..)"


def read_aggregate(cursor: Cursor) -> spec.AggregateCall:
    """Read ``[NAME=]FUNCTION(ARGUMENTS)``, named by `windowing.language.spec.default_name` where no name is given.

    Raises `SpecError` with the span at fault.
    """
    name = _name(cursor)
    function = _function(cursor)
    values = tuple(_value(cursor, argument) for argument in read_arguments(cursor, _FORM))
    return spec.AggregateCall(name or spec.default_name(function, values), function, values)


def alias_of(text: str) -> str | None:
    """Return the function of a valid aggregate if it is a name of another tool (`ALIASES`), else None."""
    cursor = Cursor(text)
    _name(cursor)
    word = cursor.keyword()
    return word if word in ALIASES and not cursor.at(":", 1) else None


def _name(cursor: Cursor) -> str | None:
    if not cursor.at("=", 1):
        return None
    name = cursor.column(cursor.take(), _FORM)
    cursor.take()
    return name


def _function(cursor: Cursor) -> str:
    token = cursor.take()
    if token.kind != "word":
        raise cursor.error(f"expected a function, found {token}", token.span, _FORM)
    if not cursor.skip(":"):
        return ALIASES.get(token.text.lower(), token.text.lower())
    name = cursor.take()
    if name.kind != "word":
        raise cursor.error(f"expected a function of {token}, found {name}", name.span, "write it as module:name")
    return f"{token.text}:{name.text}"


def _value(cursor: Cursor, argument: Argument) -> spec.Argument:
    if argument.name is not None:
        raise cursor.error(f"there is no argument called {argument.name}", argument.name.span, _FORM)
    if argument.value.kind == "number":
        return cursor.number(argument.value, PLAIN, "write a plain number")
    if argument.value.kind == "text":
        return argument.value.value
    return spec.Column(cursor.column(argument.value, _FORM))
