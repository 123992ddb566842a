"""Result rows of aggregates: one for each pane, or one for each group of a pane."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..aggregates.inputs import PaneFailed, PaneOverflow
from ..aggregates.table import Bound, Results, compute, in_two_phases, is_mergeable, split
from ..columns.arrays import Ints, combined
from ..columns.radix_sort import ascend, pair_order
from ..columns.sort_keys import sort_keys
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
from ..rows.sequence import Sequences, group_codes, take_rows
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


@dataclass(frozen=True, slots=True)
class Grouped:
    """Q panes of groups, in the order of ``membership``.

    ``pane``: int64 (Q,), the pane of the window that each belongs to.
    ``group``: int64 (Q,), the code of its group.
    ``membership``: the rows that each shows.
    """

    pane: Ints
    group: Ints
    membership: Membership


def grouped(contents: Membership, codes: Ints, touched: bool) -> Grouped:
    """Divide panes by the group ``codes`` of all rows, int64 (n,).

    ``touched``: whether a pane has only the groups of rows that it is the first to show or the first to show no more,
    including groups that are now empty (semantics section 6); else it has every group of which it shows a row.
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
    return Grouped(pane, of_group, Memberships(lives.row[order], own_enter, own_leave, bounds, first_pane))


def _apart(contents: Ranges, codes: Ints) -> Grouped:
    """Divide panes that share no row: their rows only need to be sorted by group."""
    counts = contents.hi - contents.lo
    before = np.cumsum(counts) - counts
    entries = np.repeat(contents.lo - before, counts) + np.arange(counts.sum())
    row = entries if contents.row is None else contents.row[entries]
    pane = np.repeat(np.arange(len(contents)), counts)
    order = np.lexsort([codes[row], pane])
    row, pane = row[order], pane[order]
    starts = _starts(pane, codes[row])
    ranges = Ranges(starts, np.append(starts, len(row))[1:], starts, True, row)
    return Grouped(pane[starts], codes[row][starts], ranges)


def _starts(major: Ints, minor: Ints) -> Ints:
    new = np.ones(len(major), np.bool_)
    new[1:] = (major[1:] != major[:-1]) | (minor[1:] != minor[:-1])
    return np.flatnonzero(new)


def _shown(enter: Ints, leave: Ints, bounds: Ints) -> tuple[Ints, Ints]:
    by_enter = np.lexsort([enter, np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))])
    count, first_pane = _count_shown(enter, leave, bounds, by_enter)
    return _fill_shown(enter, leave, bounds, by_enter, count), first_pane


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
def _count_shown(enter: Ints, leave: Ints, bounds: Ints, by_enter: Ints) -> tuple[int, Ints]:
    # Two passes, first the count and then the panes: rows times panes is never written down.
    first_pane = np.zeros(len(bounds), np.int64)
    count = 0
    for g in range(len(bounds) - 1):
        # invariant: the entries so far, by ascending ``enter``, show no pane from ``reached`` on
        reached = 0
        for i in range(bounds[g], bounds[g + 1]):
            begin, end = enter[by_enter[i]], leave[by_enter[i]]
            count += max(0, end - max(begin, reached))
            reached = max(reached, end)
        first_pane[g + 1] = count
    return count, first_pane


@kernel
def _fill_shown(enter: Ints, leave: Ints, bounds: Ints, by_enter: Ints, count: int) -> Ints:
    out = np.empty(count, np.int64)
    place = 0
    # the walk of `_count_shown` once more: each pane of a group is written once, and panes ascend
    for g in range(len(bounds) - 1):
        reached = 0
        for i in range(bounds[g], bounds[g + 1]):
            begin, end = enter[by_enter[i]], leave[by_enter[i]]
            for p in range(max(begin, reached), end):
                out[place] = p
                place += 1
            reached = max(reached, end)
    return out


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


# A key as messages name it.


def key_text(sequences: Sequences, key: int) -> str:
    """Return `` of key `` and the cells of a key, by its number; nothing where there is no key."""
    if sequences.keys is None:
        return ""
    cells = zip(sequences.keys.column_names, sequences.keys.slice(key, 1).columns, strict=True)
    return " of key " + ", ".join(f"{name}={_cell_text(combined(column))}" for name, column in cells)


