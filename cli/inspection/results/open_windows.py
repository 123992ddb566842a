"""The windows that a state holds open: one line for each key that has rows in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from ....windowing.expressions.syntax import Expression
from ....windowing.rows.projection import RowExpressions, make_projection
from ....windowing.state.state_tables import POS, WINDOWS
from ....writers.state.stage_files import ParquetStateFiles
from ....writers.state.tables import kept_stage
from .result import kept_rows

WINDOW = "window"


@dataclass(frozen=True, slots=True)
class OpenWindowRows:
    """The open windows of a stage, one line for each key with rows: `ShownRows`.

    Columns: those of the key; ``window``, the number of the open window; ``rows``, how many it holds; ``first`` and
    ``last``, the least and the largest order value of these, where rows are ordered by a column.

    ``order``: the first order column; None for arrival order.
    """

    files: ParquetStateFiles = field(repr=False)
    key: tuple[str, ...]
    order: str | None
    schema: pa.Schema

    def tables(self, columns: Sequence[str] | None = None, where: Expression | None = None) -> Iterator[pa.Table]:
        """Yield the lines, a part of the state at a time."""
        names = self.schema.names if columns is None else list(columns)
        projection = make_projection(self.schema, RowExpressions((), where))
        for keys, rows in zip(self.files.parts("keys"), self.files.parts("rows"), strict=True):
            whole = _lines(self.files.read_part(keys), self.files.read_part(rows), self.key, self.order)
            yield kept_rows(projection, whole.select(list(projection.needs(names))), names)


def open_windows(path: str, unit: str | None, stage: str | None) -> OpenWindowRows:
    """Return the open windows of a state. ``unit``: after which unit; None: the newest. ``stage``: of which stage.

    Raises `ConfigError` where there is no such state, unit or stage, or the state no longer keeps them.
    """
    _, found, files = kept_stage(path, unit, stage, "name a newer unit")
    key, order = tuple(found.identity["key"]), next(iter(found.identity["order"]), None)
    pairs = list(zip(files.parts("keys"), files.parts("rows"), strict=True))
    if not pairs:
        nothing = pa.schema([pa.field(WINDOW, pa.int64()), pa.field("rows", pa.int64())])
        return OpenWindowRows(files, key, order, nothing)
    keys, rows = map(files.read_part, pairs[0])
    return OpenWindowRows(files, key, order, _lines(keys, rows, key, order).schema)


def _lines(keys: pa.Table, rows: pa.Table, key: Sequence[str], order: str | None) -> pa.Table:
    """Return a line for each key with rows. ``keys``, ``rows``: as `windowing.state.state_tables` makes them."""
    of_order = [] if order is None else [(order, "min"), (order, "max")]
    keys, rows = _plain(keys.select([*key, WINDOWS])), _plain(rows.select([*key, POS, *([order] if order else [])]))
    if not key:  # one line, whatever is held
        keys, rows = (table.append_column("__one", pa.repeat(0, table.num_rows)) for table in (keys, rows))
    by = list(key) or ["__one"]
    found = rows.group_by(by, use_threads=False).aggregate([(POS, "count"), *of_order])
    found = found.join(keys, by).sort_by([(name, "ascending") for name in by])
    columns = [*key, WINDOWS, f"{POS}_count", *(f"{order}_{which}" for _, which in of_order)]
    return found.select(columns).rename_columns([*key, WINDOW, "rows", *(["first", "last"] if order else [])])


def _plain(table: pa.Table) -> pa.Table:
    types = [each.type.value_type if pa.types.is_dictionary(each.type) else each.type for each in table.schema]
    return table.cast(pa.schema(list(zip(table.column_names, types, strict=True))))
