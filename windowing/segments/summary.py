"""Pieces of one sequence that is cut: what is told of each, and where each begins.

A piece is summarised by itself, whatever comes before it. The summaries of a sequence are composed, piece after piece,
into an entry of each: with that, and some rows of the pieces before, it is scanned as a run that goes on from another
(`windowing.state.window_state`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from ..clock.values import clock_values
from ..columns.arrays import ClockValue, Measures, combined
from ..language.spec import Batched, Sliding, Tumbling, needs_clock
from ..planning.plan import Plan
from ..scan.scan import compares_with_previous_pane
from ..sequences.sequence import Sequences
from .delta_chains import DeltaTransitions, Exit, exit_for


@dataclass(frozen=True, slots=True)
class BoundarySummary:
    """How windows start in a piece where the row before a row decides whether one starts at it.

    ``starts``: how many start behind the first row; ``last``: where the last of all starts, 0 if that is the first row.
    ``labels``: what the window compares of the first and the last row: a window starts where the labels of two
    neighbours differ, or, with an ``amount``, where the later one rises by more than that. ``closed``: whether the last
    row ends its window itself. ``edges``: these two rows, where windows without rows count, too.
    """

    starts: int
    last: int
    labels: Measures
    amount: Any = None
    closed: bool = False
    edges: pa.RecordBatch | None = None


@dataclass(frozen=True, slots=True)
class RetentionSummary:
    """Of a window that shows rows of pieces before: ``rows`` is how many are of use at the end of the piece, as far as
    its own rows tell. ``trigger``: the chains of a ``delta`` trigger. ``low``, ``high``: the least and the largest
    value that an eviction by ``delta`` compares, ``evicts``: whether one row of the piece evicts another, and
    ``amount``: what it has to rise by."""

    rows: int
    trigger: DeltaTransitions | None = None
    low: Any = None
    high: Any = None
    evicts: bool = False
    amount: Any = None


@dataclass(frozen=True, slots=True)
class SegmentSummary:
    """What is told of a piece of ``rows`` rows, at least one. ``window``: how windows start in it or what they hold,
    nothing for a tumbling ``count``. ``epochs``: how many signals stand before its first row and its last. ``watched``:
    the watched attribute of these two rows, where falls are counted. ``stands``: where the clock stands at its end, for
    windows that look at it."""

    rows: int
    window: BoundarySummary | DeltaTransitions | RetentionSummary | None
    epochs: tuple[int, int] = (0, 0)
    watched: tuple[Any, Any] | None = None
    clock: ClockValue | None = None


@dataclass(frozen=True, slots=True)
class EntryState:
    """Where a piece begins. ``windows``: how many have come out before. ``rows``: how many rows its key has before.
    ``tells``: whether anything comes out in it; ``before``: if so, pieces, and of each the first row that the windows
    may show here, -1 for those held at its end. ``falls``: whether the watched attribute falls between the piece before
    and this one. ``full``: whether an eviction by ``delta`` has evicted anything, and ``baseline``: the piece and
    the row that a ``delta`` trigger compares with, None where there is none. ``since``: where the clock stands, None:
    nowhere. ``signals``: how many stand before it."""

    windows: int
    rows: int
    before: tuple[tuple[int, int], ...] = ()
    falls: bool = False
    emits: bool = True
    full: bool = False
    baseline: tuple[int, int] | None = None
    clock: ClockValue | None = None
    signals: int = 0


RunThrough: TypeAlias = Callable[[int, Any], Exit]
"""Follows the chain of a start value, None: that of the first row, through a piece, where its summary does not tell."""

RETAINED = -1


def can_be_cut(plan: Plan) -> bool:
    """Whether keys may be cut into pieces: else each stays whole."""
    spec, options = plan.spec, plan.options
    if options.operator is not None or compares_with_previous_pane(plan) or options.empty == "mark":
        return False
    if options.group_by and shows_earlier_segments(plan):  # floats of groups in panes that overlap have no law
        return False
    match spec:
        case Tumbling():
            return spec.eviction is None
        case Sliding():  # marks without rows stand behind all else in a result, so one task tells them
            return spec.eviction is None and (bool(plan.key) or not options.partial)
        case Batched():
            return spec.within is not None or spec.retain is not None
    return True


def shows_earlier_segments(plan: Plan) -> bool:
    """Whether windows show rows of pieces before, so that their numbers are known only once all have been counted."""
    return not isinstance(plan.spec, Tumbling)


def exit_of(chains: DeltaTransitions | None, value: Any, follow: RunThrough, index: int) -> Exit:
    """Return how the chain that ``value`` takes through piece ``index`` ends; None: the chain of its first row.

    ``chains``: those that are told of the piece, None: none.
    """
    if chains is None:
        return follow(index, value)
    if value is None:
        return chains.fresh
    return exit_for(chains, value) or follow(index, value)


def clock_at_end(plan: Plan, piece: Sequences) -> ClockValue | None:
    """Return where the clock stands at the end of a piece, in measures; None where the window does not look at it."""
    if plan.clock is None or not needs_clock(plan.spec):
        return None
    stands: ClockValue = clock_values(combined(piece.rows.column(plan.clock)), plan.clock).max().item()
    return stands
