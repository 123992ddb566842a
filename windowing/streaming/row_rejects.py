"""Rows of a batch that no window can place: an error, left out, or rows of the result that say why (semantics 8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, Literal, get_args

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, combined
from ..errors import ConfigError, DataError
from ..language.joins import SIDE
from ..language.spec import HIDDEN
from ..planning.plan import Plan
from ..planning.result_schema import REJECTED
from ..planning.sides import side_names, with_side_names
from ..ports import Failures
from ..rows.panes import ScanRejects
from ..rows.sequence import Sequences
from ..scan.row_validation import FAILED, Reasons
from ..state.window_state import WindowState

Rejected = Literal["error", "drop", "column"]
FAILED_BEFORE: Final = f"{HIDDEN}failed"
"""A text column of a batch: for rows for which an expression has failed already, why."""
_NUMBER = f"{HIDDEN}row"
"""The column that says which row of its batch a row is, where rejected rows are wanted."""
_DO = "mend them, or say rejected='column' or 'drop'"


def check_rejected(rejected: str) -> None:
    """Raise `ConfigError` for any other word."""
    if rejected not in get_args(Rejected):
        words = ", ".join(repr(word) for word in get_args(Rejected))
        raise ConfigError(f"rejected: {rejected!r} is none of {words}", "say one of these")


def with_rejected(plan: Plan, rows: pa.Schema) -> pa.Schema:
    """Return the schema of a result with `REJECTED`. ``rows``: the columns of the input, which a rejected row has."""
    result, rows = plan.schema, with_side_names(rows, plan.options.join)
    if REJECTED in result.names:
        raise ConfigError(f"the result would have two columns {REJECTED!r}", "give the aggregate or key another name")
    texts = [pa.field("reason", pa.string()), pa.field("detail", pa.string())]
    row = pa.field("row", pa.struct([field.with_nullable(True) for field in rows]))
    return result.append(pa.field(REJECTED, pa.struct([*texts, row])))


def failed_before(table: pa.Table) -> Failures | None:
    """Return the rows that `FAILED_BEFORE` names; None where there are none."""
    if FAILED_BEFORE not in table.column_names:
        return None
    details = combined(table.column(FAILED_BEFORE))
    rows = np.flatnonzero(details.is_valid().to_numpy(zero_copy_only=False))
    return Failures(rows, details.take(pa.array(rows))) if len(rows) else None


def with_failures(table: pa.Table, failures: Failures | None) -> pa.Table:
    """Append `FAILED_BEFORE` to a batch."""
    if failures is None:
        return table.append_column(FAILED_BEFORE, pa.nulls(table.num_rows, pa.string()))
    places = np.full(table.num_rows, -1)
    places[failures.row] = np.arange(len(failures.row))
    return table.append_column(FAILED_BEFORE, failures.detail.take(pa.array(places, mask=places < 0)))


@dataclass(slots=True)
class RowRejects:
    """The rows of one batch that are rejected, as they are found.

    ``rejected``: what to do with them.
    ``schema``: that of the result, where it shows them in `REJECTED`; None: it does not.
    """

    rejected: Rejected
    schema: pa.Schema | None = None
    _rows: list[Ints] = field(default_factory=list, repr=False)
    _reasons: list[pa.Array] = field(default_factory=list, repr=False)
    _details: list[pa.Array] = field(default_factory=list, repr=False)

    def numbered(self, plan: Plan, table: pa.Table) -> tuple[Plan, pa.Table]:
        """Return a plan, and a batch, whose rows say which they are, if that will be asked."""
        if self.schema is None:
            return plan, table
        number = pa.field(_NUMBER, pa.int64())
        projection = replace(plan.projection, schema=plan.projection.schema.append(number))
        plan = replace(plan, carried=(_NUMBER,), projection=projection)
        return plan, table.append_column(number, pa.array(np.arange(table.num_rows)))

    def numbered_state(self, plan: Plan, state: WindowState | None) -> WindowState | None:
        """Return a state whose rows have the column of such a plan, as those of the batch have it."""
        if self.schema is None or state is None or _NUMBER in state.sequences.rows.schema.names:
            return state
        rows = state.sequences.rows.append_column(_NUMBER, pa.array(np.zeros(len(state.sequences), np.int64)))
        return replace(state, sequences=replace(state.sequences, rows=rows.select(list(plan.values))))

    def add_failures(self, failures: Failures | None, pos: Ints) -> None:
        """Add rows of the batch for which an expression fails. ``pos``: int64 (n,), of all rows. Raises `DataError`."""
        if failures is None:
            return
        rows, details = failures.row, failures.detail
        if self.rejected == "error":
            what = f"an expression fails for {len(rows)} rows: row {pos[rows[0]]}: {details[0].as_py()}"
            raise DataError(what, _DO)
        self._add(rows, pa.array([FAILED] * len(rows), pa.string()), details)

    def add_invalid(self, rows: pa.RecordBatch, pos: Ints, reasons: Reasons, bad: Ints) -> None:
        """Add those of some rows that are invalid. ``bad``: int64, which, at least one. Raises `DataError`."""
        if self.rejected == "error":
            what = f"{len(bad)} rows have no place in the window: row {pos[bad[0]]} is {reasons[bad[0]]}"
            raise DataError(what, _DO)
        texts = pa.array(reasons[bad].tolist(), pa.string())
        self._add(self._numbers(rows, bad), texts, pa.nulls(len(bad), pa.string()))

    def add_scanned(self, sequences: Sequences, rejects: ScanRejects) -> None:
        """Add rows that a scan of ``sequences`` rejects. Raises `DataError`."""
        if not len(rejects):
            return
        if self.rejected == "error":
            first = int(np.argmin(rejects.pos))
            detail = rejects.detail[first].as_py()
            what = f"row {rejects.pos[first]} is {rejects.reason[first]}" + (f": {detail}" if detail else "")
            raise DataError(f"{len(rejects)} rows have no place in the window: {what}", _DO)
        self._add(self._numbers(sequences.rows, rejects.row), rejects.reason, rejects.detail)

    @property
    def failures(self) -> Failures | None:
        """The rows for which an expression fails, where nothing else has been added; None: no row."""
        return Failures(self._rows[0], self._details[0]) if self._rows else None

    @property
    def counts(self) -> dict[str, int]:
        return dict(Counter(reason for reasons in self._reasons for reason in reasons.to_pylist()))

    def beside(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Yield tables of windows with the columns of the result."""
        for table in tables:
            if self.schema is None:
                yield table
            else:
                field = self.schema.field(REJECTED)
                yield table.append_column(field, pa.nulls(table.num_rows, field.type))

    def result(self, table: pa.Table, columns: pa.Schema) -> Iterator[pa.Table]:
        """Yield result rows for the rejected ones, in the order of the batch.

        ``table``: the batch. ``columns``: those of its rows that are shown.
        """
        rows = np.concatenate([np.empty(0, np.int64), *self._rows])
        if self.schema is None or not len(rows):
            return
        order = np.argsort(rows, kind="stable")
        kind = self.schema.field(REJECTED).type
        shown = [combined(table.column(name)).take(pa.array(rows[order])) for name in columns.names]
        fields = list(kind.field("row").type)
        names = zip(shown, fields, strict=True)
        shown = [side_names(own) if each.name == SIDE and pa.types.is_string(each.type) else own for own, each in names]
        row = pa.StructArray.from_arrays(shown, fields=fields)
        texts = [pa.concat_arrays(each).take(pa.array(order)) for each in (self._reasons, self._details)]
        why = pa.StructArray.from_arrays([*texts, row], fields=list(kind))
        nulls = [pa.nulls(len(rows), each.type) for each in self.schema if each.name != REJECTED]
        yield pa.Table.from_arrays([*nulls, why], schema=self.schema)

    def _add(self, rows: Ints, reasons: pa.Array, details: pa.Array) -> None:
        self._rows.append(rows)
        self._reasons.append(reasons)
        self._details.append(details)

    def _numbers(self, rows: pa.RecordBatch, picks: Ints) -> Ints:
        if self.schema is None:
            return picks
        found: Ints = rows.column(_NUMBER).take(pa.array(picks)).to_numpy()
        return found
