"""Tumbling windows as a kind: each row of a key is in one window, and a policy says where windows end."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...clock.interval_grid import clock_values
from ...columns.arrays import Ints, Mask, combined, measures
from ...language.spec import From, Tumbling, While
from ...rows.marks import Marks, concatenate, epochs, no_marks
from ...rows.membership import Ranges, memberships_of, ranges, shown, sizes, with_filter
from ...rows.panes import AT_END, Panes, reason
from ...rows.sequence import Sequences, one_batch, take_rows
from ...state.window_state import RestoredState
from ..context import NEVER, RowSteps, Signals, WindowContext, after_rows, steps_of_rows
from ..contract import WindowKind
from ..evictions import Evictions, total_order
from ..facts import Fact, KeyPane
from ..key_lifetimes import Lifetimes, lifetimes, merge_tumbling
from ..needs import Causes, Explain, Needs, PaneTimes, joined
from ..rules.events import (
    NO_EVENTS,
    Events,
    evictions_by_rules,
    instants_type,
    no_events,
    with_marks,
    with_ticks,
)
from ..rules.gather import Gathered, Said
from ..rules.programs import Programs, smoothed_of
from ..rules.walk import Window, Windows, walk
from ..segment_summary import EntryState, Passage, SegmentSummary, WindowPosition
from .clock_policies import CLOCK_POLICIES, ClockPolicy
from .policy import TumblingPolicy
from .row_policies import ROW_POLICIES

# The tumbling policies by the type of their value in the language: the one place that knows them all.


_POLICIES: Final = {**ROW_POLICIES, **CLOCK_POLICIES}


def clock_policies() -> list[str]:
    """Return the words of the policies that the clock ends."""
    return [value.__name__.lower() for value in CLOCK_POLICIES]


def _has_mark_between(before: SegmentSummary, segment: SegmentSummary) -> bool:
    return segment.epochs[0] > before.epochs[1]


class OpenWindow(NamedTuple):
    """What a segment leaves to the next: the window that is open behind it.

    ``before``: the last row of the segment, as a sequence.
    ``window``: what the loop keeps of the window; None: no window is open.
    """

    before: Sequences
    window: Window | None


@dataclass(frozen=True, slots=True)
class TumblingKind(WindowKind):
    """A tumbling window. ``policies``: those of its spec, in its order, whose needs together are ``needs``."""

    spec: Tumbling
    policies: tuple[TumblingPolicy, ...]
    needs: Needs

    @property
    def grid(self) -> ClockPolicy | None:
        """The policy, where it is the only one and the clock ends its windows."""
        only = self.policies[0] if len(self.policies) == 1 else None
        return only if isinstance(only, ClockPolicy) else None

    def check_attribute(self, name: str, dtype: pa.DataType, explain: Explain) -> None:
        for policy in self.policies:
            if name in policy.needs.attributes:
                policy.check(name, dtype, explain)

    def check_types(self, schema: pa.Schema) -> None:
        for policy in self.policies:
            policy.check_types(schema)

    def times(self, clock: pa.DataType, origin: Fraction) -> PaneTimes:
        if self.grid is not None:
            return self.grid.times(clock, origin)
        types = [each.times(clock, origin).instants for each in self.policies if isinstance(each, ClockPolicy)]
        return PaneTimes(instants=instants_type([each for each in types if each is not None]) if types else None)

    def panes(self, sequences: Sequences, signals: Signals, context: WindowContext) -> tuple[Panes, Marks]:
        """Return the panes; with partition eviction one lifetime of a key at a time (semantics section 4)."""
        marks = signals.marks
        if self.needs.eviction is None:
            return self._panes(sequences, marks, context), marks
        assert signals.evictions is not None
        parts = lifetimes(signals.evictions, sequences)
        panes = self._panes(replace(sequences, bounds=parts.bounds), marks, context)
        panes = merge_tumbling(panes, parts, sequences, len(marks), context.emit_evicted)
        return panes, concatenate(marks, parts.evictions.causes)

    def _panes(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Panes:
        """Return the panes; ``marks`` must be in total order."""
        if self.grid is not None:
            return self.grid.panes(sequences, context)
        rules, events = self._gathered(sequences, context), self._events(sequences, marks, context)
        restored, begin, window = context.restored, sequences.bounds[:-1], None
        if restored is not None and restored.continued is not None and restored.continued.value is not None:
            # the only row before is the last of an open window, and stands for it
            begin, window = np.ones(1, np.int64), copy.deepcopy(restored.continued.value.window)
        elif restored is not None and restored.row_state.shown.any():  # these are only looked back at
            total = np.concatenate([[0], np.cumsum(restored.row_state.shown)])
            begin = begin + total[sequences.bounds[1:]] - total[begin]
        found, said = self._walked(sequences, rules, events, begin, window)
        membership, at = ranges(found.lo, found.hi), None
        if events.at is not None:
            at = events.at.take(pa.array(found.hi - 1))
        left = smoothed_of(said.earlier)
        panes = Panes(found.key, found.number, membership, found.cause, found.closed_by, at=at, left=left)
        rejects = rules.programs.rejects(said.earlier, said.conditions)
        if not len(rejects):
            return panes
        is_fine = np.ones(len(sequences), np.bool_)
        is_fine[rejects.row] = False
        return replace(panes, membership=with_filter(membership, is_fine), rejects=rejects)

    # --- the loop over the rows, over all policies together (semantics section 12)

    def _gathered(self, sequences: Sequences, context: WindowContext) -> Gathered:
        smoothed = None
        if self.needs.baseline is not None and context.restored is not None:
            smoothed = context.restored.key_state.baseline
        has_holes = any(policy.leaves_holes(sequences) for policy in self.policies)
        rules = Gathered(len(sequences), Programs(sequences, smoothed), has_holes)
        for rule, policy in enumerate(self.policies):
            policy.tell(rule, rules, sequences)
        return rules

    def _events(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Events:
        ticking = [(rule, each) for rule, each in enumerate(self.policies) if isinstance(each, ClockPolicy)]
        marked = [rule for rule, each in enumerate(self.policies) if each.needs.marks]
        if not ticking and not marked:
            return NO_EVENTS
        events = no_events(len(sequences))
        for rule, policy in ticking:
            dtype = self.times(sequences.rows.schema.field(sequences.order[0]).type, context.origin).instants
            assert dtype is not None
            values, grid = policy.values_and_grid(sequences, context)
            events = with_ticks(events, rule, sequences.bounds, values, grid, context.clock, dtype)
        for rule in marked:
            events = with_marks(events, rule, sequences, marks, context.closed == "right")
        return events

    @property
    def _reasons(self) -> npt.NDArray[np.int8]:
        return np.array([*(reason(policy.why) for policy in self.policies), reason("end")], np.int8)

    def _walked(
        self,
        sequences: Sequences,
        rules: Gathered,
        events: Events,
        begin: Ints,
        window: Window | None = None,
    ) -> tuple[Windows, Said]:
        """Return the windows, and what was said, with the one that the last row leaves open.

        ``window``: as in `walk`; None: none is.
        """
        said = rules.said(events.rule, events.cause, self._reasons)
        if window is not None:
            said = said._replace(rules=said.rules._replace(window=window))
        return walk(sequences.bounds, np.ascontiguousarray(begin), *said), said

    def row_steps(
        self, sequences: Sequences, signals: Signals, panes: Panes, parts: Lifetimes | None, context: WindowContext
    ) -> RowSteps:
        steps, evicted_at = steps_of_rows(after_rows(panes), len(sequences)), None
        skips = self.needs.window_before or any(policy.opens for policy in self.policies)
        skips |= panes.rejects is not None
        is_ticking = parts is not None and bool(parts.evictions.by_tick.any())
        if skips or is_ticking:
            # also those that the end of the data or an eviction does not emit
            of_lives = sequences if parts is None else replace(sequences, bounds=parts.bounds)
            every = self._panes(of_lives, signals.marks, context)
            if skips:
                steps = replace(steps, stepping=shown(every.membership, len(sequences)))
            if parts is not None and is_ticking and every.at is not None:
                # the end of the window that was open at each: its tick evicts the key and would end the window
                last = np.searchsorted(every.key, np.flatnonzero(parts.eviction >= 0), side="right") - 1
                evicted_at = every.at.take(pa.array(last))
        leaving, lives = np.full(len(sequences), NEVER), memberships_of(panes.membership)
        leaving[lives.row] = np.where(panes.cause[lives.enter] == AT_END, NEVER, lives.enter)
        return replace(steps, leaving=leaving, evicted_at=evicted_at)

    def evictions(self, sequences: Sequences, marks: Marks, context: WindowContext) -> Evictions:
        assert self.needs.eviction is not None
        order = total_order(sequences, context.restored)
        said = self._gathered(sequences, context).said(NO_EVENTS.rule, NO_EVENTS.cause, self._reasons)
        events = NO_EVENTS
        if any(isinstance(policy, ClockPolicy) or policy.needs.marks for policy in self.policies):
            rows = take_rows(sequences.rows.select(list(sequences.order)), order.row)
            as_one = replace(sequences, keys=None, bounds=np.array([0, len(order.row)]), rows=rows, rank=None,
                             pos=sequences.pos[order.row])  # fmt: skip
            events = self._events(as_one, marks, context)
        return evictions_by_rules(self.needs.eviction, order, sequences, marks, said, events)

    def empty_ticks(self, sequences: Sequences, context: WindowContext) -> pa.Array:
        assert self.grid is not None
        return self.grid.empty_ticks(sequences, context)

    def cells(self, sequences: Sequences, context: WindowContext) -> Ints:
        assert self.grid is not None
        return self.grid.cells(sequences, context)

    def retained_rows(
        self, sequences: Sequences, context: WindowContext, panes: Panes | None, key_lifetimes: Lifetimes | None
    ) -> Mask:
        """Return the rows of open windows; with ``--empty row`` also the newest row of each key."""
        assert panes is not None
        is_retained = shown(panes.take(np.flatnonzero(panes.cause == AT_END)).membership, len(sequences))
        if context.empty == "row":  # decides how many empty windows lie between it and the next row
            is_retained[sequences.newest] = True
        if self.needs.window_before:
            is_retained |= self._window_before(sequences, panes, context.restored)
        return is_retained

    def settled_rows(self, sequences: Sequences, panes: Panes | None, retained: Mask) -> Mask:
        """Return the rows that are kept because later rows look back at them: no open window holds them."""
        if not self.needs.window_before or panes is None:
            return np.zeros(len(sequences), np.bool_)
        return retained & ~shown(panes.take(np.flatnonzero(panes.cause == AT_END)).membership, len(sequences))

    def _window_before(self, sequences: Sequences, panes: Panes, restored: RestoredState | None) -> Mask:
        """Return the rows of the last window of each key that has ended: the next window asks for them (section 13).

        Where none has ended here these are the rows that a state has kept.
        """
        ended = np.flatnonzero(panes.cause != AT_END)
        is_last = np.append(panes.key[ended][1:] != panes.key[ended][:-1], True)[: len(ended)]
        out = shown(panes.take(ended[is_last]).membership, len(sequences))
        if restored is None:
            return out
        has_none = np.ones(len(sequences.bounds) - 1, np.bool_)
        has_none[panes.key[ended]] = False
        return out | (restored.row_state.shown & np.repeat(has_none, np.diff(sequences.bounds)))

    def explain(self, pane: KeyPane) -> Iterator[Fact]:
        if not len(pane.rows):
            yield Fact("other", "no row of this key is in it; --empty writes such windows")
            return
        first, ending = int(pane.rows[0]), self._closing(pane)
        openers = [each.value for each in self.policies if each.opens]
        skips = any(isinstance(each, While | From) for each in openers)
        before = next((each for each in self.policies if each.why == pane.before), None)
        why = f"the window before had ended ({pane.before})"
        if pane.before is None:
            why = "no window of its key came before"
        elif isinstance(before, ClockPolicy):
            why = f"it is the first row after the end of the window before ({pane.before})"
        elif before is not None and not before.ends_with and not skips:
            why = f"the same row ended the window before ({pane.before})"
        why += "".join(f", and {each.condition} is true for it" for each in openers)
        yield Fact("opened", f"{pane.name(first)} opened it: {why}", pane.pos(first), pane.before)
        yield self._closed(pane, ending)
        for policy in self.policies:
            yield from policy.near(pane, policy is ending)

    def _closing(self, pane: KeyPane) -> TumblingPolicy | None:
        """Return the policy that ended a window; None: none did.

        Of several with its close reason, such as two of ``delta``, it is the first that ends it at this row.
        """
        alike, row = [each for each in self.policies if each.why == pane.closed_by], pane.cause_row
        if len(alike) < 2 or row is None or isinstance(alike[0], ClockPolicy):
            return next(iter(alike), None)
        return next((each for each in alike if each.explain(pane, row).is_shown), alike[0])

    def _closed(self, pane: KeyPane, ending: TumblingPolicy | None) -> Fact:
        reason, row = pane.closed_by, pane.cause_row
        if reason == "end":
            return Fact("closed", "the end of the data brought it out: it was still open", None, reason)
        if reason == "evicted":
            return Fact("closed", "its key was evicted, and its rows with it", None, reason)
        if isinstance(ending, ClockPolicy):
            end = pane.head_text("_at" if "_at" in pane.head.column_names else "window_end")
            text = f"the clock reached {end}, where it ends; its rows are from {pane.head_text('window_start')}"
            if row is not None:
                text = f"{pane.name(row)} is behind the end of its interval ({reason})"
            return Fact("closed", text, None if row is None else pane.pos(row), reason, {"end": end})
        if row is None:
            at = int(pane.panes.cause[pane.at]) - len(pane.sequences)
            mark = f"arrival position {int(pane.marks.pos[at])}"
            if names := pane.marks.rows.schema.names:
                mark = f"the row at {pane.text_at(pane.marks.rows, names[0], at)}"
            return Fact("closed", f"a mark behind {mark} ended it", None, reason)
        assert ending is not None
        told = ending.explain(pane, row)
        return Fact("closed", told.text, pane.pos(row), reason, told.numbers)

    # --- segments of a key

    def summarise(self, segment: Sequences, signals: Signals, context: WindowContext) -> SegmentSummary:
        """Summarise a segment by itself; it must not be empty."""
        window = None
        if not self.needs.run_through:
            panes = self._panes(segment, signals.marks, context)
            assert isinstance(panes.membership, Ranges)
            is_closed = int(panes.cause[-1]) == len(segment) - 1
            window = Passage(len(panes) - 1, int(panes.membership.lo[-1]), is_closed)
        first, last = epochs(segment, signals.marks)[[0, -1]].tolist() if self.needs.marks else (0, 0)
        edges = self._deciding(segment).rows.take(pa.array([0, len(segment) - 1]))
        clock = None
        if self.needs.clock:
            clock = clock_values(combined(segment.rows.column(segment.order[0])), segment.order[0]).max().item()
        return SegmentSummary(window, (first, last), edges, clock)

    def pass_through(self, segment: Sequences, value: OpenWindow | None, context: WindowContext) -> Passage:
        """Run a segment through from what the one before leaves, `Passage.value`; None: there is none before."""
        segment = self._deciding(segment)
        rows, begin, window = segment, 0, None
        if value is not None:
            window = copy.deepcopy(value.window)
            # Others than these ask the open window and the row itself. To put the row before in front copies all rows.
            if any(each.neighbours_decide or isinstance(each, ClockPolicy) for each in self.policies):
                rows, begin = _behind(value.before, segment), 1
        resumed = window is not None
        events = self._events(rows, no_marks(rows.rows, rows.order), context)
        found, said = self._walked(rows, self._gathered(rows, context), events, np.array([begin]), window)
        left = said.rules.window
        last = int(found.lo[-1]) - begin if len(found.lo) > resumed else -1
        last_row = replace(
            segment,
            bounds=np.array([0, 1]),
            rows=take_rows(segment.rows, np.array([len(segment) - 1])),
            pos=segment.pos[-1:],
            rank=None,
        )
        is_open = bool(left.held[0])
        after = OpenWindow(last_row, left if is_open else None)
        return Passage(len(found.lo) - resumed, last, not is_open, after, found.skipped > 0)

    def _deciding(self, segment: Sequences) -> Sequences:
        """Return a segment with the columns that decide where windows end."""
        names = dict.fromkeys([*self.needs.attributes, *segment.order])
        return replace(segment, rows=segment.rows.select(list(names)))

    def entry_states(
        self, segments: Sequence[SegmentSummary], passages: Sequence[Passage], context: WindowContext
    ) -> list[EntryState]:
        """Compose the summaries of the segments of one key, in order, into the entry state of each.

        ``passages``: of each, where segments are run through; else none.
        """
        position, entries = WindowPosition(), []
        for i, segment in enumerate(segments):
            after = self.advance(position, i, segment, passages[i] if passages else None, context)
            ends_later = i + 1 < len(segments) and not _has_mark_between(segment, segments[i + 1])
            entries.append(self.entry_state(position, i, segment, after, not ends_later, context))
            position = after
        return entries

    def entry_state(
        self,
        position: WindowPosition,
        index: int,
        segment: SegmentSummary,
        after: WindowPosition,
        is_end: bool,
        context: WindowContext,
    ) -> EntryState:
        """Return the entry state of segment ``index``, before which the window is at ``position``.

        ``after``: the position after it. ``is_end``: whether the window that is open after it comes out there, because
        no segment follows or a mark does.
        """
        last, watched = position.last, None if context.in_event_order else self.needs.watched
        is_closed = position.through.closed or (last is not None and _has_mark_between(last, segment))
        windows = position.starts if is_closed else position.windows
        emits = is_end or after.windows > windows or after.through.skips
        open_at = position.open_at if emits and not is_closed else None
        before = () if open_at is None else (open_at, *((j, 0) for j in range(open_at[0] + 1, index)))
        falls = False
        if watched is not None and last is not None and last.edges is not None and segment.edges is not None:
            old, new = last.edges.column(watched), segment.edges.column(watched)
            falls = bool(measures(combined(new))[0] < measures(combined(old))[1])
        clock = None if last is None else last.clock
        return EntryState(windows, before, falls, emits, clock, position.through.value)

    def advance(
        self,
        position: WindowPosition,
        index: int,
        segment: SegmentSummary,
        through: Passage | None,
        context: WindowContext,
    ) -> WindowPosition:
        """Return the position of the window after segment ``index``.

        ``through``: what it does to the window that is open before it; None where its summary and its edges say that.
        """
        if through is None:
            through = self._entered(position.last, segment, context)
        return WindowPosition(
            position.starts + through.starts,
            (index, through.last) if through.last >= 0 else position.open_at,
            through,
            segment,
        )

    def _entered(self, before: SegmentSummary | None, segment: SegmentSummary, context: WindowContext) -> Passage:
        window = segment.window
        assert window is not None
        begun = 1
        if before is not None:
            assert before.edges is not None
            assert segment.edges is not None
            rows = one_batch(pa.Table.from_batches([before.edges.slice(1, 1), segment.edges.slice(0, 1)]))
            pair = Sequences(None, np.array([0, 2]), rows, np.arange(2), context.sort)
            if self.grid is not None:
                begun = self.grid.windows_between(pair, context)
            else:
                rules, events = self._gathered(pair, context), self._events(pair, no_marks(rows, pair.order), context)
                fires = [array[row] >= 0 for array, row in ((events.rule, 0), (rules.after, 0), (rules.before, 1))
                         if array is not None and len(array)]  # fmt: skip
                begun = int(any(fires) or _has_mark_between(before, segment))
        if begun:
            return replace(window, starts=window.starts + begun)
        return replace(window, last=window.last if window.starts else -1)

    def most_rows(self, sample: Sequences, share: float, context: WindowContext) -> int | None:
        """Return about how many rows a window has at most; None where nothing is known.

        ``sample``: some of the rows, with no other columns than key and order; each is one of ``share`` rows.
        """
        known = [self._most_rows(policy, sample, share, context) for policy in self.policies]
        return min((rows for rows in known if rows is not None), default=None)

    def _most_rows(self, policy: TumblingPolicy, sample: Sequences, share: float, context: WindowContext) -> int | None:
        if not policy.is_known_by_sample or not set(policy.needs.attributes) <= set(sample.rows.schema.names):
            return policy.most_rows()
        alone = replace(self, policies=(policy,))
        panes = alone._panes(sample, no_marks(sample.rows, sample.order), replace(context, empty="skip"))
        return int(sizes(panes.membership).max(initial=0) * share)


def _behind(before: Sequences, segment: Sequences) -> Sequences:
    rows = one_batch(pa.Table.from_batches([before.rows, segment.rows.select(before.rows.schema.names)]))
    pos = np.concatenate([before.pos, segment.pos])
    return replace(segment, bounds=np.array([0, len(pos)]), rows=rows, pos=pos, rank=None)


def tumbling_kind(spec: Tumbling) -> TumblingKind:
    """Return a tumbling window as a kind."""
    policies, eviction = tuple(_POLICIES[type(each)](each) for each in spec.policy.alternatives), spec.eviction
    needs, is_one = joined([policy.needs for policy in policies]), len(policies) == 1
    is_grid = is_one and needs.clock
    run_through = not all(policy.neighbours_decide for policy in policies)
    # Marks end windows whatever is open; but a segment that is run through knows none, and none before its own window.
    can_cut = needs.can_cut and eviction is None and not (needs.window_before or (needs.marks and run_through))
    options = needs.options if is_one else needs.options - {"empty", "ends"}  # of several policies none has bounds
    options = options if eviction is None else options - {"ends"}
    causes: Causes = "rows"
    if needs.clock:  # partition eviction, and rows beside the clock, are causes as well
        causes = "ticks" if eviction is None and is_grid else "both"
    if eviction is not None:
        options |= {"emit evicted"}
    needs = replace(
        needs,
        operands=spec.policy.operands,
        watched=next((name for each in policies for name in each.needs.measured if each.needs.can_cut), None),
        clock=needs.clock or (eviction is not None and eviction.kind == "partitionAge"),
        zones=spec.policy.zones,
        causes=causes,
        partitioned=spec.partitioned,
        eviction=eviction,
        options=options,
        overlaps=False,
        cells=is_grid and eviction is None,
        can_cut=can_cut,
        run_through=run_through,
    )
    return TumblingKind(spec, policies, needs)
