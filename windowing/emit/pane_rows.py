"""Rows once for each pane that shows them, with the columns that they have there alone (`Needs.pane_columns`).

So are pairs of rows of a join (`rows.pairs`): each is a row. A row may be in very many panes, or pairs, so such rows
are made for a bounded number of memberships at a time. Panes over them share no row, and aggregates, groups and rows of
results take them as those of any window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, combined, spread
from ..columns.radix_sort import ascend
from ..errors import DataError
from ..language.patterns import MATCHED_AS
from ..language.spec import At, Joined
from ..planning.plan import Plan
from ..rows.membership import Ranges, batches, ranges
from ..rows.pairs import Pairs, each_pair, pair_rows, without_padding
from ..rows.panes import Panes
from ..rows.sequence import Sequences, concatenate, take_rows
from .aggregate_rows import can_combine, combine_window, merging_plan
from .lasting_rows import Instants, insides, instants

_PAIRS = 1 << 20
"""About so many pairs are made at a time."""


def rows_of_panes(plan: Plan, sequences: Sequences, panes: Panes) -> Iterator[tuple[Sequences, Panes]]:
    """Yield panes in their order, some at a time, with a row of their own for each row that they show.

    Keys of the panes are numbered as in ``sequences``, and their causes are those of ``panes``.
    """
    lasts, order = None if plan.kind.needs.ends is None else instants(plan, sequences), None
    if not ascend(panes.key, panes.number):  # nested windows of a table: the result needs others first
        order = np.lexsort([panes.number, panes.key])
    for first, stop in [*batches(panes.membership, order=order)] or [(0, 0)]:
        some = panes.part(first, stop) if order is None else _picked(panes, order[first:stop])
        contents = some.membership
        assert isinstance(contents, Ranges)
        counts = contents.hi - contents.lo
        bounds, entries, row = np.append(0, np.cumsum(counts)), None, contents.row
        if row is None or len(row) > bounds[-1]:
            entries = spread(contents.lo, counts)
            row = entries if row is None else row[entries]
        rows = _with_pane_columns(plan, take_rows(sequences.rows, row), row, entries, counts, lasts, some)
        of_keys = np.searchsorted(some.key, np.arange(len(sequences.bounds)))
        own = replace(sequences, bounds=bounds[of_keys], rows=rows, pos=sequences.pos[row], rank=None)
        yield own, replace(some, membership=Ranges(bounds[:-1], bounds[1:], bounds[:-1], True), matched=None)


def rows_of_pairs(plan: Plan, sequences: Sequences, panes: Panes) -> Iterator[tuple[Plan, Sequences, Panes]]:
    """Yield panes of pairs in their order, some at a time, with a row for each pair, and the plan that reads these.

    A row without a partner is a row, too, which panes of aggregates do not show. Keys and causes are those of
    ``panes``. A large pane is made in pieces. These come out where its rows are the result; where its aggregates merge,
    the pane has a row of partial aggregates for each (`combine_window`).
    """
    if not ascend(panes.key, panes.number):
        panes = panes.in_turn(np.lexsort([panes.number, panes.key]), panes.membership)
    pairs = panes.pairs
    assert pairs is not None
    ends, stored = pairs.ends, without_padding(sequences.rows, plan.pair_columns)
    panes = replace(panes, membership=ranges(ends[:-1], ends[1:]))
    for first, stop in [*batches(panes.membership, _PAIRS)] or [(0, 0)]:
        some = panes.part(first, stop)
        assert some.pairs is not None
        is_whole = ends[stop] - ends[first] <= _PAIRS or not _comes_in_pieces(plan, stored)
        made = (
            _rows_of_piece(plan, sequences, stored, replace(some, pairs=piece), piece)
            for piece in ([some.pairs] if is_whole else some.pairs.pieces(_PAIRS))
        )
        if is_whole or plan.emits_rows:
            yield from ((plan, *each) for each in made)
        else:
            yield _merged(plan, sequences, some, made)


def _comes_in_pieces(plan: Plan, stored: pa.RecordBatch) -> bool:
    """Whether nothing looks at all rows of a pane at once."""
    if plan.emits_rows:
        return not plan.sort_rows
    types = {field.name: field for field in (*stored.schema, *plan.pane_schema)}
    return can_combine(plan, pa.schema(types.values()), are_neighbours=True)


def _merged(
    plan: Plan, sequences: Sequences, pane: Panes, pieces: Iterator[tuple[Sequences, Panes]]
) -> tuple[Plan, Sequences, Panes]:
    """Return one pane whose rows are partial aggregates of its pieces, and the plan that merges them."""
    key, number = int(pane.key[0]), int(pane.number[0])
    of_pairs = replace(plan, pairs=None, of_panes=(), pane_schema=pa.schema([]))  # rows of pieces have these columns
    parts = [
        pa.Table.from_batches([combine_window(of_pairs, own, 0, len(own), number, key)])
        for own, _ in pieces  # more pairs than one, so no row without a partner
    ]
    rows = concatenate(parts)
    bounds = np.where(np.arange(len(sequences.bounds)) > key, rows.num_rows, 0)
    own = replace(sequences, bounds=bounds, rows=rows, pos=np.zeros(rows.num_rows, np.int64), rank=None)
    return merging_plan(of_pairs), own, replace(pane, membership=ranges(np.array([0]), bounds[-1:]))


def _rows_of_piece(
    plan: Plan, sequences: Sequences, stored: pa.RecordBatch, panes: Panes, pairs: Pairs
) -> tuple[Sequences, Panes]:
    """Return panes and a row for each of their pairs. ``stored``: the rows as `without_padding` gives them."""
    bounds = pairs.ends
    left, right = each_pair(pairs.left, pairs.lo, pairs.hi, pairs.right)
    rows = pair_rows(stored, left, right, plan.pair_columns)
    if isinstance(plan.spec, Joined) and isinstance(plan.spec.window, At):
        tag = None if pairs.tag is None else np.repeat(pairs.tag, pairs.counts)
        rows = _with_offset(plan, plan.spec.window, rows, tag)
    row, of_keys = np.where(left < 0, right, left), np.searchsorted(panes.key, np.arange(len(sequences.bounds)))
    own = replace(
        sequences, bounds=bounds[of_keys], rows=_computed(plan, rows, panes), pos=sequences.pos[row], rank=None
    )
    # a left row without a partner stands alone in a pane of aggregates, which is empty
    shown = bounds[1:] if plan.emits_rows else bounds[:-1] + _sums(pairs.hi - pairs.lo, pairs.bounds)
    return own, replace(panes, membership=ranges(bounds[:-1], shown))


def _sums(values: Ints, bounds: Ints) -> Ints:
    """Return the sum of values in each range between ``bounds``, which count from any number: int64 (bounds - 1,)."""
    reached = np.append(0, np.cumsum(values))
    return np.asarray(reached[bounds[1:] - bounds[0]] - reached[bounds[:-1] - bounds[0]])


def _with_offset(plan: Plan, window: At, rows: pa.RecordBatch, tag: Ints | None) -> pa.RecordBatch:
    """Append the offset of each pair. ``tag``: int64, which one; None: there is one."""
    field = plan.pane_schema.field(0)
    offsets = pa.array([float(each) for each in window.offsets]).cast(field.type)
    found = pa.repeat(offsets[0], rows.num_rows) if tag is None else offsets.take(pa.array(tag))
    return rows.append_column(field, found)


def _picked(panes: Panes, picks: Ints) -> Panes:
    """Return the panes at ``picks``, in this order, with their rows pane after pane."""
    some = panes.take(np.sort(picks))
    some = some.part(0, len(some))
    turn = np.searchsorted(np.sort(picks), picks)
    contents = some.membership
    assert isinstance(contents, Ranges)
    assert contents.row is not None
    lo, counts = contents.lo[turn], (contents.hi - contents.lo)[turn]
    bounds = np.append(0, np.cumsum(counts))
    row = contents.row[np.repeat(lo - bounds[:-1], counts) + np.arange(bounds[-1])]
    return some.in_turn(turn, Ranges(bounds[:-1], bounds[1:], bounds[:-1], True, row))


def _with_pane_columns(
    plan: Plan,
    rows: pa.RecordBatch,
    row: Ints,
    entries: Ints | None,
    counts: Ints,
    lasts: Instants | None,
    panes: Panes,
) -> pa.RecordBatch:
    """Append the columns of panes to rows. ``entries``: those of ``panes.matched``, int64; None: all."""
    if lasts is not None:
        columns = insides((lasts[0][row], lasts[1][row]), counts, panes)
    else:
        assert panes.matched is not None
        columns = {MATCHED_AS: panes.matched if entries is None else panes.matched.take(pa.array(entries))}
    for name, values in columns.items():
        rows = rows.append_column(name, values)
    return _computed(plan, rows, panes)


def _computed(plan: Plan, rows: pa.RecordBatch, panes: Panes) -> pa.RecordBatch:
    """Append the columns that expressions compute of rows of panes. Raises `DataError` where one fails."""
    for each in plan.of_panes:
        found = each.value.evaluate(rows)
        if found.failures is not None:
            of = "pair" if plan.pairs is not None else "row"
            what = f"{each.label} fails for a {of} of window {int(panes.number[0])} or behind it: {found.details[0]}"
            raise DataError(what, "change the expression, or leave such rows out with --where")
        rows = rows.append_column(each.name, combined(found.values))
    return rows
