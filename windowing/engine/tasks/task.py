"""The immutable context that is shipped to every task."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from ...columns.arrays import ClockValue
from ...expressions.binding import BoundExpression
from ...planning.plan import Plan
from ...planning.result_schema import MARK
from ...ports import Broadcast, Sink, Source, StateFiles
from ...projection.skipping import stored_condition
from ...projection.source import ProjectionSource
from .snapshot import RestorePoint

FILES = "files"
NONE = "none"
STREAM = "stream"
"""Sources of marks other than a boolean column: ends of files, no marks, the marks of the stage before."""


@dataclass(frozen=True, slots=True)
class TaskContext:
    """The immutable context that is shipped to every task.

    ``plan``: the bound window.
    ``source``: the input.
    ``sink``: the output.
    ``marks``: `FILES`, `NONE`, `STREAM`, or ``column:NAME`` of a boolean column.
    ``decisions``: the result of the global pass; None where none was needed.
    ``restore_point``: the state of the run before; None without a state.
    ``state_files``: where tasks write the state for the next run; None without a state.
    ``watermark``: the watermark after all rows, as a reading, where the next run needs it.
    ``scan_plan``: the plan of the scan tasks, where map tasks aggregate partially; None: ``plan``.
    ``conditions``: what the rows of the result are checked for as they are written.
    ``asks_span``: whether the first and the last order value of the rows are wanted.
    """

    plan: Plan
    source: Source
    sink: Sink
    marks: str
    decisions: Broadcast | None = None
    restore_point: RestorePoint | None = None
    state_files: StateFiles | None = None
    watermark: ClockValue | None = None
    scan_plan: Plan | None = None
    conditions: tuple[BoundExpression, ...] = ()
    asks_span: bool = False

    @property
    def for_scan(self) -> TaskContext:
        """The context of scan tasks, which work on what map tasks have sent."""
        return self if self.scan_plan is None else replace(self, plan=self.scan_plan, scan_plan=None)

    @property
    def mark_column(self) -> str | None:
        """The column that has the marks that follow rows, or None."""
        if self.marks == STREAM:
            return MARK
        return self.marks.removeprefix("column:") if self.marks.startswith("column:") else None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that tasks read, each listed once."""
        extra = [self.mark_column] if self.mark_column and self.plan.takes_marks else []
        stream = [MARK] if self.source.stream else []
        return tuple(dict.fromkeys([*self.plan.columns, *stream, *extra]))

    @property
    def encoded(self) -> list[str]:
        """Text columns that are keys and nothing else: read as dictionaries, so that each text is handled once."""
        keys = [name for name in self.plan.key if name not in self.plan.read_values]
        return [name for name in keys if pa.types.is_string(self.source.schema.field(name).type)]


def with_projection(work: TaskContext) -> TaskContext:
    """Return a context whose source has the columns and rows that the window sees of its input."""
    projection = work.plan.projection
    if projection.is_trivial:
        return work
    computed = {each.name for each in projection.computed}
    wanted = [*work.plan.columns, *([work.mark_column] if work.mark_column else [])]
    used = tuple(name for name in wanted if name in computed)
    needs_all_rows = work.plan.takes_marks and work.marks != NONE  # a row that is left out may have a mark
    condition = None if needs_all_rows else stored_condition(projection)
    return replace(work, source=ProjectionSource(work.source, projection, used, condition))
