"""Rows once for each pane that shows them, with the columns that they have there alone (`Needs.pane_columns`).

A row may be in very many panes, so such rows are made for a bounded number of memberships at a time. Panes over them
share no row, and aggregates, groups and rows of results take them as those of any window.
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
from ..planning.plan import Plan
from ..rows.membership import Ranges, batches
from ..rows.panes import Panes
from ..rows.sequence import Sequences, take_rows
from .lasting_rows import Instants, insides, instants


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
    for each in plan.of_panes:
        found = each.value.evaluate(rows)
        if found.failures is not None:
            what = f"{each.label} fails for a row of window {int(panes.number[0])} or behind it: {found.details[0]}"
            raise DataError(what, "change the expression, or leave such rows out with --where")
        rows = rows.append_column(each.name, combined(found.values))
    return rows
