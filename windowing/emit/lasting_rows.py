"""Rows that last, once for each pane that shows them, with how much of them is inside (semantics section 18).

A row may be in very many panes, so such rows are made for a bounded number of memberships at a time. Panes over them
share no row, and aggregates, groups and rows of results take them as those of any window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ..aggregates.table import BEGINS, UNTIL
from ..columns.arrays import Ints, Measures, combined, measures, scale_of
from ..columns.radix_sort import ascend
from ..errors import DataError
from ..kinds.lasting import ends_as_clock
from ..planning.pane_columns import OVERLAP, SHARE
from ..planning.plan import Plan
from ..rows.membership import Ranges, batches
from ..rows.panes import Panes
from ..rows.sequence import Sequences, take_rows


def lasting_batches(plan: Plan, sequences: Sequences, panes: Panes) -> Iterator[tuple[Sequences, Panes]]:
    """Yield panes in their order, some at a time, with a row of their own for each row that they show.

    Keys of the panes are numbered as in ``sequences``, and their causes are those of ``panes``.
    """
    lasts, order = _instants(plan, sequences), None
    if not ascend(panes.key, panes.number):  # nested windows of a table: the result needs others first
        order = np.lexsort([panes.number, panes.key])
    for first, stop in [*batches(panes.membership, order=order)] or [(0, 0)]:
        some = panes.part(first, stop) if order is None else _picked(panes, order[first:stop])
        contents = some.membership
        assert isinstance(contents, Ranges)
        assert contents.row is not None
        rows = _with_pane_columns(plan, take_rows(sequences.rows, contents.row), contents, lasts, some)
        of_keys = np.searchsorted(some.key, np.arange(len(sequences.bounds)))
        bounds = np.append(contents.lo, len(contents.row))[of_keys]
        own = replace(sequences, bounds=bounds, rows=rows, pos=sequences.pos[contents.row], rank=None)
        yield own, replace(some, membership=Ranges(contents.lo, contents.hi, contents.lo, True))


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


def _instants(plan: Plan, sequences: Sequences) -> tuple[Measures, Measures]:
    """Return from when to when each row lasts, in ticks of the bounds of windows."""
    clock, ends = plan.sort[0], plan.kind.needs.ends
    assert ends is not None
    column = combined(sequences.rows.column(clock))
    until = ends_as_clock(combined(sequences.rows.column(ends)), column.type)
    times = plan.times(column.type)
    return measures(times.to_instants(column, clock)), measures(times.to_instants(until, ends))


def _with_pane_columns(
    plan: Plan, rows: pa.RecordBatch, contents: Ranges, lasts: tuple[Measures, Measures], panes: Panes
) -> pa.RecordBatch:
    assert panes.start is not None
    assert panes.end is not None
    begins, until = (each[contents.row] for each in lasts)
    low, high = (np.repeat(measures(each), contents.hi - contents.lo) for each in (panes.start, panes.end))
    inside, length = (np.maximum(begins, low), np.minimum(until, high)), until - begins
    overlap, per_second = (inside[1] - inside[0]).astype(np.float64), scale_of(panes.start.type).per_second or 1
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(length == 0, 1.0, overlap / length)
    overlap = overlap * per_second.denominator / per_second.numerator
    for name, values in ((OVERLAP, overlap), (SHARE, share), (BEGINS, inside[0]), (UNTIL, inside[1])):
        rows = rows.append_column(name, pa.array(values))
    for each in plan.of_panes:
        found = each.value.evaluate(rows)
        if found.failures is not None:
            what = f"{each.label} fails for a row of window {int(panes.number[0])} or behind it: {found.details[0]}"
            raise DataError(what, "change the expression, or leave such rows out with --where")
        rows = rows.append_column(each.name, combined(found.values))
    return rows
