"""The rows that a path leads to: those of a result, of all results of a range, rejects, or open windows of a state."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from ....conf.ranges import instant_of
from ....readers.files.walk import MANIFEST
from ....windowing.errors import ConfigError, DamagedError, did_you_mean, few
from ....windowing.expressions.syntax import Expression, parse_expression
from ....windowing.rows.projection import RowExpressions, make_projection
from ....writers.state.layout import is_state
from ...run.fingerprint import same_job
from .result import ResultFolder, StoredRows, kept_rows, opened, rejects_of, results_at_path

if TYPE_CHECKING:
    from .open_windows import OpenWindowRows

UNIT = "unit"
"""The column that is added to the rows of several units."""


ShownRows: TypeAlias = "StoredRows | RowsOfUnits | OpenWindowRows"
"""Rows that can be shown: each has a schema, and tables that are read as `StoredRows.tables` says."""


@dataclass(frozen=True, slots=True)
class RowsOfUnits:
    """The rows of several units, one unit after the other, with the label of the unit in front.

    ``units``: label and rows of each, in order; at least one.
    """

    units: tuple[tuple[str, ShownRows], ...]

    @property
    def schema(self) -> pa.Schema:
        """The columns: the unit, then those of any unit, in the type of the first unit that has them."""
        fields = [pa.field(UNIT, pa.string()), *(field for _, rows in self.units for field in rows.schema)]
        first = {field.name: field for field in reversed(fields)}
        return pa.schema([first[name] for name in dict.fromkeys(field.name for field in fields)])

    def tables(self, columns: Sequence[str] | None = None, where: Expression | None = None) -> Iterator[pa.Table]:
        """Yield the rows in their order. Raises as `StoredRows.tables` does."""
        schema = self.schema
        names = schema.names if columns is None else list(columns)
        projection = make_projection(schema, RowExpressions((), where))
        needed = projection.needs(names)
        for label, rows in self.units:
            own = [name for name in needed if name in rows.schema.names and name != UNIT]
            for table in rows.tables(own or rows.schema.names[:1]):  # a table of no column has no rows
                there: dict[str, Any] = dict(zip(table.column_names, table.columns, strict=True))
                there[UNIT] = pa.repeat(pa.scalar(label), table.num_rows)
                columns_of = {  # those that the unit lacks are null
                    name: there[name] if name in there else pa.nulls(table.num_rows, schema.field(name).type)
                    for name in needed
                }
                whole = pa.table(columns_of).cast(pa.schema([schema.field(name) for name in needed]))
                yield kept_rows(projection, whole, names)


def rows_at(path: str, *, unit: str | None = None, stage: str | None = None, rejects: bool = False) -> ShownRows:
    """Return the rows that ``path`` leads to.

    ``unit``: of which unit of a range or state; None: of all units of a range, and of the newest of a state.
    ``stage``: of which stage of a state. ``rejects``: the rejected rows of a result. Raises `InputError` where there is
    nothing of wincli, `ConfigError` where there is no such unit or stage, or it has no rejects.
    """
    if is_state(path):
        from .open_windows import open_windows  # noqa: PLC0415 - what reads states loads numba

        if rejects:
            raise ConfigError(f"{path} is a state, and rejected rows are in outputs", "name the folder of an output")
        return open_windows(path, unit, stage)
    if stage is not None:
        raise ConfigError(f"--stage: {path} is no state", "leave it out")
    found = results_at(path, unit)
    several = [(each.label, (rejects_of(each) if rejects else each.rows)) for each in found]
    there = tuple((label, rows) for label, rows in several if rows is not None)
    if not there:
        raise ConfigError(f"{path} has no rejected rows", "wincli status says how many rows are where")
    return there[0][1] if found[0].is_single or unit is not None else RowsOfUnits(there)


def results_at(path: str, unit: str | None) -> list[ResultFolder]:
    """Return the result at a path, or those of a range, opened; ``unit``: only that of this unit.

    Raises `InputError` where there is none, `ConfigError` where no unit has this label.
    """
    found = results_at_path(path)
    if found[0].is_single:
        if unit is not None:
            raise ConfigError(f"--unit: {path} is a single result", "leave it out")
        return [opened(found[0])]
    _check_related(path, found)
    labels = [each.label for each in found]
    if unit is not None and unit not in labels:
        raise ConfigError(f"{path} has no unit {unit!r}", did_you_mean(unit, labels))
    return [opened(each) for each in found if unit in (None, each.label)]


def _check_related(path: str, results: Sequence[ResultFolder]) -> None:
    """Raise `ConfigError` where results are not those of one range: neither of dated units, nor of one job."""
    labels = [each.label for each in results]
    if len(set(labels)) == len(labels):
        if all(instant_of(label) for label in labels):
            return
        jobs: list[Mapping[str, Any] | None] = []
        for each in results:
            jobs.append(None)
            with suppress(DamagedError, KeyError):  # a manifest that is damaged is told of when it is opened
                jobs[-1] = each.manifest["job"]
        if all(job is None or same_job(jobs[0] or {}, job) for job in jobs):
            return
    names = [each.file.below.removesuffix(MANIFEST).rstrip("/") for each in results]
    what = f"{path} holds {len(names)} results that do not belong together: {few(names)}"
    raise ConfigError(what, "name one of them, or the folder of one range")


# Values of columns that a user names on the command line, ``--only user=u7``, as a condition.


def split_only(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Return the columns and values of ``NAME=VALUE`` texts. Raises `ConfigError` for a text without ``=``."""
    for text in texts:
        if "=" not in text:
            raise ConfigError(f"--only {text}: this names no value", "say it as NAME=VALUE, such as user=u7")
    return [(name.strip(), value) for name, _, value in (text.partition("=") for text in texts)]


