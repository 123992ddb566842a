"""Panes in batches: what the result says of disjoint panes is made a bounded number of panes at a time.

The columns of a batch are written before those of the next one are made, so they lie in memory that is used again, and
a task holds the columns of one batch rather than those of all panes of its slice (docs/decisions/068).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..columns.pair_order import ascend
from ..panes.membership import Ranges
from ..panes.panes import Panes
from ..planning.plan import Plan
from ..sequences.sequence import Sequences

_PANES = 1 << 20  # the rows of a row group of Parquet, so that row groups do not depend on batches


def pane_batches(plan: Plan, sequences: Sequences, panes: Panes) -> Iterator[tuple[Sequences, Panes]]:
    """Yield panes in their order, some at a time, with the keys and rows that they need.

    Keys and rows of the panes are numbered as in the sequences yielded with them; their causes are those of ``panes``.
    Panes that share rows, have groups or are not in the order of the result come in one batch.
    """
    contents = panes.membership
    if len(panes) <= _PANES or not isinstance(contents, Ranges) or not _can_be_divided(plan, contents, panes):
        yield sequences, panes
        return
    for first in range(0, len(panes), _PANES):
        yield _over_own_rows(sequences, panes.part(first, first + _PANES))


def _can_be_divided(plan: Plan, contents: Ranges, panes: Panes) -> bool:
    has_own_rows = contents.disjoint and contents.row is None
    return has_own_rows and not plan.options.group_by and ascend(panes.key, panes.number)


def _over_own_rows(sequences: Sequences, panes: Panes) -> tuple[Sequences, Panes]:
    """Return sequences without the rows before the first sequence of some panes and behind the last pane."""
    contents = panes.membership
    assert isinstance(contents, Ranges)
    low, high = int(contents.base.min()), int(contents.hi.max())
    key, stop = int(panes.key[0]), int(panes.key[-1]) + 1
    own = replace(
        sequences,
        keys=None if sequences.keys is None else sequences.keys.slice(key, stop - key),
        bounds=np.clip(sequences.bounds[key : stop + 1], low, high) - low,
        rows=sequences.rows.slice(low, high - low),
        pos=sequences.pos[low:high],
        rank=None if sequences.rank is None else sequences.rank[low:high],
    )
    rows = Ranges(contents.lo - low, contents.hi - low, contents.base - low, contents.disjoint)
    return own, replace(panes, key=panes.key - key, membership=rows)
