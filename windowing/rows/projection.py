"""A projection: the columns that expressions add to those of an input, and the condition that filters its rows.

Semantics section 11. The columns of ``--let`` come first, then the columns that hold what a window or an aggregate
computes of each row; these are hidden: no result shows them unless it is asked for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import Ints, Mask, combined, is_true
from ..errors import ConfigError, naming_option
from ..expressions.binding import BoundExpression, Evaluation, bind, bind_condition
from ..expressions.nodes import walk
from ..expressions.syntax import Expression
from ..language.spec import HIDDEN
from ..ports import Batch, ColumnRange, Condition, Failures, Looks, Source, Split
from .lag_columns import LagColumn, bind_lag_column, early_arguments

FILE = "_file"
ARRIVAL = "_arrival"
VIRTUAL: Mapping[str, pa.DataType] = {FILE: pa.string(), ARRIVAL: pa.int64()}
"""The columns that every input has besides its own: the name of the file of a row, and its arrival position."""
_MEANINGS: Mapping[str, str] = {FILE: "the file that a row came from", ARRIVAL: "the arrival position of a row"}


@dataclass(frozen=True, slots=True)
class RowExpressions:
    """The expressions of a stage over the rows of its input, as they are written.

    ``let``: name and expression of each column, in order; each may use those before it.
    ``where``: the condition of the rows that there are; None: all rows.
    """

    let: tuple[tuple[str, Expression], ...] = ()
    where: Expression | None = None


@dataclass(frozen=True, slots=True)
class ComputedColumn:
    """A column that an expression computes of each row.

    ``label``: what messages and rejects call it.
    """

    name: str
    value: BoundExpression
    label: str


@dataclass(frozen=True, slots=True)
class Projection:
    """The columns and rows that a stage sees of its input.

    ``schema``: all columns: those of the input, those of ``virtual``, and the computed ones.
    ``computed``: the computed columns, each after those that it uses.
    ``where``: the condition of the rows that there are; None: all rows.
    ``virtual``: the names of `VIRTUAL` that the stage uses and its input does not have.
    ``hidden``: the columns that a result does not show where it shows all columns; those of ``lags`` are among them.
    ``lags``: the columns that only a scan can compute, of rows in order, each after those that it uses.
    """

    schema: pa.Schema
    computed: tuple[ComputedColumn, ...] = ()
    where: ComputedColumn | None = None
    virtual: tuple[str, ...] = ()
    hidden: frozenset[str] = frozenset()
    lags: tuple[LagColumn, ...] = ()

    @property
    def is_trivial(self) -> bool:
        return not (self.computed or self.where or self.virtual or self.lags)

    def closure(self, names: Iterable[str]) -> frozenset[str]:
        """Return columns and all columns that they, or the condition, are computed from."""
        wanted = set(names) | set(self.where.value.columns if self.where else ())
        for column in reversed(self.computed):
            if column.name in wanted:
                wanted |= set(column.value.columns)
        return frozenset(wanted)

    def needs(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the columns of the input, and virtual ones, that columns and the condition need, in their order."""
        own = {column.name for column in self.computed}
        wanted = self.closure(names)
        return tuple(name for name in self.schema.names if name in wanted and name not in own)


def make_projection(
    schema: pa.Schema,
    expressions: RowExpressions,
    derived: Mapping[str, Expression] | None = None,
    names: Iterable[str] = (),
) -> Projection:
    """Bind the expressions of a stage to the columns of its input.

    ``derived``: hidden columns, by name. ``names``: the columns that the stage names elsewhere, for `VIRTUAL`.
    Columns with ``lag`` are left to a scan. Raises `ConfigError` or `SpecError` for a name that is a column already,
    unknown columns, types that do not fit, and ``lag`` in the condition, where rows have no order yet.
    """
    derived = derived or {}
    where = expressions.where
    used = {*names, *(where.columns if where else ())}
    used |= {name for _, each in expressions.let for name in each.columns}
    used |= {name for each in derived.values() for name in each.columns}
    virtual = tuple(name for name in VIRTUAL if name in used and name not in schema.names)
    for name in virtual:
        schema = schema.append(pa.field(name, VIRTUAL[name]))
    columns = _Columns(schema)
    lets = [name for name, _ in expressions.let]
    for name, expression in expressions.let:
        _check_name(name, columns.schema)
        with naming_option(f"--let {name}"):
            for node in walk(expression.root):
                if node.kind == "column" and node.value[0] in lets and node.value[0] not in columns.schema.names:
                    what = f"the column {node.value[0]!r} is not there yet"
                    raise expression.error(what, node.span, "a --let may use the columns of those before it")
            columns.add(name, name, expression)
    for name, expression in derived.items():
        _check_name(name, columns.schema)
        columns.add(name, str(expression), expression)
    schema, condition = columns.schema, None
    if where is not None:
        columns.check_no_lag(where, "--where")
        with naming_option("--where"):
            value = bind_condition(where, schema)
        condition = ComputedColumn("--where", value, f"--where {where}")
    late = [column.name for column in columns.lags]
    hidden = frozenset([*virtual, *derived, *columns.arguments.values(), *late])
    return Projection(schema, tuple(columns.computed), condition, virtual, hidden, tuple(columns.lags))


