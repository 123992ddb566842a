"""Segments that the tasks of an exchange have staged: a `SegmentSource` over scratch rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...columns.arrays import latest_clock
from ...kinds.signals import Signals
from ...ports import Executor
from ...sequences.sequence import Sequences
from ..exchange.blocks import part_of
from ..exchange.range_cuts import SliceBounds
from ..exchange.read_chunk import no_signals
from ..tasks.task import TaskContext
from .prefix_scan import SegmentRows, scan_segments
from .segment_plan import Segment, SegmentTask, segments_by_key
from .segment_store import read_segment, read_signals
from .slice_scan import TaskReport


def scan_staged_segments(
    work: TaskContext, cuts: SliceBounds, reports: Sequence[TaskReport], executor: Executor
) -> list[TaskReport]:
    """Scan all segments that the slices have stored and summarised in their reports."""
    segments = [segment for report in reports for segment in report.segments]
    clock = latest_clock(report.clock for report in reports)
    return scan_segments(work, StagedSegments(work), segments_by_key(cuts, segments), executor, cuts, clock)


@dataclass(frozen=True, slots=True)
class StagedSegments:
    """Segments in scratch files, with the signals that all share.

    ``work``: the context of the tasks.
    """

    work: TaskContext

    def rows(self, task: SegmentTask) -> SegmentRows:
        """Return the rows of a segment, and the signals before the next one."""
        return SegmentRows(self.window_rows(task.segment), self._signals(task.marks))

    def earlier_rows(self, segment: Segment, first: int) -> Sequences:
        """Return the rows of an earlier segment from row ``first`` on."""
        rows = read_segment(self.work, segment)
        return rows if first <= 0 else part_of(rows, first, len(rows))

    def window_rows(self, segment: Segment) -> Sequences:
        """Return all rows of a segment: they stay on disk until they are used."""
        return read_segment(self.work, segment)

    def _signals(self, count: int | None) -> Signals:
        plan = self.work.plan
        if plan.takes_marks or plan.kind.has_watermark:
            return read_signals(self.work, not plan.takes_marks, count)
        return no_signals(self.work)
