"""Bound calls over panes: one array per call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, truth
from ..language.spec import Column
from ..rows.membership import Membership, Memberships, Ranges, as_simplest, with_filter
from .inputs import Inputs, Ranked, TwoPhase, entries_of, plain, plain_type
from .table import TABLE, Bound, aggregate_of

_ONE, _TWO = np.array([0]), np.array([2])
_BOUNDS = np.array([0, 2])
_FORMS: tuple[Membership, ...] = (
    Ranges(_ONE, _TWO, _ONE, True),
    Ranges(_ONE, _TWO, _ONE, False),
    Memberships(np.array([0, 1]), np.array([0, 1]), np.array([2, 2]), _BOUNDS, _BOUNDS),
    Memberships(np.array([0, 1]), np.array([1, 0]), np.array([2, 1]), _BOUNDS, _BOUNDS),
)
"""Panes in every form over two rows, for `warm`. Disjoint panes come first; only the last ones are not ranges."""
_RANKS = np.array([0, 2])
"""Ranks of the two rows. A pane with both rows has a hole, a pane with one row has none, so every kernel runs."""


Results: TypeAlias = dict[tuple[str, ...], dict[str, Any]]
"""Intermediate results that calls over the same panes of the same rows share, by the columns that the calls read."""


def compute(
    bound: Bound, rows: pa.RecordBatch, membership: Membership, rank: Ints | None = None, cached: Results | None = None
) -> pa.Array:
    """Return the value of one call for each pane, of length P and type ``bound.type`` (semantics section 9).

    The value of a pane depends, to the bit, only on the pane's own rows and their ranks; rows outside the pane do not
    matter. ``rank``: int64 (n,), how many rows of its sequence came before each row, ever; ascending within each
    sequence. With None the places of the entries in their sequence are the ranks, from 0. ``cached``: intermediate
    results of earlier calls over the same panes; they save time and change no value.

    Nulls are skipped; a pane without values is null, counts are 0. Raises `PaneOverflow` where an integer or decimal
    does not fit, and `PaneFailed` (a `DataError`) for a user function.
    """
    membership = as_simplest(membership)
    if bound.filter is not None:
        membership, rank = with_filter(membership, truth(rows, bound.filter)), None
    find = _phases(bound).merge if bound.is_second_step else aggregate_of(bound.call).compute
    return find(_inputs(bound, rows, membership, rank, {} if cached is None else cached))


def is_mergeable(bound: Bound, schema: pa.Schema, are_neighbours: bool) -> bool:
    """Whether a call over columns of these types can be computed in two phases.

    ``are_neighbours``: as `TwoPhase.in_order` wants rows.
    """
    phases = aggregate_of(bound.call).phases
    if phases is None or (phases.in_order and not are_neighbours):
        return False
    types = [plain_type(schema.field(name).type) for name in bound.columns]
    return phases.fits(types, [a for a in bound.call.arguments if not isinstance(a, Column)])


def in_two_phases(bound: Bound, prefix: str) -> Bound:
    """Return the second phase of a call that `is_mergeable`, over columns whose names begin with ``prefix``."""
    names = tuple(f"{prefix}_{i}" for i in range(_phases(bound).columns))
    return replace(bound, columns=names, is_second_step=True, filter=None)


def split(bound: Bound, rows: pa.RecordBatch, panes: Ranges) -> list[pa.Array]:
    """Return the partial aggregates of each pane, as the columns that `in_two_phases` names.

    The call `is_mergeable`, and ``panes`` are disjoint. Raises `PaneFailed` for a user function.
    """
    if bound.filter is not None:
        panes = with_filter(panes, truth(rows, bound.filter))
    return _phases(bound).split(_inputs(bound, rows, panes, None, {}))


def warm(bounds: Sequence[Bound], schema: pa.Schema, overlapping: bool = True) -> None:
    """Run the kernels that calls need on two null rows, so that the compiled kernels are on disk for all processes.

    ``overlapping``: whether panes may share rows; if not, only the kernels for disjoint panes run. User functions are
    not called.
    """
    names = sorted({name for bound in bounds for name in bound.columns})
    rows = pa.RecordBatch.from_arrays([pa.nulls(2, schema.field(name).type) for name in names], names=names)
    for bound, form in product(bounds, _FORMS if overlapping else _FORMS[:1]):
        if not bound.is_user_function:
            compute(bound, rows, form, _RANKS)


def _inputs(bound: Bound, rows: pa.RecordBatch, membership: Membership, rank: Ints | None, cached: Results) -> Inputs:
    arguments = bound.call.arguments
    names = tuple(a.name for a in arguments if isinstance(a, Column))
    read = bound.columns if bound.is_second_step else names
    columns = [plain(rows.column(name)) for name in read]
    if not bound.is_second_step and not bound.is_user_function:
        wanted = TABLE[bound.call.function].types_of([column.type for column in columns])
        columns = [
            column if column.type == dtype else column.cast(dtype)
            for column, dtype in zip(columns, wanted, strict=True)
        ]
    return Inputs(
        columns=tuple(
            (column if membership.row is None else column.take(pa.array(membership.row))) for column in columns
        ),
        names=names,
        literals=tuple(a for a in arguments if not isinstance(a, Column)),
        ranked=Ranked(entries_of(membership), rank, membership.row),
        type=bound.type,
        call=bound.text,
        cache=cached.setdefault(tuple(read), {}),
    )


def _phases(bound: Bound) -> TwoPhase:
    phases = aggregate_of(bound.call).phases
    assert phases is not None
    return phases
