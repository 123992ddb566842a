"""Rows that are rejected because of a column with ``lag``: it fails for them, or the window cannot take its value."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import Ints, Mask, combined
from ..expressions.binding import Evaluation
from ..panes.rejects import NO_REJECTS, ScanRejects
from ..planning.plan import Plan
from ..sequences.sequence import Sequences, take_rows
from .row_validation import FAILED, split_by_reason, validate_lag_columns


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

    def first_of_each_row(self) -> tuple[Ints, pa.Array]:
        """Return the rows that fail, int64 (r,), ascending, and for each why the first expression fails."""
        rows = np.concatenate([np.empty(0, np.int64), *self.rows])
        rows, first = np.unique(rows, return_index=True)
        return rows, combined(pa.chunked_array(self.details, pa.string())).take(pa.array(first))


def rejected_rows(plan: Plan, new: Sequences, failures: Failures) -> ScanRejects:
    """Return the new rows that are rejected; a failure comes before any other reason: a value that lacks is no null."""
    reasons = validate_lag_columns(plan, new.rows)
    failed, details = failures.first_of_each_row()
    if reasons is None and not len(failed):
        return NO_REJECTS
    reasons = np.full(len(new), None, np.object_) if reasons is None else reasons
    reasons[failed] = FAILED
    _, rows = split_by_reason(reasons)
    at = np.searchsorted(failed, rows)
    has_failed = np.isin(rows, failed)
    why = details.take(pa.array(np.minimum(at, len(failed) - 1), mask=~has_failed)) if len(failed) else None
    why = pa.nulls(len(rows), pa.string()) if why is None else why
    return ScanRejects(new.pos[rows], pa.array(reasons[rows].tolist(), pa.string()), why, rows)


def without(sequences: Sequences, rejects: ScanRejects) -> Sequences:
    """Return sequences without rows that are rejected, and without keys that have no others. Rows have no ranks yet."""
    if not len(rejects):
        return sequences
    is_kept = np.ones(len(sequences), np.bool_)
    is_kept[rejects.row] = False
    picks = np.flatnonzero(is_kept)
    bounds, keys = np.searchsorted(picks, sequences.bounds), sequences.keys
    if keys is not None:
        filled = np.flatnonzero(np.diff(bounds))
        keys, bounds = keys.take(pa.array(filled)), np.append(bounds[filled], bounds[-1])
    return Sequences(keys, bounds, take_rows(sequences.rows, picks), sequences.pos[picks], sequences.order)
