"""Batched windows as a kind: a pane for each change of the visible rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pyarrow as pa

from ...clock.interval_grid import batched_grid, clock_values
from ...columns.arrays import Mask
from ...columns.sort_keys import is_sortable
from ...errors import ConfigError
from ...language.spec import Batched
from ...rows.marks import Marks
from ...rows.membership import Memberships
from ...rows.panes import Panes
from ...rows.sequence import Sequences
from ..context import WindowContext
from ..contract import Causes, Explain, Option
from ..eviction.key_lifetimes import Lifetimes
from ..overlapping import OverlappingKind
from ..row_counts import rows_shown
from ..row_steps import NEVER, RowSteps
from ..signals import Signals
from .panes import batched_panes, batched_rest


@dataclass(frozen=True, slots=True)
class BatchedKind(OverlappingKind):
    """A batched window.

    ``spec``: its spec.
    """

    spec: Batched

    emits_changes_of_groups: ClassVar[bool] = True
    sum_of_nothing: ClassVar[int | None] = 0

    @property
    def options(self) -> frozenset[Option]:
        """Rows that entered, and that left unless all stay; a grid of ticks where there are batches of time."""
        ticks = self.spec.within is not None and self.spec.every is not None
        given: dict[Option, bool] = {"changes": True, "left": not self.spec.retain_all, "origin": ticks}
        return frozenset(option for option, is_given in given.items() if is_given)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The columns of ``partition by`` and ``with unique``."""
        names = [*self.spec.partition_by, self.spec.unique]
        return tuple(dict.fromkeys(name for name in names if name is not None))

    @property
    def needs_clock(self) -> bool:
        """Whether rows leave with time."""
        return self.spec.within is not None

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:  # noqa: ARG002
        """Raise `ConfigError` where values cannot be compared."""
        if not is_sortable(dtype):
            raise ConfigError(f"column {name!r} is {dtype}, whose values cannot be compared", "name another column")

    @property
    def causes(self) -> Causes:
        """Rows; with ``within`` the clock, too, or with ``every`` alone."""
        if self.spec.within is None:
            return "rows"
        return "both" if self.spec.every is None else "ticks"

    @property
    def rows_out_per_row(self) -> Fraction:
        """About how many panes a row causes: one when it enters, and with time one when it leaves."""
        if self.spec.within is not None:
            return Fraction(2)
        return Fraction(1) if self.spec.every is None else Fraction(0)

    def rows_out(self, rows: int, context: WindowContext) -> int | None:
        """Return how many rows all panes show, where counts alone decide that."""
        spec = self.spec
        if spec.within is not None or spec.partition_by or spec.unique is not None:
            return None
        if spec.retain_all:
            return rows * (rows + 1) // 2
        assert spec.retain is not None
        return rows_shown(rows, spec.retain, int(spec.every or 1), 0, not (context.hold or context.drop))

    def bounds_type(self, clock: pa.DataType, origin: Fraction) -> pa.DataType | None:
        """Return the type of instants."""
        return None if self.spec.within is None else batched_grid(self.spec, clock, origin).type

    def instants_type(self, clock: pa.DataType, origin: Fraction) -> pa.DataType | None:
        """Return the type of instants."""
        return self.bounds_type(clock, origin)

    def to_tick_type(self, column: pa.Array, name: str, origin: Fraction) -> pa.Array:
        """Return clock values as instants."""
        if self.spec.within is None:
            return column
        grid = batched_grid(self.spec, column.type, origin)
        return grid.to_arrow(grid.instants(clock_values(column, name)))

    def panes(self, sequences: Sequences, signals: Signals, context: WindowContext) -> tuple[Panes, Marks]:
        """Return the panes."""
        return batched_panes(self.spec, sequences, context), signals.marks

    def row_steps(
        self,
        sequences: Sequences,
        signals: Signals,  # noqa: ARG002
        panes: Panes,
        lives: Memberships,
        context: WindowContext,  # noqa: ARG002
    ) -> RowSteps:
        """Rows enter with panes."""
        rows = len(sequences)
        never, entering = np.full(rows, NEVER), np.full(rows, NEVER)
        entering[lives.row] = lives.enter
        return RowSteps(sequences.bounds[panes.key], np.zeros(rows, np.bool_), never, entering, never, True)

    def waits_at_ticks(self, context: WindowContext) -> bool:  # noqa: ARG002
        """Whether rows at the instant of a tick of ``every`` enter at that tick."""
        return self.spec.every is not None

    @property
    def for_any_start(self) -> BatchedKind:
        """The kind that retains rows enough, however many rows of a segment's first batch are in earlier segments.

        By itself a segment counts batches (``retain N every M``) from its first row, so its last full batch may end up
        to ``M - 1`` rows later than for the whole key, and what the batches before it show begins as much later. Rows
        that it leaves out are whole batches, which do not change how the rest is counted.
        """
        spec = self.spec
        if spec.within is not None or spec.every is None or spec.retain is None:
            return self
        return replace(self, spec=replace(spec, retain=spec.retain + 2 * int(spec.every)))

    def retained_rows(
        self,
        sequences: Sequences,
        context: WindowContext,
        panes: Panes | None,  # noqa: ARG002
        key_lifetimes: Lifetimes | None,  # noqa: ARG002
        last_closed: int,  # noqa: ARG002
    ) -> Mask:
        """Return the rows that have yet to enter or to leave."""
        return batched_rest(self.spec, sequences, context)

    def can_cut(self, has_key: bool, context: WindowContext) -> bool:  # noqa: ARG002
        """Whether rows leave."""
        return self.spec.within is not None or self.spec.retain is not None
