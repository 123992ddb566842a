"""Result rows that are the rows of panes, pane by pane, sorted with ``--sort-by`` (``--emit``; SPL's Sort)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, combined
from ..columns.sort_keys import sort_keys
from ..language.options import SortKey
from ..panes.membership import batches, gathered
from ..panes.panes import Panes
from ..planning.plan import Plan
from ..planning.result_schema import MARK, ROW
from ..sequences.sequence import Sequences


def row_batches(plan: Plan, sequences: Sequences, panes: Panes, pane_columns: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows of all panes, a bounded number at a time: ``pane_columns`` of the pane, then the row's columns.

    The last row of a pane has its mark; a pane without rows is a mark-only row, unless the result is plain.
    """
    plain = plan.options.plain
    sort_words = [_sort_words(sequences, key) for key in plan.sort_rows]
    for first, stop in batches(panes.membership):
        rows, bounds = gathered(panes.membership, first, stop)
        counts = np.diff(bounds)
        pane = np.repeat(np.arange(first, stop), counts)
        if sort_words:
            rows = rows[np.lexsort([*(key[rows] for keys in reversed(sort_words) for key in keys), pane])]
        if not plain:
            rows = np.insert(rows, bounds[:-1][counts == 0], -1)
            counts = np.maximum(counts, 1)
            pane = np.repeat(np.arange(first, stop), counts)
        table = pane_columns.take(pa.array(pane))
        there = pa.array(rows, mask=rows < 0)
        for name in plan.rows:
            table = table.append_column(name, sequences.rows.column(name).take(there))
        yield table if plain else _with_marks(table, rows, counts)


def _sort_words(sequences: Sequences, key: SortKey) -> list[Ints]:
    """Return keys for lexsort, the least significant first: nulls are last in both directions."""
    column = combined(sequences.rows.column(key.name))
    ascending = sort_keys(column)
    null = column.is_null().to_numpy(zero_copy_only=False)
    return [~ascending if key.descending else ascending, null]


def _with_marks(table: pa.Table, rows: Ints, counts: Ints) -> pa.Table:
    """Add the number of each row in its pane, and the marks: at the last row, or alone where the row is -1."""
    ends = np.cumsum(counts)
    none = rows < 0
    place = np.arange(len(rows)) - np.repeat(ends - counts, counts)
    word = np.where(none, np.int8(1), np.int8(0))
    last = np.zeros(len(rows), np.bool_)
    last[ends - 1] = True
    marks = pa.DictionaryArray.from_arrays(pa.array(word, mask=~last), pa.array(["window", "only"]))
    return table.append_column(ROW, pa.array(place, mask=none)).append_column(MARK, marks)