@dataclass(slots=True)
class _Columns:
    """Columns as they are bound, one after the other.

    ``arguments``: the columns of arguments of lags, by the argument.
    """

    schema: pa.Schema
    computed: list[ComputedColumn] = field(default_factory=list)
    lags: list[LagColumn] = field(default_factory=list)
    arguments: dict[Expression, str] = field(default_factory=dict)

    def add(self, name: str, label: str, expression: Expression) -> None:
        late = {column.name for column in self.lags}
        if not expression.uses_lag and not late & set(expression.columns):
            self._compute(name, label, expression)
            return
        for argument in early_arguments(expression, late):
            if argument not in self.arguments:
                self.arguments[argument] = f"{HIDDEN}lag {argument}"
                self._compute(self.arguments[argument], str(argument), argument)
        column = bind_lag_column(name, label, expression, self.schema, self.arguments.items())
        self.lags.append(column)
        self.schema = self.schema.append(pa.field(name, column.value.type))

    def check_no_lag(self, expression: Expression, label: str) -> None:
        if expression.uses_lag:
            raise no_order(label, "lag()")
        for column in self.lags:
            if column.name in expression.columns:
                raise no_order(label, f"{column.name!r}, which uses lag(),")

    def _compute(self, name: str, label: str, expression: Expression) -> None:
        value = bind(expression, self.schema)
        self.computed.append(ComputedColumn(name, value, label))
        self.schema = self.schema.append(pa.field(name, value.type))


def no_order(label: str, what: str) -> ConfigError:
    """Return the error of a place whose rows have no order yet; ``what``: what needs it."""
    do = "use it in conditions and amounts of tumbling windows, and in arguments and filters of aggregates"
    return ConfigError(f"{label}: {what} needs rows in order, and here they have none yet", do)


def project(
    projection: Projection, rows: pa.Table, names: Sequence[str]
) -> tuple[pa.Table, Mask | None, Failures | None]:
    """Compute the columns ``names`` and the condition of rows, which have the columns that `Projection.needs` names.

    A row has failed where the condition has, or a column that the condition needs; and where another of the columns
    has, if the condition is true. Returns the columns, and what `Batch` has as ``kept`` and ``failures``.
    """
    decisive = projection.closure(()) if projection.where else frozenset()
    wanted = projection.closure(names)
    first: list[tuple[str, Evaluation]] = []
    second: list[tuple[str, Evaluation]] = []
    for column in projection.computed:
        if column.name in wanted:
            found = column.value.evaluate(rows)
            rows = rows.append_column(pa.field(column.name, column.value.type), found.values)
            if found.failures is not None:
                (first if column.name in decisive else second).append((column.label, found))
    kept: Mask | None = None
    if projection.where is not None:
        found = projection.where.value.evaluate(rows)
        if found.failures is not None:
            first.append((projection.where.label, found))
        kept = is_true(found.values)
        kept = None if kept.all() else kept
    shown = rows.select(list(names))
    labelled = [_labelled(*each, None) for each in first] + [_labelled(*each, kept) for each in second]
    failed = np.concatenate([np.empty(0, np.int64), *(row for row, _ in labelled)])
    if not len(failed):
        return shown, kept, None
    details = combined(pa.chunked_array([detail for _, detail in labelled], pa.string()))
    row, at = np.unique(failed, return_index=True)  # the first of each row
    kept = np.ones(rows.num_rows, np.bool_) if kept is None else kept
    kept[row] = False
    return shown, kept, Failures(row, details.take(pa.array(at)))


def _labelled(label: str, evaluation: Evaluation, kept: Mask | None) -> tuple[Ints, pa.Array]:
    """Return the rows that have failed, int64 (k,), and why: the name of the expression, and what it says."""
    assert evaluation.failures is not None
    row = np.flatnonzero(evaluation.failures)
    details = pc.binary_join_element_wise(f"{label}: ", evaluation.details, "")
    if kept is not None:
        among = np.flatnonzero(kept[row])
        row, details = row[among], details.take(pa.array(among))
    return row, details


