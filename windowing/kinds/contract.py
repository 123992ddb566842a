"""The contract of a kind of window: all that the rest of the program asks of a window spec.

`registry.kind_of` makes the kind of a spec. Nothing outside `windowing.kinds` and `windowing.language` looks at the
type of a spec: a new kind is a folder with an implementation of this contract, and a line in the registry.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pyarrow as pa

from ..clock.watermark import NO_LEVEL, Lateness
from ..columns.arrays import ClockValue, Ints, Mask
from ..rows.marks import Marks
from ..rows.panes import Panes
from ..rows.sequence import Sequences
from ..state.window_state import RestoredState
from .context import RowSteps, Signals, WindowContext
from .evictions import Evictions
from .facts import Fact, KeyPane, KeyPanes
from .key_lifetimes import Lifetimes
from .needs import Explain, Needs, PaneTimes


class WindowKind(ABC):
    """A kind of window, with one spec of it, as `registry.kind_of` makes it once.

    ``needs``: all that follows from the spec alone.
    """

    __slots__ = ()

    needs: Needs

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:  # noqa: B027
        """Raise `ConfigError` where an attribute cannot have this type."""

    def check_types(self, schema: pa.Schema) -> None:  # noqa: B027
        """Raise `SpecError` where attributes of these types do not go together."""

    # --- the panes

    def times(self, clock: pa.DataType, origin: Fraction) -> PaneTimes:
        """Return the times of panes on a clock column of this type."""
        return PaneTimes()

    @abstractmethod
    def panes(self, sequences: Sequences, signals: Signals, context: WindowContext) -> tuple[Panes, Marks]:
        """Return the panes, including those that only the end of the data brings out.

        Also return the marks that causes of panes refer to, numbered after the rows: the signals, then partition
        evictions.
        """

    def row_steps(
        self, sequences: Sequences, signals: Signals, panes: Panes, parts: Lifetimes | None, context: WindowContext
    ) -> RowSteps:
        """Return when rows enter and leave, where a kind takes operators.

        ``panes``: those that are emitted, in this run. ``parts``: the lifetimes of keys, where there is partition
        eviction; else None.
        """
        raise NotImplementedError

    def evictions(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Evictions:
        """Return all partition evictions; ``sequences`` hold all rows of all keys (section 4)."""
        raise NotImplementedError

    def empty_ticks(self, sequences: Sequences, context: WindowContext) -> pa.Array:
        """Return the ticks, from the first row to the clock, that end a window without rows."""
        raise NotImplementedError

    def lateness(self, dtype: pa.DataType, lag: Fraction, min_gap: Fraction) -> Lateness:
        """Return the rule of late rows for a column of event time, where there is a watermark."""
        raise NotImplementedError

    # --- rows that last (`Needs.ends`)

    def check_lengths(self, rows: pa.RecordBatch, clock: str, picks: Ints | None, name: Callable[[int], str]) -> None:  # noqa: B027
        """Raise `DataError` for a row that lasts over too many windows, as far as is known before panes are.

        ``clock``: the column of the clock. ``picks``: int64, the rows to look at; None: all. ``name``: says which row.
        """

    def begin_before(self, sequences: Sequences, context: WindowContext, of_clock: ClockValue | None) -> Mask:
        """Return which rows begin before the window in which ``of_clock`` is, bool (n,); None: the clock of now."""
        raise NotImplementedError

    # --- partial aggregation

    def cells(self, sequences: Sequences, context: WindowContext) -> Ints:
        """Return the number of each row's cell, int64 (n,), where there are cells."""
        raise NotImplementedError

    # --- from run to run

    @abstractmethod
    def retained_rows(
        self, sequences: Sequences, context: WindowContext, panes: Panes | None, key_lifetimes: Lifetimes | None
    ) -> Mask:
        """Return which rows are of use at the end of the run, bool (n,).

        ``panes``: where windows do not overlap, else None. ``key_lifetimes``: those of partition eviction, else None.
        """

    def settled_rows(self, sequences: Sequences, panes: Panes | None, retained: Mask) -> Mask:
        """Return which retained rows no window will show: they are there for others to look at, bool (n,).

        ``panes``: as of `retained_rows`.
        """
        return np.zeros(len(sequences), np.bool_)

    def kept(self, rows: pa.RecordBatch, panes: Panes | None) -> pa.RecordBatch:
        """Return rows as the next run shall find those of them that are retained. ``panes``: as of `retained_rows`."""
        return rows

    def full_and_baseline(self, sequences: Sequences, restored: RestoredState) -> tuple[Mask, pa.Array]:
        """Return `KeyState.full` and `KeyState.baseline` of each sequence at the end of the run."""
        return restored.key_state.full, restored.key_state.baseline

    def last_closed(self, signals: Signals, context: WindowContext) -> int:
        """Return an event-time pane that is closed after all signals, as are all panes before it.

        It is the last such pane, or one not far before it: then a few more rows are retained, which no pane will show.
        """
        return NO_LEVEL

    # --- why a window is as it is

    @abstractmethod
    def explain(self, pane: KeyPane) -> Iterator[Fact]:
        """Yield what opened a window, what brought it out, what came close, and what else is known of it."""

    def explain_rows(self, panes: KeyPanes, rows: Ints) -> Iterator[Fact]:
        """Yield why rows of a key, at which the result has no window, are in none; nothing where a kind does not know.

        ``rows``: int64, which of the rows of the key.
        """
        yield from ()
