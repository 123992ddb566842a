"""How a result is divided into folders: the partition columns, checked against the columns of the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...windowing.errors import ConfigError, DataError
from ...windowing.support.suggest import did_you_mean
from ..formats.types import is_bytes, plain
from .partition_folders import LONGEST, can_name, escape, folders_of

if TYPE_CHECKING:
    from ...windowing.expressions.binding import BoundExpression
    from ...windowing.expressions.syntax import Expression

_FLAG = "--partition-by"


@dataclass(frozen=True, slots=True)
class Partitioning:
    """The partition columns of a result; `bind_partitions` makes it.

    ``columns``: the partition columns, the outermost first, with their types.
    ``expressions``: what gives the value of each of them; None where it is a column of the result.
    ``files``: the columns of the files: those of the result without the partition columns.
    ``result``: the columns that a reader of the folders finds.
    ``most_open``: how many files a task may hold open.
    ``entries``: name and expression of each, as `bind_partitions` has them.
    """

    columns: pa.Schema
    expressions: tuple[BoundExpression | None, ...]
    files: pa.Schema
    result: pa.Schema
    most_open: int
    entries: tuple[tuple[str, Expression | None], ...] = ()

    def over(self, schema: pa.Schema) -> Partitioning:
        """Return the same partition columns over a result with other types. Raises as `bind_partitions` does."""
        found = bind_partitions(self.entries, schema, self.most_open)
        assert found is not None
        return found

    def folders(self, values: Sequence[pa.ChunkedArray]) -> tuple[npt.NDArray[np.int64], list[str]]:
        """Return the folder of each row: int64 (n,) indices into a list of folders.

        ``values``: those of the partition columns. Raises `DataError` for a value that cannot name a folder.
        """
        return folders_of(self.columns.names, values)

    def values(self, rows: pa.Table) -> list[pa.ChunkedArray]:
        """Return the values of the partition columns. Raises `DataError` for a row for which an expression fails."""
        return list(self._values(rows))

    def read_back(self, rows: pa.Table, values: Sequence[pa.ChunkedArray]) -> pa.Table:
        """Return rows with the partition columns as a reader of the folders finds them: the empty text is null."""
        for name, column in zip(self.columns.names, values, strict=True):
            found = _without_empty(column)
            at = rows.schema.get_field_index(name)
            rows = rows.append_column(name, found) if at < 0 else rows.set_column(at, name, found)
        return rows

    def _values(self, rows: pa.Table) -> Iterator[pa.ChunkedArray]:
        for name, expression in zip(self.columns.names, self.expressions, strict=True):
            yield rows[name] if expression is None else _evaluate(name, expression, rows)


def bind_partitions(
    columns: Sequence[tuple[str, Expression | None]], schema: pa.Schema, most_open: int
) -> Partitioning | None:
    """Return how a result of ``schema`` is divided; None without columns.

    ``columns``: name and expression of each, the outermost first; None for the column of that name.
    Raises `ConfigError` for a column that the result lacks, that is named twice, whose values cannot name folders, or
    whose name hides a folder from readers; and where no column would be left. Raises `SpecError` for an expression that
    does not fit the result.
    """
    if not columns:
        return None
    names = [name for name, _ in columns]
    fields, bound = [], []
    for at, (name, expression) in enumerate(columns):
        if name in names[:at]:
            raise ConfigError(f"{_FLAG} names {name!r} twice", "name it once")
        bound.append(_bind(name, expression, schema))
        fields.append(schema.field(name) if bound[-1] is None else pa.field(name, bound[-1].type))
        _check(fields[-1])
    files = pa.schema([field for field in schema if field.name not in names])
    if not files.names:
        raise ConfigError(f"{_FLAG} leaves no column in the files", "leave one of them out")
    added = [field for field in fields if field.name not in schema.names]
    return Partitioning(pa.schema(fields), tuple(bound), files, pa.schema([*schema, *added]), most_open, (*columns,))


def _bind(name: str, expression: Expression | None, schema: pa.Schema) -> BoundExpression | None:
    if expression is None:
        if name not in schema.names:
            what = f"{_FLAG} names {name!r}, which the result does not have"
            raise ConfigError(what, did_you_mean(name, schema.names))
        return None
    if name in schema.names:
        raise ConfigError(f"{_FLAG} {name}={expression}: the result has a column {name!r}", "give it another name")
    from ...windowing.expressions.binding import bind  # noqa: PLC0415 - few runs have an expression
    from ...windowing.expressions.lags import check_no_lag  # noqa: PLC0415

    check_no_lag(expression, f"{_FLAG} {name}={expression}")
    return bind(expression, plain(schema))


def _evaluate(name: str, expression: BoundExpression, rows: pa.Table) -> pa.ChunkedArray:
    needed = rows.select(expression.columns) if expression.columns else rows
    found = expression.evaluate(needed.cast(plain(needed.schema)))
    if found.failures is not None and found.failures.any():
        what = f"{_FLAG} {name}={expression.text} fails for a row of the result: {found.details[0]}"
        raise DataError(what, "use TRY_CAST for null instead, or another expression")
    return pa.chunked_array([found.values])


def _without_empty(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column with null for each empty text, which has the same folder."""
    values = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    if not is_bytes(values.type):
        return column
    is_empty = pc.equal(pc.binary_length(values), 0)
    return pc.if_else(is_empty, None, values) if pc.any(is_empty).as_py() else column


def _check(field: pa.Field) -> None:
    name = field.name
    if name.startswith(("_", ".")):
        raise ConfigError(
            f"{_FLAG} names {name!r}, and readers pass over folders whose name begins with {name[0]}",
            f"give it another name, as in NAME={name}" if name.startswith("_") else "name another column",
        )
    if not can_name(field.type):
        what = f"{_FLAG} names {name!r}, and values of type {field.type} cannot name a folder"
        raise ConfigError(what, "name a column of texts, numbers, dates or times")
    if len(escape(name).encode()) > LONGEST // 2:
        raise ConfigError(f"{_FLAG} names {name[:40]!r}.., which is too long for a folder", "give it a shorter name")
