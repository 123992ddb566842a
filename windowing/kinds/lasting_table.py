"""Windows of a table over rows that last: a row is in every window that it overlaps (semantics sections 17 and 18).

In a chain of windows, where neither starts nor ends fall, those that a row overlaps are one run. So a row is an entry
of each chain of its key in which it is in a window, and panes are the windows of any of these runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

import numpy as np

from ..aggregates.inputs import frozen
from ..clock.interval_grid import now
from ..columns.arrays import Ints, Mask, Measures
from ..enrichment.window_table import BETWEEN_ROWS, WindowTable, spans_of
from ..language.spec import Lasting, TableWindows
from ..rows.marks import Marks
from ..rows.membership import Memberships, first_above, first_from, places_among, united
from ..rows.panes import Panes
from ..rows.sequence import Sequences
from ..support.jit import kernel
from .context import Signals, WindowContext
from .facts import Fact, KeyPane
from .key_lifetimes import Lifetimes
from .lasting import MOST_WINDOWS, PANE_COLUMNS, facts_of, spans, too_many
from .table import (
    BETWEEN,
    EMPTIES,
    SKIP,
    WHOLE,
    TableKind,
    check_entries,
    check_panes,
    in_order,
    moment,
    panes_of,
    table_kind,
)


@kernel
def _runs(  # noqa: PLR0912 - one loop over the rows of a key and a chain, with the windows between them
    bounds: Ints,
    starts: Any,
    ends: Any,
    new: Ints,
    group: Ints,
    first: Ints,
    chains: Ints,
    begin: Any,
    stop: Any,
    opens: Any,
    closes: Any,
    is_hollow: Mask,
    empties: int,
    since: Any,
    clock: Any,
    key: Ints,
    chain: Ints,
    row: Ints,
    lo: Ints,
    hi: Ints,
) -> int:
    """Fill in runs of windows ``[lo, hi)`` of a key and a chain, unless the arrays are empty; return how many.

    ``row``: the row that overlaps them, or -1: they come out without one. ``opens``, ``closes``, ``is_hollow``: as
    `spans_of`. The others are those of windows of a table over instants.
    """
    count = 0
    for k in range(len(bounds) - 1):
        low, high = bounds[k], bounds[k + 1]
        if group[k] < 0 or (low == high and empties != WHOLE):
            continue
        for c in range(first[group[k]], first[group[k] + 1]):
            at, end = chains[c], chains[c + 1]
            hollow, reached = is_hollow[at], at
            open = first_above(stop, at, end, since)
            if empties == WHOLE:
                behind = first_above(stop, open, end, clock)
                if open < behind:
                    if len(key):
                        key[count], chain[count], row[count], lo[count], hi[count] = k, c, -1, open, behind
                    count += 1
            for i in range(low, high):
                # Invariant: starts ascend, so no window before ``at`` holds this row or one behind it. All rows so far
                # are behind or in the windows before ``reached``, and before those from there on.
                at = first_above(stop, at, end, starts[i])
                a = at
                if ends[i] > starts[i] and not hollow:
                    a = first_above(closes, at, end, starts[i])
                    b = first_from(opens, a, end, ends[i])
                else:
                    b = first_above(begin, a, end, starts[i])
                if empties == BETWEEN and i > low:
                    # windows between two rows, of which a run before has not seen the second, or which it left open
                    gap = reached if i >= new[k] else max(reached, open)
                    if gap < a:
                        behind = min(a, first_above(stop, gap, end, clock))
                        if gap < behind:
                            if len(key):
                                key[count], chain[count], row[count], lo[count], hi[count] = k, c, -1, gap, behind
                            count += 1
                reached = max(reached, b)
                a = max(a, open)
                if a < b:
                    if len(key):
                        key[count], chain[count], row[count], lo[count], hi[count] = k, c, i, a, b
                    count += 1
    return count


@lru_cache(maxsize=16)
def _spans_in_order(table: WindowTable) -> tuple[Measures, Measures, Mask]:
    """Return `spans_of` windows in the order of kernels."""
    row = in_order(table).row
    opens, closes, is_hollow = (frozen(each[row]) for each in spans_of(table.bound, table.rows))
    return opens, closes, is_hollow


class _Found(NamedTuple):
    """E runs of windows, each int64 (E,): as `_runs` fills them in."""

    key: Ints
    chain: Ints
    row: Ints
    lo: Ints
    hi: Ints


_NOTHING: Final = (np.empty(0, np.int64),) * 5


@dataclass(frozen=True, slots=True)
class LastingTableKind(TableKind):
    """The windows of a table over rows that last. ``over``: until when they do."""

    over: Lasting

    def panes(self, sequences: Sequences, signals: Signals, context: WindowContext) -> tuple[Panes, Marks]:
        """Return the panes, as of instants. Raises `DataError` for a row over more than 100,000 windows, too."""
        table, windows, values = self.bound(sequences, context)
        clock = moment(values, now(values, context.clock))
        empties = EMPTIES.get(table.bound.empty, SKIP)
        found = self._run(sequences, context, empties, moment(values, context.since), clock)
        is_row = found.row >= 0
        row, last = found.row[is_row], found.hi[is_row] - 1
        if len(windows.row) > MOST_WINDOWS:
            counts = np.bincount(row, last - found.lo[is_row] + 1, len(sequences)).astype(np.int64)
            over = np.flatnonzero(counts > MOST_WINDOWS)
            if len(over):
                name = f"the row at arrival position {sequences.pos[over[0]]}"
                raise too_many(self.over, sequences.rows, int(over[0]), int(counts[over[0]]), name)

        change = (np.diff(found.key) != 0) | (np.diff(found.chain) != 0)
        bounds = np.flatnonzero(np.concatenate([[True], change, [True]])[-len(found.key) - 1 :])
        of_chains, window = united(bounds, found.lo, found.hi - 1, partial(check_panes, table))
        entries = np.append(0, np.cumsum(is_row))[bounds]
        enter, leave = places_among(entries, found.lo[is_row], last, of_chains, window)
        key = np.repeat(found.key[bounds[:-1]], np.diff(of_chains))
        membership = Memberships(row, enter, leave, entries, of_chains)
        return panes_of(windows, key, window, membership, clock), signals.marks

    def _run(self, sequences: Sequences, context: WindowContext, empties: int, since: Any, clock: Any) -> _Found:
        """Return the runs of windows that are not complete at ``since``."""
        table, windows, _ = self.bound(sequences, context)
        starts, ends = (
            frozen(each.astype(windows.begin.dtype, copy=False))
            for each in spans(self.over, sequences.rows, sequences.order[0])
        )
        restored = 0 if context.restored is None else context.restored.restored_rows
        told = (frozen(sequences.bounds), starts, ends, frozen(sequences.bounds[:-1] + restored),
                frozen(windows.groups_of(table, sequences)), windows.first, windows.chains, windows.begin, windows.stop,
                *_spans_in_order(table), empties, since, clock)  # fmt: skip
        count = _runs(*told, *_NOTHING)
        check_entries(count)
        found = _Found(*(np.empty(count, np.int64) for _ in range(5)))
        if count:
            _runs(*told, *found)
        return found

    def retained_rows(
        self, sequences: Sequences, context: WindowContext, panes: Panes | None, key_lifetimes: Lifetimes | None
    ) -> Mask:
        """Return the rows of windows that are not complete, and those that last on: later tables have windows.

        If empty windows follow a row between rows, also what shows that no row is in them: the newest row of each key,
        and the one that lasts longest.
        """
        table, _, values = self.bound(sequences, context)
        clock = moment(values, now(values, context.clock))
        starts, ends = spans(self.over, sequences.rows, sequences.order[0])
        kept: Mask = ends > clock
        found = self._run(sequences, context, SKIP, clock, clock)
        kept[found.row] = True
        if table.bound.empty == BETWEEN_ROWS:
            key = np.repeat(np.arange(len(sequences.bounds) - 1), np.diff(sequences.bounds))
            # closed on the right, a window may end at the instant where the clock is, and be between rows before
            for among in (np.arange(len(key)), np.flatnonzero(starts < clock)):
                for order in (np.arange(len(among)), np.lexsort([ends[among], key[among]])):
                    rows = among[order]
                    kept[rows[np.append(key[rows][1:] != key[rows][:-1], True)[: len(rows)]]] = True
        return kept

    def explain(self, pane: KeyPane) -> Iterator[Fact]:
        """Yield which row of the table it is, and what is to be told of rows that last."""
        start, end = pane.head_text("window_start"), pane.head_text("window_end")
        yield Fact("opened", f"the table {self.spec.name} has it: from {start} to {end}")
        yield from facts_of(self.over, pane)


def lasting_table_kind(spec: Lasting) -> LastingTableKind:
    """Return windows of a table over rows that last as a kind."""
    assert isinstance(spec.window, TableWindows)
    needs = table_kind(spec.window).needs
    own = replace(
        needs,
        attributes=(*needs.attributes, spec.ends),
        required=(*needs.required, spec.ends),
        ends=spec.ends,
        pane_columns=PANE_COLUMNS,
        cells=False,
        go_on=False,
    )
    return LastingTableKind(spec.window, own, spec)
