"""Result rows of aggregates: one for each pane, or one for each group of a pane."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..aggregates import Bound, PaneFailed, PaneOverflow, Results, compute
from ..columns.arrays import Ints, combined
from ..columns.pair_order import ascend, pair_order
from ..errors import DataError
from ..panes.membership import Membership, Ranges, as_simplest, batches, part, take
from ..panes.membership_kernels import different_ranges
from ..panes.panes import Panes
from ..planning.plan import Plan
from ..planning.result_schema import MARK
from ..sequences.sequence import Sequences, group_codes
from .groups import grouped
from .key_text import key_text
from .stream_columns import constant

_LONG = {"collect", "collect_distinct", "string_join", "approx_count_distinct", "hll_sketch", "kll_sketch"}


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
    short = [bound for bound in plan.aggregates if not _is_long(bound)]
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
    """Add the aggregates that make something as long as their panes, a bounded number of rows at a time."""
    for first, stop in batches(lines.membership):
        table, contents = head.slice(first, stop - first), part(lines.membership, first, stop)
        for bound in plan.aggregates:
            if _is_long(bound):
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
    """Return the values of one aggregate for all result rows, computed once for those that show the same rows."""
    if different is None:
        return _aggregate(plan, bound, sequences, lines.membership, where, 0, lines.rank, found)
    where = replace(where, pane=where.pane[different.first])
    values = _aggregate(plan, bound, sequences, different.membership, where, 0, lines.rank, found)
    return pc.take(values, different.code, boundscheck=False)


def _is_long(bound: Bound) -> bool:
    """Return whether an aggregate makes something as long as its pane, or a user function receives the whole pane."""
    return bound.call.function in _LONG or bound.is_user_function


def _lines(plan: Plan, sequences: Sequences, panes: Panes) -> AggregateRows:
    pane, groups, contents, code = np.arange(len(panes)), [], panes.membership, None
    if plan.options.group_by:
        codes, values = group_codes([combined(sequences.rows.column(name)) for name in plan.options.group_by])
        touched = plan.kind.emits_changes_of_groups
        found = grouped(panes.membership, codes.astype(np.int64), touched)
        pane, code, contents = found.pane, found.group, found.membership
        groups = [combined(column).take(pa.array(code)) for column in values.columns]
    order = pair_order(panes.key, panes.number) if code is None else _order_of_groups(panes, pane, code)
    contents = as_simplest(contents)
    rank = None if plan.options.group_by else _rank(plan, sequences, contents)
    return AggregateRows(pane, groups, contents, rank, order, _last(pane, order))


def _rank(plan: Plan, sequences: Sequences, contents: Membership) -> Ints | None:
    """Return `AggregateRows.rank` for panes over the rows of their keys."""
    if sequences.rank is not None:
        return sequences.rank
    begin_anew = plan.kind.eviction is not None
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
    nothing = plan.kind.sum_of_nothing
    if nothing is not None and bound.call.function == "sum":
        return values.fill_null(
            pa.scalar(nothing, pa.int64()).cast(values.type)
        )  # semantics section 9: batched sum is 0
    return values