def _cell_text(cell: pa.Array) -> str:
    if pa.types.is_string(cell.type) or pa.types.is_binary(cell.type):
        return repr(cell[0].as_py())
    try:
        return str(cell.cast(pa.string())[0].as_py())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return str(sort_keys(cell)[0])


@dataclass(frozen=True, slots=True)
class AggregateRows:
    """Q result rows, in the order of ``membership``.

    ``pane``: int64 (Q,), the pane of each.
    ``groups``: the group columns, (Q,) each; none without groups.
    ``membership``: the rows of the input that each result row shows.
    ``rank``: int64 (n,), the ranks of the rows, see `compute`; None where ``membership`` implies them.
    ``order``: int64 (Q,), the permutation into the order of the result; None where they are in that order.
    ``last``: the ``_mark`` column, set for the last result row of each pane.
    """

    pane: Ints
    groups: list[pa.Array]
    membership: Membership
    rank: Ints | None
    order: Ints | None
    last: pa.Array


def aggregate_rows(plan: Plan, sequences: Sequences, panes: Panes, pane_columns: pa.Table) -> Iterator[pa.Table]:
    """Yield one row a pane and group: ``pane_columns`` of its pane, groups, aggregates and marks."""
    lines = _lines(plan, sequences, panes)
    head = (
        pane_columns if len(lines.pane) == len(panes) and not lines.groups else pane_columns.take(pa.array(lines.pane))
    )
    for name, column in zip(plan.options.group_by, lines.groups, strict=True):
        head = head.append_column(name, column)
    where = _Where(sequences, panes, lines.pane)
    short = [bound for bound in plan.aggregates if not bound.is_long]
    different = _different(lines.membership)
    found: Results = {}
    for bound in short:
        head = head.append_column(bound.name, _of_all(plan, bound, sequences, lines, different, where, found))
    if not plan.options.plain:
        head = head.append_column(MARK, lines.last)
    if len(short) == len(plan.aggregates):
        yield head if lines.order is None else head.take(pa.array(lines.order))
        return
    tables = _with_long(plan, sequences, lines, head, where)
    if lines.order is None:
        yield from tables
    else:
        yield pa.concat_tables(tables).take(pa.array(lines.order))


def _with_long(
    plan: Plan, sequences: Sequences, lines: AggregateRows, head: pa.Table, where: _Where
) -> Iterator[pa.Table]:
    for first, stop in batches(lines.membership):
        table, contents = head.slice(first, stop - first), part(lines.membership, first, stop)
        for bound in plan.aggregates:
            if bound.is_long:
                table = table.append_column(bound.name, _aggregate(plan, bound, sequences, contents, where, first))
        yield table


@dataclass(frozen=True, slots=True)
class _Different:
    """Contents of result rows, once where neighbouring result rows show the same rows.

    ``membership``: D contents, of which no neighbours are alike.
    ``first``: int64 (D,), the first result row with each.
    ``code``: int32 (Q,), for each result row its place among them.
    """

    membership: Membership
    first: Ints
    code: pa.Array


def _different(contents: Membership) -> _Different | None:
    """Return the different contents of result rows; None where most differ.

    Windows of a hop that is shorter than the pauses between rows mostly show the rows of the window before.
    """
    if not isinstance(contents, Ranges) or contents.disjoint:
        return None
    code, first = different_ranges(contents.lo, contents.hi, contents.base)
    if 2 * len(first) > len(code):
        return None
    return _Different(take(contents, first), first, pa.array(code))


def _of_all(
    plan: Plan,
    bound: Bound,
    sequences: Sequences,
    lines: AggregateRows,
    different: _Different | None,
    where: _Where,
    found: Results,
) -> pa.Array:
    if different is None:
        return _aggregate(plan, bound, sequences, lines.membership, where, 0, lines.rank, found)
    where = replace(where, pane=where.pane[different.first])
    values = _aggregate(plan, bound, sequences, different.membership, where, 0, lines.rank, found)
    return pc.take(values, different.code, boundscheck=False)


