"""The inputs of an aggregate: its columns, its literals and the panes; and the removal of nulls from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...columns.arrays import Ints, Mask
from ...errors import DataError
from ...panes.membership import Membership, Memberships, Ranges, gathered, part, sizes
from ...panes.membership_kernels import covered
from ..kernels import equal_entries
from ..kernels.loops import Codes
from .values import NO_KEYS, codes, equality_keys, frozen

T = TypeVar("T")


class PaneOverflow(Exception):  # noqa: N818  (internal; the error that users see names key and window)
    """An integer or decimal aggregate does not fit its type.

    ``pane``: index of the first such pane among those computed.
    ``call``: text of the call, without its name.
    ``column``: name of its first column.
    ``type``: the type that is too narrow.
    """

    def __init__(self, pane: int, call: str, column: str, dtype: pa.DataType) -> None:
        super().__init__(pane, call, column, dtype)
        self.pane = pane
        self.call = call
        self.column = column
        self.type = dtype

    def __str__(self) -> str:
        return f"{self.call} does not fit {self.type} in pane {self.pane} (column {self.column!r})"


class PaneFailed(DataError):  # noqa: N818
    """A user function raised an exception, or returned a value that does not fit its type.

    ``pane``: index of the pane, as in `PaneOverflow`.
    ``call``: text of the call, without its name.
    ``reason``: what happened.
    """

    def __init__(self, pane: int, call: str, reason: str) -> None:
        super().__init__(f"{call} failed in pane {pane}: {reason}")
        self.pane = pane
        self.call = call
        self.reason = reason

    def __reduce__(self) -> tuple[type[PaneFailed], tuple[int, str, str]]:
        return PaneFailed, (self.pane, self.call, self.reason)


_NONE: Ints = frozen(np.empty(0, np.int64))


@dataclass(frozen=True, slots=True)
class Ranked:
    """Panes with all their entries, and the ranks by which folds over them associate (`folds`).

    ``membership``: panes over entries, as `entries_of` returns them.
    ``rank``: int64 (n,), how many rows of its sequence came before each row, ever; with None the places of the entries
        in their sequence are the ranks.
    ``row``: int64 (E,), the row of each entry; None where entry i is row i.
    ``valid_before``: int64 (E+1,), how many entries before each entry, and of all, are not null; empty if none is null.
    """

    membership: Membership
    rank: Ints | None = None
    row: Ints | None = None
    valid_before: Ints = field(default_factory=lambda: _NONE)


@dataclass(frozen=True, slots=True)
class Inputs:
    """One call over one batch of panes.

    ``columns``: the column arguments in order, in their plain types, nulls included, one value for each entry.
    ``names``: names of these columns.
    ``literals``: the other arguments.
    ``ranked``: the panes, entries with nulls included.
    ``type``: type of the result.
    ``call``: text of the call, for messages.
    ``cache``: intermediate results that calls over the same columns and panes share, see `cached`.
    """

    columns: tuple[pa.Array, ...]
    names: tuple[str, ...]
    literals: tuple[Any, ...]
    ranked: Ranked
    type: pa.DataType
    call: str
    cache: dict[str, Any]

    def cached(self, what: str, find: Callable[[], T]) -> T:
        """Return an intermediate result that calls over these columns and panes share; the first one computes it."""
        if what not in self.cache:
            self.cache[what] = find()
        found: T = self.cache[what]
        return found

    def refuse_overflow(self, over: Mask) -> None:
        """Raise `PaneOverflow` for the first pane for which ``over`` is true, if there is one."""
        if over.any():
            raise PaneOverflow(int(over.argmax()), self.call, self.names[0], self.type)


@dataclass(frozen=True, slots=True)
class Dense:
    """Columns without the entries that an aggregate skips, and the panes over the remaining entries.

    ``columns``: the remaining values, without nulls.
    ``membership``: the panes over the remaining entries.
    ``sizes``: int64 (P,), number of remaining entries of each pane.
    ``original_entries``: int64, the original entry of each remaining one; None if none was removed.
    ``ranked``: the original panes, and which of their entries remain.
    """

    columns: tuple[pa.Array, ...]
    membership: Membership
    sizes: Ints
    original_entries: Ints | None
    ranked: Ranked

    @property
    def ranges(self) -> Ranges:
        """The panes, which must be ranges, as they are after `as_ranges`."""
        assert isinstance(self.membership, Ranges)
        return self.membership

    @property
    def empty(self) -> Mask:
        """Which panes hold no entry."""
        empty: Mask = self.sizes == 0
        return empty

    def original(self, entries: Ints) -> Ints:
        """Return the original entries of entries of the dense columns; -1 stays -1."""
        if self.original_entries is None or not len(self.original_entries):
            return entries
        return np.where(entries < 0, -1, self.original_entries[entries])


def entries_of(membership: Membership) -> Membership:
    """Return panes over a column with one value for each entry, in arrays that are ready for kernels (`frozen`)."""
    if isinstance(membership, Ranges):
        return Ranges(frozen(membership.lo), frozen(membership.hi), frozen(membership.base), membership.disjoint)
    entries = frozen(np.arange(len(membership.row)))
    enter, leave = frozen(membership.enter), frozen(membership.leave)
    return Memberships(entries, enter, leave, frozen(membership.first_entry), frozen(membership.first_pane))


def filtered(membership: Membership, kept: Mask) -> Membership:
    """Return panes over some of the entries; ``kept``: (E,), which ones."""
    return _without_dropped(membership, kept, _before(kept))


def is_disjoint(membership: Membership) -> TypeGuard[Ranges]:
    """Whether no entry is in two panes, so that a loop over each pane by itself is the fastest."""
    return isinstance(membership, Ranges) and membership.disjoint


def dense(inputs: Inputs) -> Dense:
    """Take out the entries where any of the columns is null. No copy where there is none."""
    columns, ranked = inputs.columns, inputs.ranked
    holed = [column for column in columns if column.null_count]
    if not holed:
        return Dense(columns, ranked.membership, sizes(ranked.membership), None, ranked)
    valid = np.logical_and.reduce([column.is_valid().to_numpy(zero_copy_only=False) for column in holed])
    before, picked = _before(valid), pa.array(valid)
    left = _without_dropped(ranked.membership, valid, before)
    columns, ranked = tuple(column.filter(picked) for column in columns), replace(ranked, valid_before=before)
    return Dense(columns, left, sizes(left), np.flatnonzero(valid), ranked)


def as_ranges(present: Dense) -> Dense:
    """Return the same panes as ranges; of memberships the entries of each pane are copied, pane after pane."""
    if isinstance(present.membership, Ranges):
        return present
    ranges = part(present.membership, 0, len(present.membership))
    columns = tuple(column.take(pa.array(ranges.row)) for column in present.columns)
    return replace(present, columns=columns, membership=entries_of(ranges), original_entries=None)


def as_disjoint(present: Dense) -> Dense:
    """Return the same panes as disjoint ranges; of panes that overlap the entries are copied, pane after pane."""
    if is_disjoint(present.membership):
        return present
    entries, bounds = gathered(present.membership, 0, len(present.membership))
    columns = tuple(column.take(pa.array(entries)) for column in present.columns)
    ranges = entries_of(Ranges(bounds[:-1], bounds[1:], bounds[:-1], True))
    return replace(present, columns=columns, membership=ranges, original_entries=None)


def first_equals(column: pa.Array, lo: Ints, hi: Ints) -> Ints:
    """Return for each value of a column the first entry of its pane with an equal one, int64 (E,); -1 in no pane.

    The panes are disjoint.
    """
    is_long = hi - lo > equal_entries.FEW
    keys = NO_KEYS if is_long.all() else equality_keys(column)
    found, distinct = _codes_of_panes(column, lo, hi, is_long)
    first: Ints = frozen(equal_entries.first_equals(keys, found, distinct, len(column), lo, hi))
    return first


def _codes_of_panes(column: pa.Array, lo: Ints, hi: Ints, chosen: Mask) -> tuple[Codes, int]:
    """Return `codes` for the values in some panes, and 0 for other values; empty for no panes."""
    if chosen.all():
        return codes(column)
    if not chosen.any():
        return frozen(np.empty(0, np.int32)), 0
    among = covered(frozen(lo[chosen]), frozen(hi[chosen]), len(column))
    found, distinct = codes(column.filter(pa.array(among)))
    column_codes = np.zeros(len(column), np.int32)
    column_codes[among] = found
    return frozen(column_codes), distinct


def masked(values: npt.NDArray[Any], null: Mask, dtype: pa.DataType) -> pa.Array:
    """Return numbers or ticks as an array of ``dtype``, null where ``null`` is true."""
    array = pa.array(values, mask=null) if null.any() else pa.array(values)
    return array if array.type == dtype else array.view(dtype)


def _before(kept: Mask) -> Ints:
    """How many entries are kept before each entry, and of all: int64 (E+1,)."""
    before = np.zeros(len(kept) + 1, np.int64)
    np.cumsum(kept, out=before[1:])
    counts: Ints = frozen(before)
    return counts


def _without_dropped(membership: Membership, kept: Mask, before: Ints) -> Membership:
    if isinstance(membership, Ranges):
        return entries_of(
            Ranges(before[membership.lo], before[membership.hi], before[membership.base], membership.disjoint)
        )
    row, enter, leave = membership.row[kept], membership.enter[kept], membership.leave[kept]
    return entries_of(Memberships(row, enter, leave, before[membership.first_entry], membership.first_pane))
