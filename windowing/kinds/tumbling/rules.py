"""The windows of the policies of a spec: the loop over the rows, over all of them together (semantics section 12)."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...columns.arrays import Ints
from ...language.spec import PartitionEviction
from ...rows.marks import Marks, no_marks
from ...rows.membership import ranges, with_filter
from ...rows.panes import Panes, reason
from ...rows.sequence import Sequences, one_batch, take_rows
from ..context import WindowContext
from ..evictions import Evictions, total_order
from ..rules.events import (
    NO_EVENTS,
    Events,
    RowRules,
    evictions_by_rules,
    instants_type,
    no_events,
    with_marks,
    with_ticks,
)
from ..rules.gather import Gathered
from ..rules.previous import FINE, Earlier
from ..rules.walk import Window, Windows, no_window, walk
from ..segment_summary import Passage
from .clock_policies import ClockPolicy
from .policy import TumblingPolicy

Policies: TypeAlias = Sequence[TumblingPolicy]
"""The policies of a spec, in its order: those of ``or``, or the only one."""


def ticks_type(policies: Policies, clock: pa.DataType, origin: Fraction) -> pa.DataType | None:
    """Return the type of the ticks that end windows; None where none do."""
    types = [each.times(clock, origin).instants for each in policies if isinstance(each, ClockPolicy)]
    return instants_type([each for each in types if each is not None]) if types else None


def panes_by_rules(policies: Policies, sequences: Sequences, marks: Marks, context: WindowContext) -> Panes:
    """Return the panes, including those that only the end of the data closes. ``marks`` must be in total order."""
    rules, events = _gathered(policies, sequences), _events(policies, sequences, marks, context)
    earlier = None if rules.earlier is None else rules.earlier.earlier()
    continued = None if context.restored is None else context.restored.continued
    if continued is not None and continued.value is not None:
        begin, window = np.ones(1, np.int64), copy.deepcopy(continued.value.window)  # its last row stands for it
    else:
        begin, window = _first_new(sequences, context), None
    found, _ = _walked(policies, sequences, rules, events, begin, window, earlier)
    membership, at = ranges(found.lo, found.hi), None
    if events.at is not None:
        at = events.at.take(pa.array(found.hi - 1))
    panes = Panes(found.key, found.number, membership, found.cause, found.closed_by, at=at)
    if rules.earlier is None or earlier is None or not earlier.problem.any():
        return panes
    membership = with_filter(membership, earlier.problem == FINE)
    return replace(panes, membership=membership, rejects=rules.earlier.rejects(earlier))


def _gathered(policies: Policies, sequences: Sequences) -> Gathered:
    rules = Gathered(len(sequences), any(policy.leaves_holes for policy in policies))
    for rule, policy in enumerate(policies):
        policy.tell(rule, rules, sequences)
    return rules


def _events(policies: Policies, sequences: Sequences, marks: Marks, context: WindowContext) -> Events:
    ticking = [(rule, each) for rule, each in enumerate(policies) if isinstance(each, ClockPolicy)]
    marked = [rule for rule, each in enumerate(policies) if each.needs.marks]
    if not ticking and not marked:
        return NO_EVENTS
    events = no_events(len(sequences))
    for rule, policy in ticking:
        dtype = ticks_type(policies, sequences.rows.schema.field(sequences.order[0]).type, context.origin)
        assert dtype is not None
        values, grid = policy.values_and_grid(sequences, context)
        events = with_ticks(events, rule, sequences.bounds, values, grid, context.clock, dtype)
    for rule in marked:
        events = with_marks(events, rule, sequences, marks, context.closed == "right")
    return events


def _walked(
    policies: Policies,
    sequences: Sequences,
    rules: Gathered,
    events: Events,
    begin: Ints,
    window: Window | None = None,
    earlier: Earlier | None = None,
) -> tuple[Windows, Window]:
    """Return the windows, and the one that the last row leaves open; ``window`` as in `walk`, None: none is."""
    deltas, counts, reaches = rules.delta_rules(), rules.count_rules(), rules.reach_rules()
    if window is None:
        window = no_window(deltas, counts, reaches)
    flags, begin = rules.flags(events.rule, events.cause, _reasons(policies)), np.ascontiguousarray(begin)
    return walk(sequences.bounds, begin, flags, deltas, counts, reaches, window, earlier), window


def _reasons(policies: Policies) -> npt.NDArray[np.int8]:
    return np.array([*(reason(policy.why) for policy in policies), reason("end")], np.int8)


def _first_new(sequences: Sequences, context: WindowContext) -> Ints:
    """Return the first row of each key that may be in a window: restored rows before it are only looked back at."""
    begin = sequences.bounds[:-1]
    if context.restored is None or not context.restored.row_state.shown.any():
        return begin
    total = np.concatenate([[0], np.cumsum(context.restored.row_state.shown)])
    return begin + total[sequences.bounds[1:]] - total[begin]


# Partition eviction (semantics section 4).


def tumbling_evictions(
    policies: Policies, eviction: PartitionEviction, sequences: Sequences, marks: Marks, context: WindowContext
) -> Evictions:
    """Return all partition evictions; ``sequences`` hold all rows of all keys."""
    order = total_order(sequences, context.restored)
    rules = _gathered(policies, sequences)
    deltas, counts, reaches = rules.delta_rules(), rules.count_rules(), rules.reach_rules()
    flags = rules.flags(NO_EVENTS.rule, NO_EVENTS.cause, _reasons(policies))
    said = RowRules(flags, deltas, counts, no_window(deltas, counts, reaches))
    events = None
    if any(isinstance(policy, ClockPolicy) or policy.needs.marks for policy in policies):
        rows = take_rows(sequences.rows.select(list(sequences.order)), order.row)
        as_one = replace(sequences, keys=None, bounds=np.array([0, len(order.row)]), rows=rows, rank=None,
                         pos=sequences.pos[order.row])  # fmt: skip
        events = _events(policies, as_one, marks, context)
    return evictions_by_rules(eviction, order, sequences, marks, said, reaches, events)


# Segments (docs/decisions/008): what one does to the window that is open where it begins.


class OpenWindow(NamedTuple):
    """What a segment leaves to the next: the window that is open behind it.

    ``before``: the last row of the segment, as a sequence.
    ``window``: what the loop keeps of the window; None: no window is open.
    """

    before: Sequences
    window: Window | None


def passage(policies: Policies, segment: Sequences, value: OpenWindow | None, context: WindowContext) -> Passage:
    """Run a segment through from what the segment before leaves; None: there is none before."""
    rows, begin, window = segment, 0, None
    if value is not None:
        window = copy.deepcopy(value.window)
        # Others than these ask the open window and the row itself. To put the row before in front copies all rows.
        if any(each.neighbours_decide or isinstance(each, ClockPolicy) for each in policies):
            rows, begin = _behind(value.before, segment), 1
    resumed = window is not None
    events = _events(policies, rows, no_marks(rows.rows, rows.order), context)
    found, left = _walked(policies, rows, _gathered(policies, rows), events, np.array([begin]), window)
    last = int(found.lo[-1]) - begin if len(found.lo) > resumed else -1
    row = replace(
        segment,
        bounds=np.array([0, 1]),
        rows=take_rows(segment.rows, np.array([len(segment) - 1])),
        pos=segment.pos[-1:],
        rank=None,
    )
    is_open = bool(left.held[0])
    after = OpenWindow(row, left if is_open else None)
    return Passage(len(found.lo) - resumed, last, not is_open, after, found.skipped > 0)


def windows_between(policies: Policies, pair: Sequences, context: WindowContext) -> int:
    """Return how many windows begin at the second of two neighbouring rows of a key, where these alone decide that."""
    rules = _gathered(policies, pair)
    events = _events(policies, pair, no_marks(pair.rows, pair.order), context)
    fires = [array[row] >= 0 for array, row in ((events.rule, 0), (rules.after, 0), (rules.before, 1))
             if array is not None and len(array)]  # fmt: skip
    return int(any(fires))


def _behind(before: Sequences, segment: Sequences) -> Sequences:
    rows = one_batch(pa.Table.from_batches([before.rows, segment.rows.select(before.rows.schema.names)]))
    pos = np.concatenate([before.pos, segment.pos])
    return replace(segment, bounds=np.array([0, len(pos)]), rows=rows, pos=pos, rank=None)
