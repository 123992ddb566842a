"""Parse JSON values one by one, for the few lines that Arrow's parser refuses; numbers keep their text."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from ..schema.kinds import BOOL, FLOAT, INT, NOTHING, TEXT, Kind, kind_of, kind_of_texts
from ..text.json_lines import parse_lines

_INT64 = range(-(2**63), 2**63)


class Number(str):
    """The text of a number, as it is in the file."""

    __slots__ = ()


def parse_object(text: str) -> dict[str, Any]:
    """Return the object on a line, its numbers as `Number`. Raises `ValueError` where it is no JSON."""
    row: dict[str, Any] = json.loads(text, parse_int=Number, parse_float=Number, parse_constant=Number, strict=False)
    return row


def kinds_of_object(row: dict[str, Any]) -> dict[str, Kind]:
    """Return the kind of each value of an object."""
    return {name: _kind_of_value(value) for name, value in row.items()}


def _kind_of_value(value: Any) -> Kind:
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, Number):
        return INT if value.lstrip("-").isdigit() and int(value) in _INT64 else FLOAT
    if isinstance(value, str):
        return kind_of_texts(pa.chunked_array([pa.array([value])]))
    try:
        kind = kind_of(parse_lines(_dumps({"x": value}).encode(), {}, others=True)["x"].type)
    except pa.ArrowInvalid:  # a list or struct of mixed kinds
        return TEXT
    return NOTHING if kind is None else kind  # not ``kind or NOTHING``: an empty struct type is falsy


def _dumps(value: Any) -> str:
    return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Any) -> Any:
    """Return a value with Python numbers in place of each `Number`."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return json.loads(value) if isinstance(value, Number) else value


def texts_of(values: list[Any]) -> pa.ChunkedArray:
    """Return the values as texts: strings and numbers unchanged, other values as JSON."""
    return pa.chunked_array([pa.array([_text(value) for value in values], pa.string())])


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, Number):
        return value
    return value if isinstance(value, str) else _dumps(value)