def parse_only(texts: Sequence[str], schema: pa.Schema) -> dict[str, pa.Scalar]:
    """Return the values of ``NAME=VALUE`` texts in the types of their columns.

    Raises `ConfigError` as `split_only` does, for an unknown column, and for a value that is none of its column.
    """
    found = dict(split_only(texts))
    for name in found:
        if name not in schema.names:
            raise ConfigError(f"--only: there is no column {name!r}", did_you_mean(name, schema.names))
    return {name: value_of(text, schema.field(name).type, f"--only {name}") for name, text in found.items()}


def value_of(text: str, kind: pa.DataType, option: str) -> pa.Scalar:
    """Return a text as a value of a type. Raises `ConfigError` naming the option where it is none."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    try:
        try:
            return pa.scalar(text).cast(kind)
        except pa.ArrowInvalid:
            if not pa.types.is_timestamp(kind) or kind.tz is None:
                raise
            return pa.scalar(f"{text}Z").cast(kind)  # an instant without a zone in its text is in UTC
    except pa.ArrowException as error:
        raise ConfigError(f"{option}: {text!r} is no {kind}", "give a value of that type") from error


def condition_of(where: str | None, only: Mapping[str, pa.Scalar]) -> Expression | None:
    """Return the condition that a row has the values ``only``, and ``where`` is true for it; None: neither is given.

    Raises `SpecError` for a mistake in ``where``.
    """
    given = None if where is None else parse_expression(where)
    if not only:
        return given
    names = [name.replace('"', '""') for name in only]
    texts = [f'"{name}" = {_literal(value)}' for name, value in zip(names, only.values(), strict=True)]
    return parse_expression(" AND ".join([*texts, *([f"({where})"] if where is not None else [])]))


def _literal(value: pa.Scalar) -> str:
    types, kind = pa.types, value.type
    if types.is_timestamp(kind) and kind.tz is not None:  # its text has no offset of its own but that of UTC, Z
        value = value.cast(pa.timestamp(kind.unit, "UTC"))
    text = str(value.cast(pa.string()))
    if types.is_floating(kind) and not math.isfinite(value.as_py()):
        return f"CAST('{text}' AS DOUBLE)"
    if types.is_integer(kind) or types.is_decimal(kind) or types.is_floating(kind):
        return text
    if types.is_boolean(kind):
        return text.upper()
    quoted = "'" + text.replace("'", "''") + "'"
    if types.is_timestamp(kind):
        return f"TIMESTAMP {quoted}"
    return f"DATE {quoted}" if types.is_date(kind) else quoted
