"""Result rows of aggregates: one for each pane, or one for each group of a pane."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..aggregates.inputs import PaneFailed, PaneOverflow, Spans
from ..aggregates.table import Bound, Results, compute, in_two_phases, is_mergeable, split
from ..columns.arrays import Ints, combined, spread
from ..columns.radix_sort import ascend, pair_order
from ..errors import DataError
from ..planning.plan import Plan
from ..planning.result_schema import MARK
from ..rows.membership import (
    Membership,
    Memberships,
    Ranges,
    as_simplest,
    batches,
    different_ranges,
    memberships_of,
    part,
    take,
)
from ..rows.panes import Panes
from ..rows.sequence import Sequences, group_codes, key_text, take_rows
from ..support.jit import kernel
from .result_columns import constant

# Groups inside panes (semantics section 4, ``groupBy``): each pane is divided into one pane for each group it shows.
#
# The rows of one group of a key are a sequence of their own, and the panes of a group are those that show one of its
# rows. So groups cost as much as their rows and their output, and every aggregate treats them like whole panes.
#
# Where panes overlap, the association of the floats of a group depends on which of its rows are present, from its
# first row on. One run over the whole input gives the same bits however it is cut; incremental runs may differ from
# it in the last bit of a float sum, mean, variance or product by group. All other aggregates are exact, and so are
# the groups of panes that do not overlap.


def grouped(contents: Membership, codes: Ints, touched: bool) -> tuple[Ints, Ints, Membership]:
    """Divide panes by the group ``codes`` of all rows, int64 (n,).

    ``touched``: whether a pane has only the groups of rows that it is the first to show or the first to show no more,
    including groups that are now empty (semantics section 6); else it has every group of which it shows a row. Returns
    the pane of the window that each pane of a group belongs to, int64 (Q,); the code of its group, int64 (Q,); and the
    panes of groups.
    """
    if isinstance(contents, Ranges) and contents.disjoint:
        return _apart(contents, codes)
    lives = memberships_of(contents)
    sequence = np.repeat(np.arange(len(lives.first_entry) - 1), np.diff(lives.first_entry))
    group = codes[lives.row]
    order = np.lexsort([group, sequence])
    starts = _starts(sequence[order], group[order])
    enter, leave, bounds = lives.enter[order], lives.leave[order], np.append(starts, len(order))
    if touched:
        ends = lives.first_pane[1:][sequence[order][starts]]
        pane, first_pane = _touched(enter, leave, bounds, ends)
    else:
        pane, first_pane = _shown(enter, leave, bounds)
    own_enter, own_leave = _renumbered(enter, leave, bounds, pane, first_pane)
    of_group = np.repeat(group[order][starts], np.diff(first_pane))
    return pane, of_group, Memberships(lives.row[order], own_enter, own_leave, bounds, first_pane)


def _apart(contents: Ranges, codes: Ints) -> tuple[Ints, Ints, Membership]:
    """Divide panes that share no row: their rows only need to be sorted by group."""
    counts = contents.hi - contents.lo
    entries = spread(contents.lo, counts)
    row = entries if contents.row is None else contents.row[entries]
    pane = np.repeat(np.arange(len(contents)), counts)
    order = np.lexsort([codes[row], pane])
    row, pane = row[order], pane[order]
    starts = _starts(pane, codes[row])
    return pane[starts], codes[row][starts], Ranges(starts, np.append(starts, len(row))[1:], starts, True, row)


def _starts(major: Ints, minor: Ints) -> Ints:
    new = np.ones(len(major), np.bool_)
    new[1:] = (major[1:] != major[:-1]) | (minor[1:] != minor[:-1])
    return np.flatnonzero(new)


def _shown(enter: Ints, leave: Ints, bounds: Ints) -> tuple[Ints, Ints]:
    """Return the panes that some entry of each group shows, ascending and each once, and the bounds of the groups."""
    group = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    by_enter = np.lexsort([enter, group])
    begin, end = enter[by_enter], leave[by_enter]
    # ``reached``: the entries of a group so far show no pane from it on. Behind the panes of all groups before, one
    # running maximum serves all groups.
    panes = int(end.max(initial=0)) + 1
    reached = np.maximum.accumulate(end + group * panes) - group * panes
    before = np.append(0, reached[:-1])[: len(reached)]
    before[bounds[:-1]] = 0
    begin = np.maximum(begin, before)
    counts = np.maximum(0, end - begin)
    return spread(begin, counts), np.append(0, np.cumsum(counts))[bounds]


def _touched(enter: Ints, leave: Ints, bounds: Ints, ends: Ints) -> tuple[Ints, Ints]:
    group = np.repeat(np.arange(len(ends)), np.diff(bounds))
    goes = leave < ends[group]
    groups, panes = np.concatenate([group, group[goes]]), np.concatenate([enter, leave[goes]])
    order = np.lexsort([panes, groups])
    groups, panes = groups[order], panes[order]
    kept = _starts(groups, panes)
    first_pane = np.concatenate([[0], np.cumsum(np.bincount(groups[kept], minlength=len(ends)))]).astype(np.int64)
    return panes[kept], first_pane


@kernel
def _renumbered(enter: Ints, leave: Ints, bounds: Ints, pane: Ints, first_pane: Ints) -> tuple[Ints, Ints]:
    own_enter = np.empty(len(enter), np.int64)
    own_leave = np.empty(len(leave), np.int64)
    for g in range(len(bounds) - 1):
        # the panes of a group ascend, so the place of a pane among them is its number there
        low, high = first_pane[g], first_pane[g + 1]
        for i in range(bounds[g], bounds[g + 1]):
            own_enter[i] = low + np.searchsorted(pane[low:high], enter[i])
            own_leave[i] = low + np.searchsorted(pane[low:high], leave[i])
    return own_enter, own_leave


def aggregate_rows(plan: Plan, sequences: Sequences, panes: Panes, pane_columns: pa.Table) -> Iterator[pa.Table]:
    """Yield one row a pane and group: ``pane_columns`` of its pane, groups, aggregates and marks."""
    pane, contents, head = np.arange(len(panes)), panes.membership, pane_columns
    if plan.options.group_by:
        codes, values = group_codes([combined(sequences.rows.column(name)) for name in plan.options.group_by])
        changes = plan.kind.needs.changes_of_groups
        pane, group, contents = grouped(panes.membership, codes.astype(np.int64), changes)
        head = pane_columns.take(pa.array(pane))
        for name, column in zip(plan.options.group_by, values.columns, strict=True):
            head = head.append_column(name, combined(column).take(pa.array(group)))
        order, rank = _order_of_groups(panes, pane, group), None
        contents = as_simplest(contents)
    else:
        order, contents = pair_order(panes.key, panes.number), as_simplest(contents)
        rank = _rank(plan, sequences, contents)

    name_of = _names(sequences, panes)
    known = {} if panes.values is None else dict(zip(panes.values.column_names, panes.values.columns, strict=True))
    long = [bound for bound in plan.aggregates if bound.is_long and bound.name not in known]
    short = [bound for bound in plan.aggregates if not bound.is_long and bound.name not in known]
    shown, of_pane, code = _without_repeats(contents, pane) if short else (contents, pane, None)
    results: Results = {}
    for bound in short:
        column = _aggregate(plan, bound, sequences.rows, shown, of_pane, name_of, rank, results)
        column = column if code is None else pc.take(column, code, boundscheck=False)
        head = head.append_column(bound.name, column)
    for name, values in known.items():
        head = head.append_column(name, values)
    if not plan.options.plain:
        head = head.append_column(MARK, _last(pane, order))
    if not long:
        yield head if order is None else head.take(pa.array(order))
        return

    def tables() -> Iterator[pa.Table]:
        for first, stop in batches(contents):
            table, shown = head.slice(first, stop - first), part(contents, first, stop)
            for bound in long:
                column = _aggregate(plan, bound, sequences.rows, shown, pane[first:stop], name_of)
                table = table.append_column(bound.name, column)
            yield table

    if order is None:
        yield from tables()
    elif len(order):  # empty windows have no groups
        yield pa.concat_tables(tables()).take(pa.array(order))


def _names(sequences: Sequences, panes: Panes) -> Callable[[int], str]:
    """Return what messages call each pane."""
    return lambda number: f"window {panes.number[number]}{key_text(sequences, int(panes.key[number]))}"


def values_of_panes(
    plan: Plan, sequences: Sequences, panes: Panes, bound: Bound, spans: Spans | None, found: Results
) -> pa.Array:
    """Return one aggregate of all panes, without groups. ``spans``, ``found``: as `compute` takes them."""
    contents, pane, name_of = as_simplest(panes.membership), np.arange(len(panes)), _names(sequences, panes)
    if bound.holds_on or not bound.is_long:
        rank = _rank(plan, sequences, contents)
        return _aggregate(plan, bound, sequences.rows, contents, pane, name_of, rank, found, spans)
    parts = [
        _aggregate(plan, bound, sequences.rows, part(contents, first, stop), pane[first:stop], name_of)
        for first, stop in batches(contents)
    ]
    return combined(pa.chunked_array(parts, bound.type))


def _without_repeats(contents: Membership, pane: Ints) -> tuple[Membership, Ints, pa.Array | None]:
    """Return contents of result rows, once where neighbouring result rows show the same rows, unless most differ.

    ``pane``: int64 (Q,), the pane of each result row. Also returns the pane of each, and int32 (Q,), for each result
    row its place among them; None: they are as they were. Windows of a hop that is shorter than the pauses between
    rows mostly show the rows of the window before.
    """
    if isinstance(contents, Ranges) and not contents.disjoint:
        code, first = different_ranges(contents.lo, contents.hi, contents.base)
        if 2 * len(first) <= len(code):
            return take(contents, first), pane[first], pa.array(code)
    return contents, pane, None


def _rank(plan: Plan, sequences: Sequences, contents: Membership) -> Ints | None:
    if sequences.rank is not None:
        return sequences.rank
    begin_anew = plan.kind.needs.eviction is not None
    if isinstance(contents, Ranges) and (contents.disjoint or (contents.row is None and not begin_anew)):
        return None
    return np.arange(len(sequences)) - np.repeat(sequences.bounds[:-1], np.diff(sequences.bounds))


def _order_of_groups(panes: Panes, pane: Ints, group: Ints) -> Ints | None:
    """Return the permutation of rows by (key, number, group), or None where they are in that order."""
    key, number = panes.key[pane], panes.number[pane]
    is_sorted = ascend(pane, group) and ascend(panes.key, panes.number)
    return None if is_sorted else np.lexsort([group, number, key])


def _last(pane: Ints, order: Ints | None) -> pa.Array:
    """Return the ``_mark`` column of rows: set for the last row of each pane in the order of the result."""
    if order is None and (len(pane) < 2 or bool((pane[1:] != pane[:-1]).all())):
        return constant("window", len(pane))
    place = np.arange(len(pane)) if order is None else order
    ordered = pane[place]
    last = np.ones(len(pane), np.bool_)
    last[place[:-1]] = ordered[1:] != ordered[:-1]
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(pane), np.int8), mask=~last), pa.array(["window"]))


def _aggregate(
    plan: Plan,
    bound: Bound,
    rows: pa.RecordBatch,
    contents: Membership,
    pane: Ints,
    name_of: Callable[[int], str],
    rank: Ints | None = None,
    found: Results | None = None,
    spans: Spans | None = None,
) -> pa.Array:
    """Return the values of one aggregate for the result rows of ``contents``.

    ``pane``: int64, the pane of each, and ``name_of`` its name in messages. ``found``: the results so far, as `compute`
    takes them. ``spans``: as it takes them.
    """
    try:
        values = compute(bound, rows, contents, rank, found, spans)
    except PaneOverflow as over:
        raise DataError(
            f"{over.call} does not fit {over.type} in {name_of(pane[over.pane])} (column {over.column!r})",
            "aggregate it as float (a mean, or a cast of the input) or use smaller windows",
        ) from None
    except PaneFailed as failed:
        raise DataError(f"{failed.call} failed in {name_of(pane[failed.pane])}: {failed.reason}") from failed
    nothing = plan.kind.needs.sum_of_nothing
    if nothing is not None and bound.call.function == "sum":
        # semantics section 9: batched sum is 0
        return values.fill_null(pa.scalar(nothing, pa.int64()).cast(values.type))
    return values


# Partial aggregates as rows: each stands for some rows of one window, and the second phase of aggregates reads it.
#
# Map tasks combine rows before an exchange (`windowing.scan.scan`), segments combine those of the window
# that is open at their end (`windowing.scan.segment_scan`), and pieces of a large pane their pairs (`pane_rows`).


def can_combine(plan: Plan, schema: pa.Schema, are_neighbours: bool) -> bool:
    """Whether rows of one window of an input with this schema can be combined: each aggregate has two phases.

    ``are_neighbours``: whether rows are combined that follow one another, and are merged in their order.
    """
    if plan.emits_rows or plan.weight is not None or plan.kind.needs.ends is not None:
        return False
    return all(is_mergeable(bound, schema, are_neighbours) for bound in plan.aggregates)


def calls_over_all_rows(plan: Plan, schema: pa.Schema) -> tuple[str, ...]:
    """Return what needs all rows of a window at once, as users wrote it; none where its rows can be combined."""
    if plan.emits_rows:
        return (f"--emit {plan.options.emit}" if plan.options.operator is None else "the operator",)
    return tuple(bound.text for bound in plan.aggregates if not is_mergeable(bound, schema, are_neighbours=True))


def merging_plan(plan: Plan) -> Plan:
    """Return the plan that scans combined rows: its aggregates take their second phase."""
    prefix = "__of"
    while any(name.startswith(prefix) for name in plan.columns):
        prefix = f"_{prefix}"
    aggregates = tuple(in_two_phases(bound, f"{prefix}_{i}") for i, bound in enumerate(plan.aggregates))
    return replace(plan, aggregates=aggregates, weight=f"{prefix}_rows")


def combine(plan: Plan, merging: Plan, rows: pa.RecordBatch, cells: Ranges) -> pa.RecordBatch:
    """Combine the rows of each cell, all of one window, into a row of ``merging``, the `merging_plan`.

    A combined row has the other values of the first row of its cell. ``cells``: disjoint, none of them empty.
    """
    begins = cells.lo if cells.row is None else cells.row[cells.lo]
    first = [name for name in merging.values if name in rows.schema.names]
    columns = dict(zip(first, take_rows(rows.select(first), begins).columns, strict=True))
    for bound, final in zip(plan.aggregates, merging.aggregates, strict=True):
        columns |= zip(final.columns, split(bound, rows, cells), strict=True)
    columns[str(merging.weight)] = pa.array(np.asarray(cells.hi - cells.lo))
    names = [name for name in merging.values if name in columns]  # rows of pairs have no side
    return pa.RecordBatch.from_arrays([columns[name] for name in names], names=names)


def combine_window(
    plan: Plan, sequences: Sequences, first: int, stop: int, window: int, key: int = 0
) -> pa.RecordBatch:
    """Combine the rows ``[first, stop)``, all of one window, into one row for each group; none where there are none.

    ``window``, ``key``: the number of the window and of its key, for messages. Raises `DataError` where a user function
    fails.
    """
    rows = sequences.rows
    lo, hi = (np.array([edge] if first < stop else [], np.int64) for edge in (first, stop))
    cells = Ranges(lo, hi, lo, True)
    if plan.options.group_by and first < stop:
        codes, _ = group_codes([combined(rows.column(name)) for name in plan.options.group_by])
        *_, of_groups = grouped(cells, codes.astype(np.int64), touched=False)
        assert isinstance(of_groups, Ranges)
        cells = of_groups
    try:
        return combine(plan, merging_plan(plan), rows, cells)
    except PaneFailed as failed:
        where = f"window {window}{key_text(sequences, key)}"
        raise DataError(f"{failed.call} failed in {where}: {failed.reason}") from failed
