"""What every task is told."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from ...columns.arrays import ClockValue
from ...planning.plan import Plan
from ...planning.result_schema import MARK
from ...ports import Broadcast, Sink, Source, StateFiles
from .snapshot import RestorePoint

FILES = "files"
NONE = "none"
STREAM = "stream"
"""Where marks come from, if not from a boolean column: ends of files, nowhere, the stage before."""


@dataclass(frozen=True, slots=True)
class TaskContext:
    """What every task is told: the plan, where rows come from and go to, and ``marks``: `FILES`, `NONE`, `STREAM`, or
    ``column:NAME`` of a boolean column. ``verdict``: what was decided over all keys beforehand, where that is needed.
    ``start``: what an earlier run has left, to go on from; ``carry``: where to leave what the next one goes on from.
    ``stands``: where the watermark stands after all rows, a reading, where there is going to be a next one.
    ``combined``: the plan of the scan, where rows are combined before they are sent.
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

    @property
    def for_scan(self) -> TaskContext:
        """What the tasks are told that scan what others have sent."""
        return self if self.scan_plan is None else replace(self, plan=self.scan_plan, scan_plan=None)

    @property
    def mark_column(self) -> str | None:
        """The column that says after which rows a mark stands."""
        if self.marks == STREAM:
            return MARK
        return self.marks.removeprefix("column:") if self.marks.startswith("column:") else None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that tasks read, each once."""
        extra = [self.mark_column] if self.mark_column and self.plan.takes_marks else []
        stream = [MARK] if self.source.stream else []
        return tuple(dict.fromkeys([*self.plan.columns, *stream, *extra]))

    @property
    def encoded(self) -> list[str]:
        """The text columns that are keys and nothing else: read as dictionaries, no text is looked at twice."""
        keys = [name for name in self.plan.key if name not in self.plan.values]
        return [name for name in keys if pa.types.is_string(self.source.schema.field(name).type)]
