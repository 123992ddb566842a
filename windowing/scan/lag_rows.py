"""What depends on rows before, also on those that earlier runs have seen: duplicates, and columns with ``lag``.

Duplicates are left out first (semantics section 20). Then columns with ``lag`` are computed of the new rows, before a
window sees any (section 11); a row for which one fails is rejected. Rows that a state retains keep the values that they
had, and for each key the state keeps the last rows, as far as new rows look back.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import ClockValue, Ints, Mask, combined
from ..expressions.binding import Evaluation
from ..planning.plan import Plan
from ..rows.lag_columns import NUMBER, LagColumn, depth_of
from ..rows.merge import append
from ..rows.panes import NO_REJECTS, ScanRejects
from ..rows.sequence import Sequences, take_rows
from ..state.window_state import WindowState, with_keys, with_newest
from .distinct_rows import let_through, may_match
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


def only(sequences: Sequences, is_kept: Mask) -> Sequences:
    """Return sequences with some of their rows, bool (n,), and without keys that have none. Rows have no ranks yet."""
    if is_kept.all():
        return sequences
    picks = np.flatnonzero(is_kept)
    keys, bounds = sequences.keys, np.searchsorted(picks, sequences.bounds)
    if keys is not None:
        filled = np.flatnonzero(np.diff(bounds))
        keys, bounds = keys.take(pa.array(filled)), np.append(bounds[filled], len(picks))
    return Sequences(keys, bounds, take_rows(sequences.rows, picks), sequences.pos[picks], sequences.order)


NO_INPUT = ""
"""A column that says how many rows there are, where an expression reads none."""


@dataclass(frozen=True, slots=True)
class OrderedRows:
    """New rows as windows see them.

    ``sequences``: the rows, with `Plan.values`.
    ``rejects``: the rows for which an expression fails, or has a value that the window cannot take.
    ``duplicates``: how many rows are left out as such; None: nobody asks.
    ``looked_back``: all rows with `Plan.looked_back`, those that are rejected among them, behind the last rows of each
        key that earlier runs have seen; None where nothing looks back.
    """

    sequences: Sequences
    rejects: ScanRejects = NO_REJECTS
    duplicates: int | None = None
    looked_back: Sequences | None = None


def with_lag_columns(plan: Plan, new: Sequences, state: WindowState | None = None) -> OrderedRows:
    """Return new rows, which have `Plan.read_values`, as windows see them: those that are no duplicates.

    ``state``: what earlier runs have kept. A row that is rejected stays the row before of those after it.
    """
    if not plan.looks_back:
        return OrderedRows(new)
    late, distinct, kept = plan.lag_columns, plan.options.distinct, plan.looked_back
    inputs = {name: combined(new.rows.column(name)).cast(kept.field(name).type) for name in plan.looked_at}
    if NUMBER in kept.names:
        inputs[NUMBER] = pa.array(np.zeros(len(new), np.int64))
    given = pa.RecordBatch.from_pydict(inputs or {NO_INPUT: np.zeros(len(new), np.bool_)})
    both, is_new = _with_earlier(replace(new, rows=given), state)
    duplicates, places = None, np.arange(len(new) if late else 0)
    if distinct is not None:
        both = _numbered(both, is_new) if NUMBER in kept.names else both
        passed = let_through(plan, distinct, both, is_new)
        duplicates, passed_new = int(np.count_nonzero(~passed)), passed[is_new]
        new, places = only(new, passed_new), np.flatnonzero(passed_new) if late else places
        if late or plan.options.at_end == "hold":  # else nobody looks at them any more
            both, is_new = only(both, passed), is_new[passed]
    if not late:
        return OrderedRows(replace(new, rows=new.rows.select(list(plan.values))), NO_REJECTS, duplicates, both)
    rows, failures = both.rows, Failures(is_new)
    for column in late:
        rows = rows.append_column(column.name, _values(column, rows, both.bounds, failures))
    picks = pa.array(np.flatnonzero(is_new))
    own = set(new.rows.schema.names) - {column.name for column in late}
    values = [new.rows.column(name) if name in own else rows.column(name).take(picks) for name in plan.values]
    found = replace(new, rows=pa.RecordBatch.from_arrays(values, names=list(plan.values)))
    rejects, is_kept = rejected_rows(plan, found, failures), np.ones(len(found), np.bool_)
    is_kept[rejects.row] = False
    return OrderedRows(only(found, is_kept), replace(rejects, row=places[rejects.row]), duplicates, both)


def keep_lookback(
    plan: Plan, scanned: ScanResult, idle: WindowState | None, new: OrderedRows, clock: ClockValue | None
) -> tuple[ScanResult, WindowState | None]:
    """Return the result of a scan, and the state of keys without rows, with the last rows of each key.

    Nothing is kept where windows do not go on. A key whose rows are all rejected has a state like any other.
    ``clock``: that behind all rows.
    """
    rows = new.looked_back
    if rows is None or scanned.state is None or plan.options.at_end != "hold":
        return scanned, idle
    newest = _newest(plan, rows, clock)
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


def _numbered(both: Sequences, is_new: Mask) -> Sequences:
    """Return rows with `NUMBER` as a state keeps it. Rows of earlier runs have it as it was before the new ones."""
    per_key, before = np.diff(both.bounds), np.append(0, np.cumsum(is_new))
    numbers = np.arange(len(both)) - np.repeat(both.bounds[1:], per_key)
    came = np.repeat(before[both.bounds[1:]] - before[both.bounds[:-1]], per_key)
    numbers[~is_new] = (both.rows.column(NUMBER).to_numpy() - came)[~is_new]
    columns = [pa.array(numbers) if name == NUMBER else both.rows.column(name) for name in both.rows.schema.names]
    return replace(both, rows=pa.RecordBatch.from_arrays(columns, schema=both.rows.schema))


def _newest(plan: Plan, sequences: Sequences, clock: ClockValue | None) -> pa.Array:
    """Return the last rows of each key, as far as rows to come look back: null where they look at none."""
    ends = np.repeat(sequences.bounds[1:], np.diff(sequences.bounds))
    kept = np.arange(len(sequences)) >= ends - depth_of(plan.lag_columns)
    if plan.options.distinct is not None:
        kept |= may_match(plan, plan.options.distinct, sequences.rows, clock)
    picks = np.flatnonzero(kept)
    offsets = np.searchsorted(picks, sequences.bounds)
    rows = take_rows(sequences.rows, picks).to_struct_array()
    nothing = pa.array(np.diff(offsets) == 0)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), rows, mask=nothing)
