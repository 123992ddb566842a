"""Windows of a table as a kind: each of its rows is a window, for the keys that it names (semantics section 17)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from ..aggregates.inputs import frozen
from ..clock.interval_grid import clock_values, now
from ..columns.arrays import Ints, Mask, Measures, combined, measures, spread
from ..columns.radix_sort import pair_order
from ..enrichment.key_index import KeyIndex, index_keys
from ..enrichment.table import compared
from ..enrichment.window_table import (
    BETWEEN_ROWS,
    OF_KEYS,
    PLACE,
    WindowTable,
    bounds_of,
    check_last,
    comparable,
)
from ..errors import DataError
from ..language.spec import TableWindows
from ..language.tokens import rows as row_count
from ..rows.marks import Marks
from ..rows.membership import Membership, Ranges, first_above, first_from, memberships_of
from ..rows.merge import merge
from ..rows.panes import AT_END, BY_TICK, Panes, reason
from ..rows.sequence import Sequences, group_codes
from ..support.jit import kernel
from .context import NEVER, RowSteps, Signals, WindowContext, steps_of_rows
from .contract import WindowKind
from .facts import Fact, KeyPane, amount_text
from .key_lifetimes import Lifetimes
from .needs import Needs

_MOST_PANES = 50_000_000
_MOST_ENTRIES = 400_000_000
SKIP, BETWEEN, WHOLE = range(3)

# Windows in the order of kernels: group by group, which are the windows of one key of the table, and in a group chain
# by chain. In a chain neither starts nor ends fall, so that the panes of a key are ranges that never fall. Nested
# windows are in different chains, and there are as few chains as windows nest deep. Windows without length have a chain
# of their own: no row is in them, though it may last from before to behind them.


@kernel
def _chains(group: Ints, end: Any) -> Ints:
    """Return the chain of each window in its group, int64 (W,). Windows are sorted by group, start and end."""
    chain = np.empty(len(group), np.int64)
    last = np.empty(len(group), end.dtype)
    count = 0
    for w in range(len(group)):
        if w == 0 or group[w] != group[w - 1]:
            count = 0
        # Invariant: the last ends of the chains so far fall from chain to chain, so the first that fits is found by
        # halves, and stays above those behind it.
        low, high = 0, count
        while low < high:
            middle = (low + high) >> 1
            if last[middle] <= end[w]:
                high = middle
            else:
                low = middle + 1
        last[low] = end[w]
        chain[w] = low
        count = max(count, low + 1)
    return chain


@kernel
def _panes(  # noqa: PLR0912 - one loop over the windows of a key, whichever of them are told
    bounds: Ints,
    values: Any,
    group: Ints,
    first: Ints,
    chains: Ints,
    begin: Any,
    stop: Any,
    empties: int,
    since: Any,
    clock: Any,
    new: Ints,
    key: Ints,
    window: Ints,
    lo: Ints,
    hi: Ints,
) -> int:
    """Fill in the key, the window and the rows of each pane, unless the arrays are empty; return how many there are.

    ``group``: of each key, -1 for none. ``first``: the bounds of groups among the chains; ``chains``: those of chains
    among the windows. ``since``, ``clock``: the clock before and behind the rows: what was complete before has come
    out. ``new``: the first new row of each key.
    """
    count = 0
    for k in range(len(bounds) - 1):
        low, high = bounds[k], bounds[k + 1]
        if group[k] < 0 or (low == high and empties != WHOLE):
            continue
        for c in range(first[group[k]], first[group[k] + 1]):
            w, end = chains[c], chains[c + 1]
            if empties != BETWEEN:
                w = first_above(stop, w, end, since)
            if empties != WHOLE:
                w = first_above(stop, w, end, values[low])
            a, b = low, low
            # Invariant: starts and ends never fall, so neither do the first and the last row of the windows of a chain.
            while w < end:
                is_behind = low == high or begin[w] > values[high - 1]
                if is_behind and (empties != WHOLE or stop[w] > clock):
                    break  # and so are all windows after it
                a = first_from(values, a, high, begin[w])
                b = first_from(values, max(a, b), high, stop[w])
                if a < b:
                    shows = stop[w] > since
                elif empties == WHOLE:
                    shows = stop[w] <= clock
                else:  # between two rows, of which a run before has not seen the second
                    shows = empties == BETWEEN and a >= new[k]
                if shows:
                    if len(key):
                        key[count], window[count], lo[count], hi[count] = k, w, a, b
                    count += 1
                w += 1
                if a == b and not shows and empties != WHOLE:
                    w = first_above(stop, w, end, values[a])
    return count


@kernel
def _cells(bounds: Ints, values: Any, group: Ints, first: Ints, edges: Any) -> Ints:
    """Return between which bounds of its group each row is, int64 (n,). ``first``: bounds of groups among ``edges``."""
    out = np.zeros(len(values), np.int64)
    for k in range(len(bounds) - 1):
        if group[k] < 0:
            continue
        begin, end = first[group[k]], first[group[k] + 1]
        at = begin
        for i in range(bounds[k], bounds[k + 1]):  # rows of a key ascend
            at = first_above(edges, at, end, values[i])
            out[i] = at
    return out


@dataclass(frozen=True, slots=True, eq=False)
class WindowsInOrder:
    """W windows in the order of kernels.

    ``index``: the keys of groups; None: there is one group, for every key.
    ``first``: int64 (G+1,), the bounds of groups among the chains.
    ``chains``: int64 (C+1,), the bounds of chains among the windows.
    ``begin``, ``stop``: as in `Bounds`, (W,).
    ``row``: int64 (W,), the row of the table.
    ``turn``: int64 (W,), the rank by end, start and place in the table: the order in which windows come out.
    ``start``, ``end``: the bounds as the result has them, by row of the table.
    ``first_edge``, ``edges``: all bounds of each group, ascending, each once, and the bounds of groups among them.
    """

    index: KeyIndex | None
    first: Ints
    chains: Ints
    begin: Measures
    stop: Measures
    row: Ints
    turn: Ints
    start: pa.Array
    end: pa.Array
    first_edge: Ints
    edges: Measures

    def groups_of(self, table: WindowTable, sequences: Sequences) -> Ints:
        """Return the group of each key, int64 (K,), -1 for a key without windows."""
        if self.index is None or sequences.keys is None:
            return np.zeros(len(sequences.bounds) - 1, np.int64)
        keys = [compared(sequences.keys.column(pair.left), pair) for pair in table.bound.keys]
        return self.index.codes(keys)


@lru_cache(maxsize=16)  # slices, segments and batches ask again
def in_order(table: WindowTable) -> WindowsInOrder:
    """Put windows in the order of kernels."""
    bound, rows = table.bound, table.rows
    start, end = (comparable(bound, rows, name) for name in (bound.request.start, bound.request.end))
    index, group = None, np.zeros(rows.num_rows, np.int64)
    if bound.keys:
        index, group = index_keys([compared(rows.column(pair.right), pair) for pair in bound.keys])
    groups = np.arange((1 if index is None else index.size) + 1)
    turn = np.empty(len(group), np.int64)
    place = combined(rows.column(PLACE)).to_numpy()
    turn[np.lexsort([place, measures(start), measures(end)])] = np.arange(len(turn))
    part = 2 * group + (measures(start) == measures(end))
    order = np.lexsort([turn, measures(start), part])
    chain = _chains(frozen(part[order]), frozen(measures(end)[order]))
    by_chain = np.lexsort([chain, part[order]])
    order, chain = order[by_chain], chain[by_chain]
    begins = np.flatnonzero(np.append(True, (np.diff(part[order]) != 0) | (np.diff(chain) != 0))[: len(order)])
    group = group[order]
    found = bounds_of(bound, rows)
    edges, of_edge = np.concatenate([found.begin[order], found.stop[order]]), np.append(group, group)
    by_edge = np.lexsort([edges, of_edge])
    edges, of_edge = edges[by_edge], of_edge[by_edge]
    own = np.flatnonzero(np.append(True, (np.diff(of_edge) != 0) | (np.diff(edges) != 0))[: len(edges)])
    return WindowsInOrder(
        index,
        frozen(np.searchsorted(group[begins], groups)),
        frozen(np.append(begins, len(order))),
        frozen(found.begin[order]),
        frozen(found.stop[order]),
        order,
        turn[order],
        start.cast(bound.type),
        end.cast(bound.type),
        frozen(np.searchsorted(of_edge[own], groups)),
        frozen(edges[own]),
    )


def check_panes(table: WindowTable, count: int) -> None:
    """Raise `DataError` for more panes than a task makes."""
    if count > _MOST_PANES:
        what = f"{table.bound.who}: {count:,} windows of keys would come out of one task, more than {_MOST_PANES:,}"
        raise DataError(what, "use a smaller --slice-size, or fewer windows")


def check_entries(count: int) -> None:
    """Raise `DataError` for more rows of panes than a task holds."""
    if count > _MOST_ENTRIES:
        what = f"windows of the table are nested so deep that a task would hold {count:,} rows of them"
        raise DataError(what, "use a smaller --slice-size, or tables with fewer nested windows")


class _Found(NamedTuple):
    """P panes: the key, the window in the order of kernels, and the rows ``[lo, hi)`` of each, int64 (P,)."""

    key: Ints
    window: Ints
    lo: Ints
    hi: Ints


_NOTHING: Final = (np.empty(0, np.int64),) * 4
EMPTIES: Final = {BETWEEN_ROWS: BETWEEN, OF_KEYS: WHOLE}


@dataclass(frozen=True, slots=True)
class TableKind(WindowKind):
    """The windows of a table. Rows are ordered by the clock, and there is one clock for all keys."""

    spec: TableWindows
    needs: Needs

    def panes(self, sequences: Sequences, signals: Signals, context: WindowContext) -> tuple[Panes, Marks]:
        """Return the panes, including those that only the end of the data brings out.

        They are key after key and chain after chain, and numbered by end, start and place in the table. What was
        complete before the rows is left out. Raises `DataError` for more than 50 million panes.
        """
        table, windows, values = self.bound(sequences, context)
        clock = moment(values, now(values, context.clock))
        empties = EMPTIES.get(table.bound.empty, SKIP)
        found = self._found(sequences, context, empties, moment(values, context.since), clock)
        chain = np.searchsorted(windows.chains, found.window, side="right")
        membership = _membership(sequences.bounds, found, chain)
        return panes_of(windows, found.key, found.window, membership, clock), signals.marks

    def bound(self, sequences: Sequences, context: WindowContext) -> tuple[WindowTable, WindowsInOrder, Measures]:
        """Return the windows, also in the order of kernels, and the clock of the rows."""
        assert context.windows is not None
        name = sequences.order[0]
        values = clock_values(combined(sequences.rows.column(name)), name)
        check_last(context.windows, values)
        windows = in_order(context.windows)
        return context.windows, windows, frozen(values.astype(windows.begin.dtype, copy=False))

    def _found(self, sequences: Sequences, context: WindowContext, empties: int, since: Any, clock: Any) -> _Found:
        """Return which windows hold which rows: those that are not complete at ``since``, for each key."""
        table, windows, values = self.bound(sequences, context)
        restored = 0 if context.restored is None else context.restored.restored_rows
        new = frozen(sequences.bounds[:-1] + restored)
        group = frozen(windows.groups_of(table, sequences))
        told = (frozen(sequences.bounds), values, group, windows.first, windows.chains, windows.begin, windows.stop)
        count = _panes(*told, empties, since, clock, new, *_NOTHING)
        check_panes(table, count)
        found = _Found(*(np.empty(count, np.int64) for _ in range(4)))
        if count:
            _panes(*told, empties, since, clock, new, *found)
        return found

    def _holds(self, sequences: Sequences, context: WindowContext, since: Any) -> Mask:
        """Return which rows are in a window that is not complete at an instant, bool (n,)."""
        found = self._found(sequences, context, SKIP, since, since)
        changes = np.bincount(found.lo, minlength=len(sequences) + 1) - np.bincount(
            found.hi, minlength=len(sequences) + 1
        )
        return np.asarray(np.cumsum(changes[:-1]) > 0)

    def row_steps(
        self, sequences: Sequences, signals: Signals, panes: Panes, parts: Lifetimes | None, context: WindowContext
    ) -> RowSteps:
        """Return when rows enter and leave: a row leaves after the last of its windows has come out."""
        _, _, values = self.bound(sequences, context)
        contents = panes.membership
        assert isinstance(contents, Ranges)
        place = sequences.bounds[panes.key] + contents.hi - contents.base
        place = np.where(panes.cause == AT_END, sequences.bounds[panes.key + 1], place)
        lives, leaving = memberships_of(contents), np.full(len(sequences), NEVER)
        last = lives.leave - 1  # of a chain
        by_number = np.argsort(panes.number[last], kind="stable")
        leaving[lives.row[by_number]] = last[by_number]
        leaving[self._holds(sequences, context, moment(values, now(values, context.clock)))] = NEVER
        steps = steps_of_rows(place, len(sequences))
        return replace(steps, stepping=self._holds(sequences, context, moment(values, None)), leaving=leaving)

    def cells(self, sequences: Sequences, context: WindowContext) -> Ints:
        table, windows, values = self.bound(sequences, context)
        group = frozen(windows.groups_of(table, sequences))
        return _cells(frozen(sequences.bounds), values, group, windows.first_edge, windows.edges)

    def retained_rows(
        self, sequences: Sequences, context: WindowContext, panes: Panes | None, key_lifetimes: Lifetimes | None
    ) -> Mask:
        """Return the rows of windows that are not complete; also the newest of each key, if empty windows follow it."""
        table, _, values = self.bound(sequences, context)
        is_retained = self._holds(sequences, context, moment(values, now(values, context.clock)))
        if table.bound.empty == BETWEEN_ROWS:
            is_retained[sequences.newest] = True
        return is_retained

    def explain(self, pane: KeyPane) -> Iterator[Fact]:
        """Yield which row of the table it is, what completed it, and the rows next to its bounds."""
        start, end, closed_by = pane.head_text("window_start"), pane.head_text("window_end"), pane.closed_by
        assert pane.panes.source is not None
        yield Fact("opened", f"the table {self.spec.name} has it: from {start} to {end}")
        text = f"the clock reached {end}, where it ends"
        if closed_by == "end":
            text = f"the end of the data brought it out: the clock had not reached {end}, where it ends"
        elif pane.context.closed == "right":
            text = f"the clock passed {end}, where it ends"
        yield Fact("closed", text, None, closed_by, {"end": end})
        if not len(pane.rows):
            yield Fact("other", "no row of this key is in it; --empty writes such windows")
            return
        name = pane.sequences.order[0]
        for row, bound, where in (
            (int(pane.rows[0]) - 1, "window_start", f"before it starts, {start}"),
            (int(pane.rows[-1]) + 1, "window_end", f"behind its end, {end}"),
        ):
            if 0 <= row < len(pane.sequences):
                apart = pane.below(combined(pane.head.column(bound))[pane.at], name, row)
                apart = -apart if bound == "window_end" else apart
                value, amount = pane.text(name, row), amount_text(pane.column(name).type, apart)
                yield pane.near(f"the nearest row {where}, is at {value}: {amount} away", row, None, apart)
        yield Fact("other", f"it holds {row_count(len(pane.rows))}")


def panes_of(windows: WindowsInOrder, key: Ints, window: Ints, membership: Membership, clock: Any) -> Panes:
    """Return P panes, numbered by end, start and place in the table. ``window``: in the order of kernels, (P,)."""
    number = np.arange(len(key)) - np.searchsorted(key, key)
    if (by_turn := pair_order(key, windows.turn[window])) is not None:
        number[by_turn] = number.copy()
    is_complete = windows.stop[window] <= clock
    row = windows.row[window]
    start, end = windows.start.take(pa.array(row)), windows.end.take(pa.array(row))
    cause = np.where(is_complete, BY_TICK, AT_END)
    closed_by = np.where(is_complete, reason("table"), reason("end")).astype(np.int8)
    return Panes(key, number, membership, cause, closed_by, start, end, at=end, source=row)


def moment(values: Measures, clock: Any) -> Any:
    """Return a time of the clock as a kernel takes it; None: before all others."""
    if values.dtype.kind == "f":
        return np.float64(-np.inf if clock is None else clock)
    return np.int64(np.iinfo(np.int64).min if clock is None else clock)


def _membership(bounds: Ints, found: _Found, chain: Ints) -> Ranges:
    """Return the rows of panes. Where a key has panes of several chains, each chain has entries of its own."""
    begins = np.flatnonzero(np.append(True, (np.diff(found.key) != 0) | (np.diff(chain) != 0))[: len(chain)])
    low = bounds[found.key]
    if not (found.key[begins][1:] == found.key[begins][:-1]).any():
        return Ranges(found.lo, found.hi, low, False)
    ends = np.append(begins[1:], len(chain))
    counts = found.hi[ends - 1] - low[begins]  # from the first row of the key on: ranks are places behind it
    entries = int(counts.sum())
    check_entries(entries)
    base = np.repeat(np.cumsum(counts) - counts, ends - begins)
    return Ranges(found.lo - low + base, found.hi - low + base, base, False, spread(low[begins], counts))


def with_table_keys(
    table: WindowTable, sequences: Sequences, pick: Callable[[pa.Table], pa.Table] = lambda keys: keys
) -> Sequences:
    """Return sequences that also have the keys of a table without rows, if windows come out for them.

    ``pick``: picks those that belong here, of ascending keys.
    """
    if table.bound.empty != OF_KEYS or sequences.keys is None:
        return sequences
    right = {pair.left: pair.right for pair in table.bound.keys}
    own = sequences.keys
    named = [combined(table.rows.column(right[name])).cast(own.field(name).type) for name in own.column_names]
    keys = pick(group_codes(named)[1].rename_columns(own.column_names))
    nothing = np.empty(0, np.int64)
    bare = replace(sequences, keys=keys, bounds=np.zeros(keys.num_rows + 1, np.int64), pos=nothing)
    return merge([sequences, replace(bare, rows=sequences.rows.slice(0, 0))])


def table_kind(spec: TableWindows) -> TableKind:
    """Return windows of a table as a kind."""
    needs = Needs(
        clock=True,
        causes="ticks",
        partitioned=spec.partitioned,
        options=frozenset({"empty", "closed", "ends"}),
        cells=True,
        rows_out_per_row=Fraction(0),
    )
    return TableKind(spec, needs)
