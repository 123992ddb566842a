"""Column types: from a schema text, from a manifest, and in the one plain form that the engine uses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...windowing.errors import InputError
from ...windowing.expressions.nodes import name_text
from ...windowing.support.column_types import common_type, how_to_keep, schema_entry, type_of_text
from .time_formats import UNIX, has_zone

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

    ``format``: a timestamp format, or a key of `readers.values.time_formats.UNIX`; None for no declared format.
    """

    type: pa.DataType
    format: str | None = None

    @property
    def unix_digits(self) -> int | None:
        """The decimal digits behind the point that the type keeps of a unix time; None for other formats."""
        return None if self.format not in UNIX else (9 if self.type.unit == "ns" else 6) - UNIX[self.format]

    @property
    def words(self) -> str:
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
    """Return the type whose ``str`` is ``text`` if texts in results are read back as it; else None."""
    text = re.sub(r" not null(?=>|$)", "", text.replace("large_", ""))
    text = re.sub(r"\blist<[^:<>]+: ", "list<item: ", text)
    kind = type_of_text(text)
    return kind if kind is not None and str(kind) == text and _reads_back(kind) else None


def _reads_back(kind: pa.DataType) -> bool:
    if pa.types.is_list(kind):
        column_only = (pa.types.is_date, pa.types.is_time, pa.types.is_duration, pa.types.is_binary)
        return not any(matches(kind.value_type) for matches in column_only) and _reads_back(kind.value_type)
    return not (pa.types.is_nested(kind) or pa.types.is_float16(kind) or pa.types.is_interval(kind))


def is_text(kind: pa.DataType) -> bool:
    """Whether a type, in its plain form, holds texts or bytes."""
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


# Unify the schemas of many files: the union of their columns, each with the widest type that occurs.
#
# Types that are known from elsewhere, as a state knows those of its nights, count as those of one more file, which
# comes first.


Named = tuple[str, pa.Schema]
"""A schema, and what messages call the place that it is from."""


def unify(
    schemas: Sequence[Named], given: Mapping[str, pa.DataType], known: Sequence[Named] = (), is_text: bool = False
) -> tuple[pa.Schema, dict[str, str]]:
    """Return the union of the columns of all schemas, in order of first appearance; those only known come last.

    Also return, by column, the place that made its type what it is.

    ``schemas``: of files, with their paths. ``given``: types by column, which replace all others. ``known``: schemas
    that come before those of the files where types are joined. ``is_text``: whether the files have values as texts.
    Raises `InputError` naming two places whose types of a column have no common wider type.
    """
    types: dict[str, tuple[pa.DataType, str]] = {}
    seen: set[int] = set()
    for place, schema in (*known, *schemas):
        if id(schema) in seen:  # files with equal columns share one schema object, so thousands cost one look each
            continue
        seen.add(id(schema))
        for column in schema:
            before, own = types.get(column.name), given.get(column.name)
            if own is not None:
                types[column.name] = own, "--schema"
            elif before is None:
                types[column.name] = column.type, place
            elif (wide := common_type(before[0], column.type)) is not None:
                types[column.name] = wide, before[1] if wide == before[0] else place
            else:
                raise _clash(column, place, before, known, is_text)
    order = dict.fromkeys(name for _, schema in (*schemas, *known) for name in schema.names)
    schema = pa.schema([(name, types[name][0]) for name in order])
    return schema, {name: types[name][1] for name in order}


def _clash(
    column: pa.Field, place: str, before: tuple[pa.DataType, str], known: Sequence[Named], is_text: bool
) -> InputError:
    what = f"column {column.name!r} is {before[0]} in {before[1]} and {column.type} in {place}"
    held = [schema.field(column.name).type for _, schema in known if column.name in schema.names]
    fixed = next((kind for kind in held if not pa.types.is_null(kind)), None)
    if fixed is not None:
        return InputError(what, how_to_keep(column.name, fixed))
    word = _settling(before[0], column.type, is_text)
    if word is None:
        return InputError(what, "cast it in one of them, since no type of --schema holds both")
    if word == "string" and all(map(pa.types.is_timestamp, (before[0], column.type))):
        name = "at" if column.name != "at" else "at_utc"
        let = f'--let "{name}=CAST({name_text(column.name)} AS TIMESTAMPTZ)"'
        entry = schema_entry(column.name, word)
        return InputError(what, f"read it with {entry} and {let}, by which times without a zone are UTC")
    return InputError(what, f"read it as one type with {schema_entry(column.name, word)}, or cast it in one of them")


def _settling(a: pa.DataType, b: pa.DataType, is_text: bool) -> str | None:
    """Return a type of ``--schema`` in which the values of both types can be read, without a reject; None: no type."""
    if pa.types.is_nested(a) or pa.types.is_nested(b):
        return None
    if not is_text:
        if all(pa.types.is_timestamp(kind) or pa.types.is_date(kind) for kind in (a, b)):
            return "timestamptz"
        if all(pa.types.is_decimal(kind) or pa.types.is_floating(kind) for kind in (a, b)):
            return "float64"
        if all(pa.types.is_integer(kind) for kind in (a, b)):
            return "decimal(20,0)"
    return "string"