def _lines(plan: Plan, sequences: Sequences, panes: Panes) -> AggregateRows:
    pane, groups, contents, code = np.arange(len(panes)), [], panes.membership, None
    if plan.options.group_by:
        codes, values = group_codes([combined(sequences.rows.column(name)) for name in plan.options.group_by])
        touched = plan.kind.needs.changes_of_groups
        found = grouped(panes.membership, codes.astype(np.int64), touched)
        pane, code, contents = found.pane, found.group, found.membership
        groups = [combined(column).take(pa.array(code)) for column in values.columns]
    order = pair_order(panes.key, panes.number) if code is None else _order_of_groups(panes, pane, code)
    contents = as_simplest(contents)
    rank = None if plan.options.group_by else _rank(plan, sequences, contents)
    return AggregateRows(pane, groups, contents, rank, order, _last(pane, order))


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


@dataclass(frozen=True, slots=True)
class _Where:
    """Window and key of result rows, for messages.

    ``sequences``: the sequences, with their keys.
    ``panes``: the panes.
    ``pane``: int64 (Q,), the pane of each result row.
    """

    sequences: Sequences
    panes: Panes
    pane: Ints

    def text(self, line: int) -> str:
        pane = self.pane[line]
        return f"window {self.panes.number[pane]}{key_text(self.sequences, int(self.panes.key[pane]))}"


def _aggregate(
    plan: Plan,
    bound: Bound,
    sequences: Sequences,
    contents: Membership,
    where: _Where,
    first: int,
    rank: Ints | None = None,
    found: Results | None = None,
) -> pa.Array:
    """Return the values of one aggregate for the result rows of ``contents``, which begin at result row ``first``.

    ``found``: the results so far, as `compute` takes them.
    """
    try:
        values = compute(bound, sequences.rows, contents, rank, found)
    except PaneOverflow as over:
        raise DataError(
            f"{over.call} does not fit {over.type} in {where.text(first + over.pane)} (column {over.column!r})",
            "aggregate it as float (a mean, or a cast of the input) or use smaller windows",
        ) from None
    except PaneFailed as failed:
        raise DataError(f"{failed.call} failed in {where.text(first + failed.pane)}: {failed.reason}") from failed
    nothing = plan.kind.needs.sum_of_nothing
    if nothing is not None and bound.call.function == "sum":
        return values.fill_null(
            pa.scalar(nothing, pa.int64()).cast(values.type)
        )  # semantics section 9: batched sum is 0
    return values


# Partial aggregates as rows: each stands for some rows of one window, and the second phase of aggregates reads it.
#
# Map tasks combine rows before an exchange (`windowing.scan.scan`), and segments combine those of the window
# that is open at their end (`windowing.scan.segment_scan`).


def can_combine(plan: Plan, schema: pa.Schema, are_neighbours: bool) -> bool:
    """Whether rows of one window of an input with this schema can be combined: each aggregate has two phases.

    ``are_neighbours``: whether rows are combined that follow one another, and are merged in their order.
    """
    if plan.emits_rows or plan.weight is not None:
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
    names = list(merging.values)
    return pa.RecordBatch.from_arrays([columns[name] for name in names], names=names)


def combine_window(plan: Plan, sequences: Sequences, first: int, stop: int, window: int) -> pa.RecordBatch:
    """Combine the rows ``[first, stop)``, all of one window, into one row for each group; none where there are none.

    ``sequences``: one sequence. ``window``: the number of the window, for messages. Raises `DataError` where a user
    function fails.
    """
    rows = sequences.rows
    lo, hi = (np.array([edge] if first < stop else [], np.int64) for edge in (first, stop))
    cells = Ranges(lo, hi, lo, True)
    if plan.options.group_by and first < stop:
        codes, _ = group_codes([combined(rows.column(name)) for name in plan.options.group_by])
        of_groups = grouped(cells, codes.astype(np.int64), touched=False).membership
        assert isinstance(of_groups, Ranges)
        cells = of_groups
    try:
        return combine(plan, merging_plan(plan), rows, cells)
    except PaneFailed as failed:
        where = f"window {window}{key_text(sequences, 0)}"
        raise DataError(f"{failed.call} failed in {where}: {failed.reason}") from failed
