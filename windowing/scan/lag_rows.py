"""Columns with ``lag`` of rows in order, also of the rows that earlier runs have seen (semantics section 11).

They are computed of the new rows before a window sees any; a row for which one fails is rejected. Rows that a state
retains keep the values that they had, and for each key the state keeps the last rows, as far as new rows look back.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import Ints, Mask, combined
from ..expressions.binding import Evaluation
from ..planning.plan import Plan
from ..rows.lag_columns import LagColumn, depth_of, inputs_of
from ..rows.merge import append
from ..rows.panes import NO_REJECTS, ScanRejects
from ..rows.sequence import Sequences, take_rows
from ..state.window_state import WindowState, only_rows, with_keys, with_newest
from .operator_scan import ScanResult
from .row_validation import FAILED, split_by_reason, validate_rows

# Rows that are rejected because of a column with ``lag``: it fails for them, or the window cannot take its value.


@dataclass(slots=True)
class Failures:
    """The new rows for which expressions fail, as they are computed one after the other.

    ``is_new``: bool (n,), which of the rows are new: for the others an earlier run has seen it.
    ``rows``: int64, the places of such rows among the new ones, for each expression that fails.
    ``details``: string, why, for each of them.
    """

    is_new: Mask
    rows: list[Ints] = field(default_factory=list)
    details: list[pa.Array] = field(default_factory=list)

    def add(self, label: str, found: Evaluation) -> pa.Array:
        """Note where an expression, called ``label``, fails; return its values."""
        if found.failures is not None:
            rows = np.flatnonzero(found.failures)
            among = np.flatnonzero(self.is_new[rows])
            self.rows.append((np.cumsum(self.is_new) - 1)[rows[among]])
            details = pc.binary_join_element_wise(f"{label}: ", found.details, "")
            self.details.append(details.take(pa.array(among)))
        return combined(found.values)


def rejected_rows(plan: Plan, new: Sequences, failures: Failures) -> ScanRejects:
    """Return the new rows that are rejected; a failure comes before any other reason: a value that lacks is no null."""
    reasons = validate_rows(plan, new.rows, of_lag_columns=True)
    # the rows that fail, ascending, and for each why the first expression fails
    failed, first = np.unique(np.concatenate([np.empty(0, np.int64), *failures.rows]), return_index=True)
    details = combined(pa.chunked_array(failures.details, pa.string())).take(pa.array(first))
    if reasons is None and not len(failed):
        return NO_REJECTS
    reasons = np.full(len(new), None, np.object_) if reasons is None else reasons
    reasons[failed] = FAILED
    _, rows = split_by_reason(reasons)
    why = pa.nulls(len(rows), pa.string())
    if len(failed):
        at = np.minimum(np.searchsorted(failed, rows), len(failed) - 1)
        why = details.take(pa.array(at, mask=~np.isin(rows, failed)))
    return ScanRejects(new.pos[rows], pa.array(reasons[rows].tolist(), pa.string()), why, rows)


def without(sequences: Sequences, rejects: ScanRejects) -> Sequences:
    """Return sequences without rows that are rejected, and without keys that have no others. Rows have no ranks yet."""
    if not len(rejects):
        return sequences
    is_kept = np.ones(len(sequences), np.bool_)
    is_kept[rejects.row] = False
    kept = replace(only_rows(sequences, np.flatnonzero(is_kept)), rank=None)
    if kept.keys is None:
        return kept
    filled = np.flatnonzero(np.diff(kept.bounds))
    return replace(kept, keys=kept.keys.take(pa.array(filled)), bounds=np.append(kept.bounds[filled], len(kept)))


NO_INPUT = ""
"""A column that says how many rows there are, where an expression reads none."""


@dataclass(frozen=True, slots=True)
class OrderedRows:
    """New rows as windows see them.

    ``sequences``: the rows, with `Plan.values`.
    ``rejects``: the rows for which an expression fails, or has a value that the window cannot take.
    ``newest``: the last rows of each key, as far as columns look back, those that are rejected among them, as in
        `windowing.state.window_state.KeyState`; None where no column looks back.
    ``of_keys``: the sequences of these keys.
    """

    sequences: Sequences
    rejects: ScanRejects = NO_REJECTS
    newest: pa.Array | None = None
    of_keys: Sequences | None = None


def with_lag_columns(plan: Plan, new: Sequences, state: WindowState | None = None) -> OrderedRows:
    """Return new rows, which have `Plan.read_values`, as windows see them.

    ``state``: what earlier runs have kept. A row that is rejected stays the row before of those after it.
    """
    late = plan.lag_columns
    if not late:
        return OrderedRows(new)
    schema = plan.projection.schema
    inputs = {name: combined(new.rows.column(name)).cast(schema.field(name).type) for name in inputs_of(late)}
    given = pa.RecordBatch.from_pydict(inputs or {NO_INPUT: np.zeros(len(new), np.bool_)})
    both, is_new = _with_earlier(replace(new, rows=given), state)
    rows, failures = both.rows, Failures(is_new)
    for column in late:
        rows = rows.append_column(column.name, _values(column, rows, both.bounds, failures))
    picks = pa.array(np.flatnonzero(is_new))
    own = set(new.rows.schema.names) - {column.name for column in late}
    values = [new.rows.column(name) if name in own else rows.column(name).take(picks) for name in plan.values]
    found = replace(new, rows=pa.RecordBatch.from_arrays(values, names=list(plan.values)))
    rejects = rejected_rows(plan, found, failures)
    return OrderedRows(without(found, rejects), rejects, _newest(both, depth_of(late)), both)


def keep_lookback(
    plan: Plan, scanned: ScanResult, idle: WindowState | None, new: OrderedRows
) -> tuple[ScanResult, WindowState | None]:
    """Return the result of a scan, and the state of keys without rows, with the last rows of each key.

    Nothing is kept where windows do not go on. A key whose rows are all rejected has a state like any other.
    """
    rows, newest = new.of_keys, new.newest
    if rows is None or newest is None or scanned.state is None or plan.options.at_end != "hold":
        return scanned, idle
    state = with_keys(scanned.state, rows, idle, plan.kind.needs.baseline)
    idle = None if idle is None else with_newest(idle, rows, newest)
    return replace(scanned, state=with_newest(state, rows, newest)), idle


def _with_earlier(new: Sequences, state: WindowState | None) -> tuple[Sequences, Mask]:
    """Put the last rows of earlier runs before new rows; also return which rows are new, bool (n,)."""
    newest = None if state is None else state.key_state.newest
    if state is None or newest is None:
        return new, np.ones(len(new), np.bool_)
    counts = pc.list_value_length(newest).fill_null(0).to_numpy(zero_copy_only=False)
    bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    rows = pa.RecordBatch.from_struct_array(newest.flatten()).select(new.rows.schema.names)
    first = Sequences(
        state.sequences.keys, bounds, rows.cast(new.rows.schema), np.zeros(len(rows), np.int64), new.order
    )
    both, origin = append(first, replace(new, order=()))
    return both, (np.arange(len(both)) if origin is None else origin) >= len(first)


def _values(column: LagColumn, rows: pa.RecordBatch, bounds: Ints, failures: Failures) -> pa.Array:
    for shift in column.shifts:
        if isinstance(shift.argument, str):
            values = combined(rows.column(shift.argument))
        else:
            values = failures.add(column.label, shift.argument.evaluate(rows))
        before = np.arange(bounds[-1]) - shift.n  # of its key; null where there is no such row
        picks = pa.array(before, mask=before < np.repeat(bounds[:-1], np.diff(bounds)))
        rows = rows.append_column(shift.name, values.take(picks))
    return failures.add(column.label, column.value.evaluate(rows))


def _newest(sequences: Sequences, depth: int) -> pa.Array:
    begin = np.maximum(sequences.bounds[1:] - depth, sequences.bounds[:-1])
    counts = sequences.bounds[1:] - begin
    offsets = np.concatenate([[0], np.cumsum(counts)])
    picks = np.arange(offsets[-1]) + np.repeat(begin - offsets[:-1], counts)
    rows = take_rows(sequences.rows, picks)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), rows.to_struct_array())
