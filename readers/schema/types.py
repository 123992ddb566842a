"""Column types: from a schema text, from a manifest, and in the one plain form that the engine uses."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .timestamp_formats import UNIX, has_zone

Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_BY_NAME = {
    "int64": pa.int64(),
    "int32": pa.int32(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz": pa.timestamp("us", "UTC"),
}
_FROM_TEXT = {
    str(t): t
    for t in (
        *(pa.null(), pa.bool_(), pa.string(), pa.binary(), pa.float32(), pa.float64(), pa.date32()),
        *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    )
}
_WORDS = (
    (pa.types.is_integer, "an integer"),
    (pa.types.is_floating, "a number"),
    (pa.types.is_boolean, "a boolean"),
    (pa.types.is_date, "a date"),
    (pa.types.is_timestamp, "a timestamp"),
    (pa.types.is_string, "text in UTF-8"),
)


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The type of a column, and the declared format of its values.

    ``type``: the Arrow type.
    ``format``: a timestamp format, or a key of `readers.schema.timestamp_formats.UNIX`; None for no declared format.
    """

    type: pa.DataType
    format: str | None = None

    @property
    def unix_digits(self) -> int | None:
        """The decimal digits behind the point that the type keeps of a unix time; None for other formats."""
        return None if self.format not in UNIX else (9 if self.type.unit == "ns" else 6) - UNIX[self.format]

    @property
    def words(self) -> str:
        """The words for a value of the type in messages, such as ``a timestamp``."""
        if self.unix_digits is not None:
            return f"a number of type {self.format} with at most {self.unix_digits} digits behind the point"
        if pa.types.is_timestamp(self.type) and self.type.tz and self.format is None:
            return "a timestamp with a zone"
        for matches, words in _WORDS:
            if matches(self.type):
                return words
        if pa.types.is_decimal(self.type):
            return f"a decimal({self.type.precision},{self.type.scale})"
        return f"a {self.type}"


def column_type(text: str) -> ColumnType:
    """Return the type of a canonical type text that `readers.options.parse_schema` has returned."""
    word, _, rest = text.partition("(")
    argument = rest[:-1]
    if word == "decimal":
        precision, _, scale = argument.partition(",")
        return ColumnType(pa.decimal128(int(precision), int(scale)))
    kind = _BY_NAME[word]
    if not argument:
        return ColumnType(kind)
    if argument in UNIX:
        return ColumnType(pa.timestamp("ns" if argument == "unix_ns" else kind.unit, "UTC"), argument)
    if pa.types.is_timestamp(kind) and has_zone(argument):
        kind = pa.timestamp(kind.unit, "UTC")
    return ColumnType(kind, argument)


def arrow_type(text: str) -> pa.DataType | None:
    """Return the plain form of the type whose ``str`` is ``text``; None where the text does not determine a type."""
    text = text.removesuffix(" not null").replace("large_", "")
    if text in _FROM_TEXT:
        return _FROM_TEXT[text]
    if match := re.fullmatch(r"timestamp\[(s|ms|us|ns)(?:, tz=(.+))?\]", text):
        return pa.timestamp(match[1], match[2])
    if match := re.fullmatch(r"duration\[(s|ms|us|ns)\]", text):
        return pa.duration(match[1])
    if match := re.fullmatch(r"decimal(128|256)\((\d+), (\d+)\)", text):
        make = pa.decimal128 if match[1] == "128" else pa.decimal256
        return make(int(match[2]), int(match[3]))
    if match := re.fullmatch(r"list<[^:]+: (.+)>", text):
        item = arrow_type(match[1])
        return None if item is None or _is_read_as_column_only(item) else pa.list_(item)
    return None


def _is_read_as_column_only(kind: pa.DataType) -> bool:
    """Whether the JSON reader accepts a type for a column but not inside a list."""
    types = pa.types
    return bool(types.is_date(kind) or types.is_time(kind) or types.is_duration(kind) or types.is_binary(kind))


def is_text(kind: pa.DataType) -> bool:
    """Whether a type, in its plain form, holds texts or bytes."""
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))
