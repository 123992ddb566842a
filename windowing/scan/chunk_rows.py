"""One reading of a chunk: which rows windows see, and why others are rejected (semantics sections 1, 2, 5 and 11).

A chunk is splits of an input, or one batch of a stream. Some of its rows are marks only, some the condition of the run
leaves out, and for some an expression fails. The rest is validated; a row that sorts before the last row of earlier
runs is late, and so is one that comes too late by the watermark; a row for which an expression fails does not move it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, Mask
from ..columns.sort_keys import sorts_before
from ..planning.plan import Plan
from ..planning.result_schema import MARK
from ..ports import Batch
from ..rows.marks import Marks
from .row_validation import FAILED, LatenessResult, Reasons, add_late, validate_rows


@dataclass(frozen=True, slots=True)
class RowSelection:
    """Which of the rows of a chunk are selected.

    ``picks``: int64, the selected rows, ascending; None: all rows. Those that have failed are among them: they are
        rejected.
    ``failed``: bool, which of the selected rows have failed; None: none.
    ``mark_only``: how many rows are marks only.
    ``filtered``: how many rows the condition leaves out.
    """

    picks: Ints | None = None
    failed: Mask | None = None
    mark_only: int = 0
    filtered: int = 0

    def without_failures(self) -> RowSelection:
        """Return the selection of those rows that have not failed."""
        if self.failed is None or self.picks is None:
            return self if self.failed is None else RowSelection(np.flatnonzero(~self.failed))
        return RowSelection(self.picks[~self.failed])

    def take(self, rows: pa.RecordBatch, pos: Ints) -> tuple[pa.RecordBatch, Ints]:
        """Return the selected rows, and their arrival positions."""
        if self.picks is None:
            return rows, pos
        return (rows.take(pa.array(self.picks)) if rows.num_columns else rows), pos[self.picks]


def select_rows(batches: Sequence[Batch], rows: pa.RecordBatch | pa.Table, is_stream: bool) -> RowSelection:
    """Select rows of a chunk; ``rows``: those of all ``batches``, one after the other.

    ``is_stream``: whether they are read as a result, so that some may be marks only.
    """
    count, skipped = sum(len(batch.pos) for batch in batches), sum(batch.skipped for batch in batches)
    only = _marks_only(rows) if is_stream else None
    if only is None and all(batch.kept is None and batch.failures is None for batch in batches):
        return RowSelection(filtered=skipped)
    kept, failed = np.ones(count, np.bool_), np.zeros(count, np.bool_)
    first = 0
    for batch in batches:
        stop = first + len(batch.pos)
        if batch.kept is not None:
            kept[first:stop] = batch.kept
        if batch.failures is not None:
            failed[first + batch.failures.row] = True
        first = stop
    filtered = ~(kept | failed)
    if only is not None:
        filtered &= ~only
        kept &= ~only
        failed &= ~only
    selected = kept | failed
    picks = None if selected.all() else np.flatnonzero(selected)
    mark_only = 0 if only is None else int(only.sum())
    return RowSelection(picks, failed[selected] if failed.any() else None, mark_only, int(filtered.sum()) + skipped)


def _marks_only(rows: pa.RecordBatch | pa.Table) -> Mask | None:
    """Return which rows of a result are marks only; None where no row is."""
    only = np.asarray(rows.column(MARK).to_numpy(zero_copy_only=False) == "only", np.bool_)
    return only if only.any() else None


Assess = Callable[[pa.RecordBatch, Ints], LatenessResult]
"""Advances the watermark over rows, at their arrival positions, and finds the late ones."""


def judge_rows(
    plan: Plan, rows: pa.RecordBatch, pos: Ints, failed: Mask | None, position: pa.Table | None, assess: Assess | None
) -> tuple[Reasons | None, LatenessResult | None]:
    """Return the reject reason of each row, None where it is kept, or None where all are; and how late rows are.

    ``failed``: as in `RowSelection`; such a row has that reason before any other: a value that it lacks is no null.
    ``position``: as in `Registers`. ``assess``: None without a watermark; then lateness is None, too.
    """
    reasons, lateness = add_late(validate_rows(plan, rows), sorts_before(rows, position)), None
    if assess is not None:
        if failed is None:
            lateness = assess(rows, pos)
        else:
            known, late = np.flatnonzero(~failed), np.zeros(len(pos), np.bool_)
            lateness = assess(rows.take(pa.array(known)), pos[known])
            late[known] = lateness.late
            lateness = replace(lateness, late=late)
        reasons = add_late(reasons, lateness.late)
    if failed is not None:
        reasons = np.full(len(pos), None, np.object_) if reasons is None else reasons
        reasons[failed] = FAILED
    return reasons, lateness


def marks_behind(marks: Marks, position: pa.Table | None) -> Marks:
    """Return the marks that are not late: marks of rows that sort before the last row of earlier runs are, as they are.

    ``position``: as in `Registers`.
    """
    return marks if position is None else marks.take(np.flatnonzero(~sorts_before(marks.rows, position)))
