"""Which rows of a chunk there are: without mark-only rows and those that the condition of the run leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...columns.arrays import Ints, Mask
from ...planning.result_schema import MARK
from ...ports import Batch
from ...scan.row_validation import FAILED, Reasons
from ..tasks.task import TaskContext


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

    def add_failures(self, reasons: Reasons | None) -> Reasons | None:
        """Give the rows that have failed that reason, before any other: a value that they lack is no null."""
        if self.failed is None:
            return reasons
        reasons = np.full(len(self.failed), None, np.object_) if reasons is None else reasons
        reasons[self.failed] = FAILED
        return reasons


def select_rows(work: TaskContext, batches: Sequence[Batch], rows: pa.RecordBatch) -> RowSelection:
    """Select rows of a chunk; ``rows``: those of all ``batches``, one after the other."""
    count, skipped = sum(len(batch.pos) for batch in batches), sum(batch.skipped for batch in batches)
    only = None if work.source.stream is None else _marks_only(rows)
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


def _marks_only(rows: pa.RecordBatch) -> Mask | None:
    """Return which rows of a result are marks only; None where no row is."""
    only = np.asarray(rows.column(MARK).to_numpy(zero_copy_only=False) == "only", np.bool_)
    return only if only.any() else None