def _check_name(name: str, schema: pa.Schema) -> None:
    if name in _MEANINGS:
        raise ConfigError(f"--let {name}: the name is taken, for {_MEANINGS[name]}", "choose another name")
    if name in schema.names:
        raise ConfigError(f"--let {name}: there is a column {name!r} already", "choose another name")


# Which parts of files a condition lets a reader leave out: those for no row of which it can be true.


@dataclass(frozen=True, slots=True)
class StoredCondition:
    """A `windowing.ports.Condition` over columns that the input stores."""

    value: BoundExpression
    schema: pa.Schema

    @property
    def columns(self) -> Sequence[str]:
        return self.value.columns

    def is_never_true(self, ranges: Mapping[str, ColumnRange]) -> bool:
        from ..expressions.pruning import bounds_of, never_true  # noqa: PLC0415 - few runs have a condition

        bounds = {
            name: bounds_of(found.low, found.high, found.nulls, found.rows, self.schema.field(name).type)
            for name, found in ranges.items()
        }
        return never_true(self.value, bounds)


def stored_condition(projection: Projection) -> StoredCondition | None:
    """Return the condition of a projection where statistics can decide it: over columns of the input alone.

    A column that is computed may fail for a row, which is then to be rejected, so such rows must be read.
    """
    where = projection.where
    computed = {column.name for column in projection.computed} | {*projection.virtual}
    if where is None or computed.intersection(where.value.columns):
        return None
    return StoredCondition(where.value, projection.schema)


# The step that computes columns of an input's rows, and says which of them the condition keeps.


@dataclass(frozen=True, slots=True)
class Project:
    """A `windowing.ports.Step`: the columns and rows of a projection.

    ``used``: the columns that the run uses. They are computed at every reading, so that a row which fails for one of
        them is left out everywhere.
    ``condition``: the condition, where parts of files may be left out for which it is true for no row.
    """

    skips: ClassVar[bool] = False  # a row of a part may fail
    looks: ClassVar[Looks] = "all"

    projection: Projection
    used: tuple[str, ...] = ()
    condition: Condition | None = None

    def schema_after(self, before: pa.Schema) -> pa.Schema:  # noqa: ARG002 - the projection was bound to it
        return self.projection.schema

    def read(self, before: Source, split: Split, columns: Sequence[str], dictionary: Sequence[str]) -> Batch:
        """Read all rows of one split, and say which of them the condition keeps (`Batch.kept`).

        Reads only the columns that these columns and the condition need.
        """
        needed = self.projection.needs([*columns, *self.used])
        own = [name for name in needed if name not in self.projection.virtual]
        batch = self._read(before, split, own, [name for name in dictionary if name in own])
        count = len(batch.pos)
        given: dict[str, pa.ChunkedArray | pa.Array] = dict(
            zip(batch.rows.column_names, batch.rows.columns, strict=True)
        )
        if FILE in needed and FILE in self.projection.virtual:
            given[FILE] = pa.repeat(before.file_name(split), count)
        if ARRIVAL in needed and ARRIVAL in self.projection.virtual:
            given[ARRIVAL] = pa.array(batch.pos)
        rows = pa.table(given or {"": pa.nulls(count)})  # a constant needs to know how many rows there are
        names = [*columns, *(name for name in self.used if name not in columns)]
        found, kept, failures = project(self.projection, rows, names)
        return replace(batch, rows=found.select(list(columns)), kept=kept, failures=failures)

    def _read(self, before: Source, split: Split, columns: Sequence[str], dictionary: Sequence[str]) -> Batch:
        if self.condition is None:
            return before.read(split, columns, dictionary)
        parts = before.parts_with(split, self.condition)
        skipped = split.rows - sum(part.rows for part in parts)
        if not skipped:
            return before.read(split, columns, dictionary)
        if len(parts) == 1:
            return replace(before.read(parts[0], columns, dictionary), skipped=skipped)
        batches = [before.read(part, columns) for part in parts]  # dictionaries of parts would be different ones
        schema = before.schema
        empty = pa.schema([schema.field(name) for name in columns]).empty_table()
        rejects = [batch.rejects for batch in batches if batch.rejects is not None]
        return Batch(
            pa.concat_tables([empty, *(batch.rows for batch in batches)]),
            np.concatenate([np.empty(0, np.int64), *(batch.pos for batch in batches)]),
            pa.concat_tables(rejects) if rejects else None,
            skipped=skipped,
        )


def with_columns(source: Source, expressions: RowExpressions, names: Sequence[str]) -> Source:
    """Return a source that has the columns ``names``, which may be among those of expressions, and their condition."""
    projection = make_projection(source.schema, expressions, names=names)
    return source.with_steps([*source.steps, Project(projection)])
