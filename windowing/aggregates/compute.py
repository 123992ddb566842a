"""Bound calls over panes: one array per call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints
from ..language.spec import Column
from ..panes.membership import Membership, Memberships, Ranges, as_simplest
from . import user
from .bind import Bound
from .folds.inputs import Inputs, Ranked, entries_of
from .folds.values import plain
from .table import TABLE
from .two_phase import STEPS

_ONE, _TWO = np.array([0]), np.array([2])
_BOUNDS = np.array([0, 2])
_FORMS: tuple[Membership, ...] = (
    Ranges(_ONE, _TWO, _ONE, True),
    Ranges(_ONE, _TWO, _ONE, False),
    Memberships(np.array([0, 1]), np.array([0, 1]), np.array([2, 2]), _BOUNDS, _BOUNDS),
    Memberships(np.array([0, 1]), np.array([1, 0]), np.array([2, 1]), _BOUNDS, _BOUNDS),
)
"""Panes of every form over two rows, first those that are apart; only the last are no ranges of neighbours."""
_RANKS = np.array([0, 2])
"""Of these rows: what shows both has a hole, what shows one has none, so that each kernel has something to do."""


Results: TypeAlias = dict[tuple[str, ...], dict[str, Any]]
"""What calls over the same panes of the same rows have found that others can use, by the columns that they read."""


def compute(
    bound: Bound, rows: pa.RecordBatch, membership: Membership, rank: Ints | None = None, cached: Results | None = None
) -> pa.Array:
    """Return the value of one call for each pane, of length P and type ``bound.type`` (semantics section 9).

    What a pane gives depends on its own rows and on their ranks only, to the bit: not on rows that it does not show,
    whether they are there or not. ``rank``: int64 (n,), how many rows of its sequence came before each row, ever;
    ascending within each sequence. None: the places of the entries in their sequence are taken for that, from 0.
    ``found``: of the calls before this one over the same panes; None: there are none. It changes no value.

    Nulls are skipped; a pane without values is null, counts are 0. Raises `PaneOverflow` where an integer or decimal
    does not fit, and `PaneFailed` (a `DataError`) for a user function.
    """
    return _computer(bound)(_inputs(bound, rows, as_simplest(membership), rank, {} if cached is None else cached))


def split(bound: Bound, rows: pa.RecordBatch, panes: Ranges) -> list[pa.Array]:
    """Return what the first of two steps leaves of each pane, for a call that `is_mergeable`: the columns of
    `in_two_phases`. ``panes``: apart."""
    return STEPS[bound.call.function].split(_inputs(bound, rows, panes, None, {}))


def warm(bounds: Sequence[Bound], schema: pa.Schema, overlapping: bool = True) -> None:
    """Run the kernels that calls need on a few nulls, so that the compiled ones are on disk for all processes.

    ``overlapping``: whether panes may share rows; else only what panes that are apart need. User functions are not
    called.
    """
    names = sorted({name for bound in bounds for name in bound.columns})
    rows = pa.RecordBatch.from_arrays([pa.nulls(2, schema.field(name).type) for name in names], names=names)
    for bound, form in product(bounds, _FORMS if overlapping else _FORMS[:1]):
        if ":" not in bound.call.function:
            compute(bound, rows, form, _RANKS)


def _inputs(bound: Bound, rows: pa.RecordBatch, membership: Membership, rank: Ints | None, cached: Results) -> Inputs:
    arguments = bound.call.arguments
    names = tuple(a.name for a in arguments if isinstance(a, Column))
    read = bound.columns if bound.is_second_step else names
    return Inputs(
        columns=tuple(_of_entries(plain(rows.column(name)), membership) for name in read),
        names=names,
        literals=tuple(a for a in arguments if not isinstance(a, Column)),
        ranked=Ranked(entries_of(membership), rank, membership.row),
        type=bound.type,
        call=bound.text,
        cache=cached.setdefault(tuple(read), {}),
    )


def _of_entries(column: pa.Array, membership: Membership) -> pa.Array:
    return column if membership.row is None else column.take(pa.array(membership.row))


def _computer(bound: Bound) -> Callable[[Inputs], pa.Array]:
    if bound.is_second_step:
        return STEPS[bound.call.function].merge
    if ":" not in bound.call.function:
        return TABLE[bound.call.function].compute
    is_column = [isinstance(a, Column) for a in bound.call.arguments]
    return user.calls(user.load(bound.call.function), is_column)
