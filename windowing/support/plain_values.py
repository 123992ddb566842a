"""Plain values as text and back: what an operator saves between runs.

The text is JSON: None, booleans, numbers, texts and lists stand as they are; any other value is an object with one
name, its type. Equal values in equal order give equal texts, so states of equal runs are equal bytes. No code is stored
and none is run when a text is read, as a pickle would.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

PLAIN = "None, bool, int, float, str, bytes, dates, times, Decimal, and lists, tuples and dicts of these"


class NotPlainError(ValueError):
    """A value that has no text.

    ``place``: where it stands in the value that was to be written, such as ``[0]['x']``; empty for that value itself.
    ``kind``: its type, or what is wrong with it.
    """

    def __init__(self, place: str, kind: str) -> None:
        super().__init__(place, kind)
        self.place = place
        self.kind = kind


def to_text(value: Any) -> str:
    """Return a plain value as text. Raises `NotPlainError` for other values, also inside of lists, tuples and dicts."""
    try:
        return json.dumps(_encoded(value, ""), separators=(",", ":"), allow_nan=False)
    except RecursionError:
        raise NotPlainError("", "a value that holds itself, or nests too deeply") from None


def from_text(text: str) -> Any:
    """Return the value of a text. Raises `ValueError` where it is none that `to_text` has written."""
    try:
        return _decoded(json.loads(text))
    except (KeyError, TypeError, IndexError, ArithmeticError, RecursionError, AttributeError) as error:
        raise ValueError(f"it is no saved value ({type(error).__name__})") from error


def _encoded(value: Any, place: str) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if kind is list:
        return [_encoded(item, f"{place}[{i}]") for i, item in enumerate(value)]
    if kind is tuple:
        return {"tuple": [_encoded(item, f"{place}[{i}]") for i, item in enumerate(value)]}
    if kind in (dict, MappingProxyType):
        pairs = [[_encoded(name, place), _encoded(item, f"{place}[{name!r:.40}]")] for name, item in value.items()]
        return {"dict" if kind is dict else "row": pairs}
    if kind in _WRITE:
        return {kind.__name__: _WRITE[kind](value, place)}
    raise NotPlainError(place, kind.__name__)


def _with_zone(value: dt.datetime | dt.time, place: str) -> list[Any]:
    return [value.replace(tzinfo=None, fold=0).isoformat(), _zone(value, place), value.fold]


def _zone(value: dt.datetime | dt.time, place: str) -> Any:
    """Return a time zone as the name of a place, or as seconds; None where there is none."""
    zone = value.tzinfo
    if zone is None:
        return None
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)
    if name is not None:
        return str(name)
    if type(zone) is dt.timezone:
        return zone.utcoffset(None).total_seconds()
    raise NotPlainError(place, f"{type(value).__name__} in a zone that is a {type(zone).__name__}")


def _zone_of(saved: Any) -> dt.tzinfo | None:
    if saved is None:
        return None
    return ZoneInfo(saved) if isinstance(saved, str) else dt.timezone(dt.timedelta(seconds=saved))


_WRITE: Mapping[type, Callable[[Any, str], Any]] = {
    bytes: lambda value, _: value.hex(),
    dt.datetime: _with_zone,
    dt.date: lambda value, _: value.isoformat(),
    dt.time: _with_zone,
    dt.timedelta: lambda value, _: [value.days, value.seconds, value.microseconds],
    Decimal: lambda value, _: str(value),
}
_READ: Mapping[str, Callable[[Any], Any]] = {
    "float": float,
    "tuple": lambda saved: tuple(map(_decoded, saved)),
    "dict": lambda saved: {_decoded(name): _decoded(item) for name, item in saved},
    "row": lambda saved: MappingProxyType({_decoded(name): _decoded(item) for name, item in saved}),
    "bytes": bytes.fromhex,
    "datetime": lambda saved: dt.datetime.fromisoformat(saved[0]).replace(tzinfo=_zone_of(saved[1]), fold=saved[2]),
    "date": dt.date.fromisoformat,
    "time": lambda saved: dt.time.fromisoformat(saved[0]).replace(tzinfo=_zone_of(saved[1]), fold=saved[2]),
    "timedelta": lambda saved: dt.timedelta(*saved),
    "Decimal": Decimal,
}


def _decoded(saved: Any) -> Any:
    if isinstance(saved, list):
        return [_decoded(item) for item in saved]
    if not isinstance(saved, dict):
        return saved
    ((kind, value),) = saved.items()
    return _READ[kind](value)


# Bytes that should be UTF-8 text and may not be.


def readable(data: bytes) -> str:
    r"""Return bytes as text, without loss even if they are not UTF-8.

    If so, each invalid byte is written as ``\xNN``, and each backslash as two, so that the bytes can be recovered.

    >>> readable("é\\".encode()), readable(b"caf\xe9\\")
    ('é\\', 'caf\\xe9\\\\')
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.replace(b"\\", b"\\\\").decode(errors="backslashreplace")
