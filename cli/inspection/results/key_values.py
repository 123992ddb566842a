"""Values of columns that a user names on the command line, ``--only user=u7``, as a condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from ....windowing.errors import ConfigError
from ....windowing.expressions.syntax import Expression, parse_expression
from ....windowing.support.suggest import did_you_mean


def split_only(texts: Sequence[str]) -> dict[str, str]:
    """Return the values of ``NAME=VALUE`` texts by name. Raises `ConfigError` for a text without ``=``."""
    for text in texts:
        if "=" not in text:
            raise ConfigError(f"--only {text}: this names no value", "say it as NAME=VALUE, such as user=u7")
    return {name.strip(): value for name, _, value in (text.partition("=") for text in texts)}


def parse_only(texts: Sequence[str], schema: pa.Schema) -> dict[str, pa.Scalar]:
    """Return the values of ``NAME=VALUE`` texts in the types of their columns.

    Raises `ConfigError` as `split_only` does, for an unknown column, and for a value that is none of its column.
    """
    found = split_only(texts)
    for name in found:
        if name not in schema.names:
            raise ConfigError(f"--only: there is no column {name!r}", did_you_mean(name, schema.names))
    return {name: value_of(text, schema.field(name).type, f"--only {name}") for name, text in found.items()}


def value_of(text: str, kind: pa.DataType, option: str) -> pa.Scalar:
    """Return a text as a value of a type. Raises `ConfigError` naming the option where it is none."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    try:
        return pa.scalar(text).cast(kind) if not pa.types.is_timestamp(kind) else _instant(text, kind)
    except pa.ArrowException as error:
        raise ConfigError(f"{option}: {text!r} is no {kind}", "give a value of that type") from error


def _instant(text: str, kind: pa.TimestampType) -> pa.Scalar:
    """Return an instant; without a zone in the text it is in UTC, where the type has a zone."""
    if kind.tz is None:
        return pa.scalar(text).cast(kind)
    try:
        return pa.scalar(text).cast(kind)
    except pa.ArrowInvalid:
        return pa.scalar(f"{text}Z").cast(kind)


def condition_of(where: str | None, only: Mapping[str, pa.Scalar]) -> Expression | None:
    """Return the condition that a row has the values ``only``, and ``where`` is true for it; None: neither is given.

    Raises `SpecError` for a mistake in ``where``.
    """
    given = None if where is None else parse_expression(where)
    if not only:
        return given
    texts = [f"{_quoted(name)} = {_literal(value)}" for name, value in only.items()]
    return parse_expression(" AND ".join([*texts, *([f"({where})"] if where is not None else [])]))


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _literal(value: pa.Scalar) -> str:
    types, kind = pa.types, value.type
    if types.is_timestamp(kind) and kind.tz is not None:  # its text has no offset of its own but that of UTC, Z
        value = value.cast(pa.timestamp(kind.unit, "UTC"))
    text = str(value.cast(pa.string()))
    if types.is_integer(kind) or types.is_decimal(kind) or types.is_floating(kind):
        return text
    if types.is_boolean(kind):
        return text.upper()
    quoted = "'" + text.replace("'", "''") + "'"
    if types.is_timestamp(kind):
        return f"TIMESTAMP {quoted}"
    return f"DATE {quoted}" if types.is_date(kind) else quoted
