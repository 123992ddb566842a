"""Unify the schemas of many files: the union of their columns, each with the widest type that occurs.

Types that are known from elsewhere, as a state knows those of its nights, count as those of one more file, which comes
first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ...windowing.errors import InputError
from ...windowing.expressions.printing import name_text
from ...windowing.support.column_types import common_type, how_to_keep, schema_entry

Named = tuple[str, pa.Schema]
"""A schema, and what messages call the place that it is from."""


@dataclass(frozen=True, slots=True)
class Unified:
    """The columns of several places.

    ``schema``: the columns, each with one type.
    ``places``: column to the place that made its type what it is.
    """

    schema: pa.Schema
    places: Mapping[str, str]


def unify(
    schemas: Sequence[Named], given: Mapping[str, pa.DataType], known: Sequence[Named] = (), is_text: bool = False
) -> Unified:
    """Return the union of the columns of all schemas, in order of first appearance; those only known come last.

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
            joined = (own, "--schema") if own is not None else _join(column, place, before)
            if joined is None:
                assert before is not None
                raise _clash(column, place, before, known, is_text)
            types[column.name] = joined
    order = dict.fromkeys(name for _, schema in (*schemas, *known) for name in schema.names)
    schema = pa.schema([(name, types[name][0]) for name in order])
    return Unified(schema, {name: types[name][1] for name in order})


def _join(column: pa.Field, place: str, before: tuple[pa.DataType, str] | None) -> tuple[pa.DataType, str] | None:
    if before is None:
        return column.type, place
    wide = common_type(before[0], column.type)
    return None if wide is None else (wide, before[1] if wide == before[0] else place)


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
