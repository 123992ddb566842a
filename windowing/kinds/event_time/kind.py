"""Event-time panes as a kind: intervals of event time that a watermark completes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import pyarrow as pa

from ...clock.interval_grid import clock_values, make_intervals
from ...clock.watermark import NO_LEVEL, Lateness, make_lateness
from ...columns.arrays import Ints, Mask, combined
from ...language.spec import TimeInterval
from ...rows.marks import Marks
from ...rows.membership import Memberships
from ...rows.panes import Panes
from ...rows.sequence import Sequences
from ..context import WindowContext
from ..contract import Causes, Explain, Option
from ..eviction.key_lifetimes import Lifetimes
from ..overlapping import OverlappingKind
from ..row_steps import RowSteps
from ..signals import Signals
from .panes import interval_panes, interval_rest
from .row_steps import interval_steps


@dataclass(frozen=True, slots=True)
class EventTimeKind(OverlappingKind):
    """Event-time panes.

    ``spec``: their spec.
    """

    spec: TimeInterval

    has_watermark: ClassVar[bool] = True

    @property
    def partitioned(self) -> bool:
        """Whether the spec demands a key."""
        return self.spec.partitioned

    @property
    def options(self) -> frozenset[Option]:
        """Those of the watermark."""
        return frozenset({"event time"})

    @property
    def attributes(self) -> tuple[str, ...]:
        """None: the event time is an option."""
        return ()

    @property
    def needs_clock(self) -> bool:
        """False: the clock is the event time, not the order column, since rows are in arrival order."""
        return False

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:
        """There is no attribute."""

    @property
    def causes(self) -> Causes:
        """Rows, which advance the watermark."""
        return "rows"

    @property
    def rows_out_per_row(self) -> Fraction:
        """About how many panes hold a row."""
        return max(Fraction(1), self.spec.duration / self.spec.period)

    def bounds_type(self, clock: pa.DataType, origin: Fraction) -> pa.DataType:  # noqa: ARG002
        """Return the type of interval bounds."""
        return make_intervals(clock, self.spec).type

    def panes(self, sequences: Sequences, signals: Signals, context: WindowContext) -> tuple[Panes, Marks]:
        """Return the outputs of all panes."""
        assert signals.watermarks is not None
        assert context.event_time is not None
        return interval_panes(self.spec, sequences, signals.watermarks, context.event_time), signals.marks

    def row_steps(
        self, sequences: Sequences, signals: Signals, panes: Panes, lives: Memberships, context: WindowContext
    ) -> RowSteps:
        """Return when rows enter and leave."""
        return interval_steps(self.spec, sequences, signals, panes, lives, context)

    def lateness(self, dtype: pa.DataType, lag: Fraction, min_gap: Fraction) -> Lateness:
        """Return the rule of late rows."""
        return make_lateness(dtype, self.spec, lag, min_gap)

    def has_cells(self, context: WindowContext) -> bool:  # noqa: ARG002
        """Always."""
        return True

    def cells(self, sequences: Sequences, context: WindowContext) -> Ints:
        """Return the cell of the grid of all starts and ends that each row is in."""
        name = str(context.event_time)
        column = combined(sequences.rows.column(name))
        return make_intervals(column.type, self.spec).grid.cells(clock_values(column, name))

    def retained_rows(
        self,
        sequences: Sequences,
        context: WindowContext,
        panes: Panes | None,  # noqa: ARG002
        key_lifetimes: Lifetimes | None,  # noqa: ARG002
        last_closed: int,
    ) -> Mask:
        """Return the rows of panes that may still be emitted."""
        assert context.event_time is not None
        return interval_rest(self.spec, sequences, context.event_time, last_closed)

    def last_closed(self, signals: Signals, count: int, context: WindowContext) -> int:
        """Return an event-time pane that is closed after the first ``count`` advances, as are all panes before it."""
        if signals.watermarks is None or not count:
            return NO_LEVEL
        level = int(signals.watermarks.level[count - 1])
        if context.in_event_order:
            return level
        return max(NO_LEVEL, level - math.ceil(self.spec.discard_age / self.spec.period) - 1)

    def can_cut(self, has_key: bool, context: WindowContext) -> bool:  # noqa: ARG002
        """Always."""
        return True
