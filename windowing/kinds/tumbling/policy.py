"""The contract of a tumbling policy: what ends a window, and all that the kind asks of it.

`registry.policy_of` makes the policy of its value in the language. Most policies decide by two neighbouring rows
whether a window starts between them; what follows from that for segments and partition eviction is said here once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...columns.arrays import Ints, Mask
from ...language.conditions import Operand, operand_column
from ...language.spec import Delta, Gap, PartitionEviction
from ...rows.marks import Marks, no_marks
from ...rows.membership import Ranges, sizes
from ...rows.panes import AT_END, Panes, reason
from ...rows.sequence import Sequences, one_batch
from ...support.jit import kernel
from ..context import WindowContext
from ..contract import Explain, Option, check_condition, check_measured
from ..delta import DeltaTransitions, Exit
from ..eviction_kernels import Windows
from ..evictions import NO_PLACES, Events, Evictions, WindowFacts, evictions
from ..rules.gather import Gathered
from ..segment_summary import BoundarySummary, RunThrough, SegmentSummary, WindowPosition


class Passage(NamedTuple):
    """What a segment does to the window that is open where it begins.

    ``exit``: the windows that start in it.
    ``closed``: whether its last row itself ends its window.
    ``value``: the start value of a ``delta`` at its end, or the window that several rules leave; else None.
    ``skips``: whether some of its rows are in no window.
    """

    exit: Exit
    closed: bool = False
    value: Any = None
    skips: bool = False


class TumblingPolicy(ABC):
    """A tumbling policy, with its value in the language."""

    __slots__ = ()

    why: ClassVar[str]
    """The close reason."""
    needs_clock: ClassVar[bool] = False
    """Whether the order column must be read in seconds; then the clock ends windows."""
    ends_before: ClassVar[bool] = False
    """Whether a window ends when the row after it comes; else with its own last row, a mark or a tick."""
    is_known_by_sample: ClassVar[bool] = False
    """Whether some of the rows say where windows end, though not their neighbours: by a grid or the first row."""
    first_row_decides: ClassVar[bool] = False
    """Whether the first row of a window, and none of the others, decides where it ends; else its last row does."""
    options: ClassVar[frozenset[Option]] = frozenset()
    """Which options windows with this policy take."""

    @property
    def is_dated(self) -> bool:
        return False

    @property
    def takes_marks(self) -> bool:
        return False

    @property
    def looks_at_window_before(self) -> bool:
        return False

    @property
    def leaves_holes(self) -> bool:
        return False

    @property
    def attributes(self) -> tuple[str, ...]:
        return ()

    @property
    def required(self) -> tuple[str, ...]:
        """The attributes that must hold a value."""
        return self.attributes

    @property
    def measured(self) -> tuple[str, ...]:
        return ()

    @property
    def amounts(self) -> tuple[str, ...]:
        """The attributes that are amounts: they must not be negative."""
        return ()

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:  # noqa: B027
        """Raise `ConfigError` where an attribute cannot have this type."""

    @abstractmethod
    def panes(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Panes:
        """Return the panes, including those that only the end of the data closes.

        ``marks`` must be in total order; only a policy that takes marks reads them.
        """

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:
        """Say to the rules of an ``or`` which rows end windows; ``rule``: the place of this policy among them.

        Policies that the clock or marks decide are asked for their ticks and marks instead (`rules.events`).
        """
        raise NotImplementedError

    # --- windows that the clock ends

    def instants_type(self, clock: pa.DataType, origin: Fraction) -> pa.DataType | None:
        """Return the type of the instants at which the clock ends windows; None where it ends none."""
        return self.bounds_type(clock, origin)

    @property
    def skips_rows(self) -> bool:
        return False

    @property
    def has_cells(self) -> bool:
        """Whether the clock alone ends windows: rows of one cell of its grid are in one window."""
        return self.needs_clock

    @property
    def may_cut(self) -> bool:
        return True

    def bounds_type(self, clock: pa.DataType, origin: Fraction) -> pa.DataType | None:  # noqa: ARG002
        """Return the type of interval bounds on a clock column; None where the bounds are values of rows."""
        return None

    def to_tick_type(self, column: pa.Array, name: str, origin: Fraction) -> pa.Array:  # noqa: ARG002
        """Return clock values in the type of bounds, bit for bit as bounds have the same instant."""
        return column.cast(self.bounds_type(column.type, origin) or column.type)

    def empty_ticks(self, sequences: Sequences, context: WindowContext) -> pa.Array:
        """Return the ticks, from the first row to the clock, that end a window without rows."""
        raise NotImplementedError

    def cells(self, sequences: Sequences, context: WindowContext) -> Ints:
        """Return the number of each row's window on the clock, int64 (n,)."""
        raise NotImplementedError

    # --- partition eviction

    def evictions(
        self, eviction: PartitionEviction, sequences: Sequences, marks: Marks, context: WindowContext
    ) -> Evictions:
        """Return all partition evictions; ``sequences`` hold all rows of all keys."""

        def facts(_: Ints) -> WindowFacts:
            windows = Windows(True, self.window_ends(sequences, context), self.ends_before, NO_PLACES, False)
            return WindowFacts(windows, self.events(sequences, marks, context), self.takes_marks)

        return evictions(eviction, facts, sequences, marks, context.restored)

    def window_ends(self, sequences: Sequences, context: WindowContext) -> Ints:
        """Return for each row the row before which a window that begins at it ends; more than n where it never ends.

        Empty where marks or the clock end windows.
        """
        panes = self.panes(sequences, no_marks(sequences.rows, sequences.order), context)
        assert isinstance(panes.membership, Ranges)
        lo, hi = panes.membership.lo, panes.membership.hi  # wherever the window begins
        return np.repeat(np.where(panes.cause == AT_END, len(sequences) + 1, hi), hi - lo)

    def events(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Events | None:  # noqa: ARG002
        """Return the marks or ticks that end windows; None where rows do."""
        return None

    # --- sizes

    def most_rows(self, sample: Sequences, share: float, context: WindowContext) -> int | None:
        """Return about how many rows a window has at most; None where nothing is known.

        ``sample``, ``share``: as in `WindowKind.most_rows`.
        """
        if not self.is_known_by_sample or not set(self.attributes) <= set(sample.rows.schema.names):
            return None
        panes = self.panes(sample, no_marks(sample.rows, sample.order), replace(context, empty="skip"))
        return int(sizes(panes.membership).max(initial=0) * share)

    # --- segments

    def epochs_at_edges(self, segment: Sequences, marks: Marks) -> tuple[int, int]:  # noqa: ARG002
        """Return how many marks that end windows come before the first row of a segment, and before its last row."""
        return 0, 0

    def edge_labels(self, segment: Sequences, marks: Marks, panes: Panes) -> tuple[Any, Any]:
        """Return what `splits` compares of the first and the last row of a segment; ``panes`` are those of it."""
        raise NotImplementedError

    def splits(self, before: Any, after: Any) -> bool:
        """Return whether a window starts between two neighbouring rows with these labels."""
        return bool(before != after)

    def last_row_closes(self, panes: Panes) -> bool:  # noqa: ARG002
        """Return whether the last row of a segment itself ends its window."""
        return False

    def outline(self, segment: Sequences, marks: Marks, context: WindowContext) -> BoundarySummary | None:
        """Return where windows start in a segment; None where the summary's other fields say it, or `summarise`."""
        panes = self.panes(segment, marks, context)
        contents = panes.membership
        assert isinstance(contents, Ranges)
        edges = segment.rows.take(pa.array([0, len(segment) - 1])) if context.empty == "row" else None
        labels = self.edge_labels(segment, marks, panes)
        return BoundarySummary(len(panes) - 1, int(contents.lo[-1]), labels, self.last_row_closes(panes), edges)

    def summarise(
        self, segment: Sequences, marks: Marks, context: WindowContext
    ) -> BoundarySummary | DeltaTransitions | None:
        """Return where windows start in a segment, whatever window is open where it begins."""
        return self.outline(segment, marks, context)

    def pass_through(
        self,
        position: WindowPosition,
        index: int,  # noqa: ARG002
        segment: SegmentSummary,
        run_through: RunThrough,  # noqa: ARG002
        context: WindowContext,
    ) -> Passage:
        """Return what segment ``index`` does to the window at a position."""
        assert isinstance(segment.window, BoundarySummary)
        before = position.last.window if position.last is not None else None
        found = self._boundary_exit(segment.window, before if isinstance(before, BoundarySummary) else None, context)
        return Passage(found, segment.window.closed)

    def run_through(self, segment: Sequences, value: Any, context: WindowContext) -> Exit:
        """Return the exit of a segment for a start value: of a ``delta``, or the window that several rules leave."""
        raise NotImplementedError

    def _boundary_exit(self, window: BoundarySummary, before: BoundarySummary | None, context: WindowContext) -> Exit:
        if before is None or before.closed or self.splits(before.labels[1], window.labels[0]):
            empty = 0 if before is None else self._empty_between(before, window, context)
            return Exit(window.starts + 1 + empty, window.last, None)
        return Exit(window.starts, window.last if window.starts else -1, None)

    def _empty_between(self, before: BoundarySummary, window: BoundarySummary, context: WindowContext) -> int:
        if before.edges is None or window.edges is None:
            return 0
        rows = one_batch(pa.Table.from_batches([before.edges.slice(1, 1), window.edges.slice(0, 1)]))
        pair = Sequences(None, np.array([0, 2]), rows, np.arange(2), context.sort)
        return len(self.panes(pair, no_marks(rows, context.sort), context)) - 2


# Panes of tumbling windows from the rows where they start: each row of a key belongs to exactly one window.


def change_starts(bounds: Ints, labels: Ints) -> Ints:
    """Return the rows whose label differs from that of the row before them in their sequence: int64, ascending."""
    flags = np.ones(len(labels), np.bool_)
    np.not_equal(labels[1:], labels[:-1], out=flags[1:])
    flags[bounds[:-1][bounds[:-1] < len(labels)]] = True
    return np.flatnonzero(flags)


def panes_at(sequences: Sequences, starts: Ints) -> tuple[Ints, Ints, Ints, Ints, Mask]:
    """Return key, number, lo and hi of the windows that start at ``starts``, and which are the last of their key."""
    key, number, hi, last = _windows_at(sequences.bounds, starts, len(sequences))
    return key, number, starts, hi, last


@kernel
def _windows_at(bounds: Ints, starts: Ints, rows: int) -> tuple[Ints, Ints, Ints, Mask]:
    # one loop over keys and windows, both ascending: with a key for each few rows, searches took twice as long
    key, number = np.empty(len(starts), np.int64), np.empty(len(starts), np.int64)
    hi, last = np.empty(len(starts), np.int64), np.empty(len(starts), np.bool_)
    p = 0
    for k in range(len(bounds) - 1):
        first = p
        while p < len(starts) and starts[p] < bounds[k + 1]:
            key[p], number[p] = k, p - first
            hi[p] = starts[p + 1] if p + 1 < len(starts) else rows
            last[p] = hi[p] == bounds[k + 1]
            p += 1
    return key, number, hi, last


def ranges(lo: Ints, hi: Ints) -> Ranges:
    """Return the membership of windows ``[lo, hi)`` that share no row."""
    return Ranges(lo, hi, lo, True)


def closed_by(is_closed: Mask, cause: Ints, why: str) -> tuple[Ints, npt.NDArray[np.int8]]:
    """Return causes and close reasons: ``cause`` and ``why`` where ``is_closed``, else the end of the data."""
    return _causes(is_closed, cause, np.int8(reason(why)), np.int8(reason("end")))


@kernel
def _causes(is_closed: Mask, cause: Ints, why: np.int8, at_end: np.int8) -> tuple[Ints, npt.NDArray[np.int8]]:
    # one loop without branches: of many keys, it is random which window is the last
    causes, reasons = np.empty(len(cause), np.int64), np.empty(len(cause), np.int8)
    for p in range(len(cause)):
        causes[p] = cause[p] if is_closed[p] else AT_END
        reasons[p] = why if is_closed[p] else at_end
    return causes, reasons


def ended_by_next_row(sequences: Sequences, starts: Ints, why: str) -> Panes:
    """Return the panes of windows that the row after them ends."""
    key, number, lo, hi, last = panes_at(sequences, starts)
    return Panes(key, number, ranges(lo, hi), *closed_by(~last, hi, why))


# Policies that are only rules: `any_of.AnyOfPolicy` makes their windows, also where one stands alone.


class RulePolicy(TumblingPolicy):
    """A policy without a way of its own to find windows."""

    __slots__ = ()

    opens: ClassVar[bool] = False
    """Whether the policy says at which rows windows may begin."""

    def panes(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Panes:
        """Not asked: the rules of a spec find its windows together."""
        raise NotImplementedError


# Policies that ask of each row whether a condition is true (semantics section 12).


class ConditionPolicy(TumblingPolicy):
    """A policy over boolean columns or expressions, in which null is not true."""

    __slots__ = ()

    @property
    def word(self) -> str:
        return self.why

    @property
    @abstractmethod
    def operands(self) -> tuple[Operand, ...]:
        """The conditions."""

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(map(operand_column, self.operands)))

    @property
    def required(self) -> tuple[str, ...]:
        """None: null is not true."""
        return ()

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:  # noqa: ARG002
        for operand in self.operands:
            if operand_column(operand) == name:
                check_condition(self.word, operand, dtype)


# Tumbling policies that compare one attribute by an amount: ``delta`` and ``gap``.


class MeasuredPolicy(TumblingPolicy):
    """A policy under which a window ends before a row that rises by more than an amount.

    ``value``: as in the spec.
    """

    __slots__ = ()

    value: Delta | Gap
    ends_before: ClassVar[bool] = True

    @property
    def attributes(self) -> tuple[str, ...]:
        return (self.value.attribute,)

    @property
    def measured(self) -> tuple[str, ...]:
        return (self.value.attribute,)

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:
        check_measured(self.value, name, dtype, explain)
