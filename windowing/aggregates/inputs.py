"""The inputs of an aggregate: its columns, its literals and the panes; and the removal of nulls from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import INT64_DIGITS, Ints, Mask, is_measurable, measures
from ..columns.sort_keys import sort_codes
from ..columns.text_sort import is_text, offsets_and_bytes
from ..columns.value_words import Words, float_words
from ..errors import DataError
from ..rows.membership import Membership, Memberships, Ranges, covered, gathered, part, sizes
from . import loops
from .loops import Codes, EqualityKeys, Floats, Numbers

# Arrow columns as the arrays that kernels take: zero-copy where the type is 64 bit wide already.
#
# Every function here takes a column without nulls.


_SIGN = np.int64(-(2**63))
_END = 2.0**63
_WHOLE = 2**53  # floats hold all whole numbers up to it


def frozen(values: npt.NDArray[Any]) -> Any:
    """Return an array as contiguous, aligned and read-only, so that kernels are compiled for one type.

    Views of Arrow buffers are read-only as well.
    """
    view = np.require(values, requirements=("C", "A")).view()
    view.flags.writeable = False
    return view


def plain_type(dtype: pa.DataType) -> pa.DataType:
    """Return the type of a column's values after decoding: dictionaries, run ends, views and small decimals."""
    types = pa.types
    if types.is_dictionary(dtype) or types.is_run_end_encoded(dtype):
        return plain_type(dtype.value_type)
    if types.is_string_view(dtype) or types.is_binary_view(dtype):
        return pa.string() if types.is_string_view(dtype) else pa.binary()
    if types.is_decimal32(dtype) or types.is_decimal64(dtype):
        return pa.decimal128(dtype.precision, dtype.scale)
    return dtype


def plain(column: pa.Array) -> pa.Array:
    """Return a column in its `plain_type`."""
    if pa.types.is_run_end_encoded(column.type):
        return plain(pc.run_end_decode(column))
    if pa.types.is_dictionary(column.type):
        return pa.DictionaryArray.from_arrays(column.indices, plain(column.dictionary)).dictionary_decode()
    wanted = plain_type(column.type)
    return column if wanted == column.type else column.cast(wanted)


def is_unsigned(dtype: pa.DataType) -> bool:
    """Whether the bits that `integers` returns for a type are unsigned."""
    return bool(pa.types.is_uint64(dtype))


def integers(column: pa.Array) -> Ints:
    """Return int64 of shape (n,): integers, booleans as 0 and 1, ticks; uint64 keeps its bits (`is_unsigned`)."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int64())
    words = measures(column)
    return frozen(words ^ _SIGN if is_unsigned(column.type) else words)


def floats(column: pa.Array) -> Floats:
    """Return float64 of shape (n,), the nearest to each integer, boolean, float or (up to 2**53 units) decimal."""
    if pa.types.is_decimal(column.type) and is_ticks(column.type):
        return frozen(ticks(column) / 10.0**column.type.scale)  # Arrow's own cast multiplies, and misses by a bit
    if pa.types.is_decimal(column.type):
        return frozen(measures(column.cast(pa.float64())))
    if pa.types.is_floating(column.type):
        return frozen(measures(column).astype(np.float64, copy=False))
    words = integers(column)
    return frozen((words.view(np.uint64) if is_unsigned(column.type) else words).astype(np.float64))


def halves(values: Numbers, unsigned: bool = False) -> tuple[Floats, Floats]:
    """Return 64 bit numbers exactly as sums of two floats: the nearest, and the rest, empty if all rests are 0.

    ``unsigned``: whether int64 are the bits of unsigned integers.
    """
    if values.dtype.kind == "f":
        return values.astype(np.float64, copy=False), np.empty(0, np.float64)
    if not unsigned and values.size and values.min() >= -_WHOLE and values.max() <= _WHOLE:
        return values.astype(np.float64), np.empty(0, np.float64)
    words = values.view(np.uint64) if unsigned else values
    high = words.astype(np.float64)
    end = 2 * _END if unsigned else _END
    near = np.where(
        high < end, high, high - 2 * _END
    )  # 2**63 or 2**64, to which the largest integers round, wraps around
    low = (words - near.astype(words.dtype)).view(np.int64)  # and the difference wraps back, so it is exact
    return high, low.astype(np.float64) if low.any() else np.empty(0, np.float64)


def from_halves(high: Floats, low: Floats) -> tuple[Ints, Mask]:
    """Return integers given as `halves` as int64, and which of them do not fit."""
    fits = (abs(high) < _END) | ((high == _END) & (low < 0)) | ((high == -_END) & (low >= 0))
    near = np.where(high < _END, high, high - 2 * _END)
    return np.where(fits, near, 0.0).astype(np.int64) + np.where(fits, low, 0.0).astype(np.int64), ~fits


def decimal_words(column: pa.Array) -> list[Ints]:
    """Return the 64 bit words of a decimal's unscaled values, the least first; only the last is signed."""
    words = _words_of(column)
    return [frozen(words[:, i]) for i in range(words.shape[1])]


def _words_of(column: pa.Array) -> Ints:
    width = column.type.bit_width // 64
    buffer = column.buffers()[1]
    if buffer is None or not len(column):
        return np.empty((0, width), np.int64)
    words: Ints = np.frombuffer(buffer, np.int64)[column.offset * width :][: len(column) * width].reshape(-1, width)
    return words


def exact_numbers(column: pa.Array) -> Numbers:
    """Return floats as they are, and integers, booleans and the unscaled values of decimals as words of 64 bit.

    Words have the shape (n, W): the least first, only the last signed.
    """
    if pa.types.is_floating(column.type):
        return floats(column)
    if pa.types.is_decimal(column.type):
        return _words_of(column)
    words = integers(column)
    if is_unsigned(column.type):
        words = np.stack([words, np.zeros(len(words), np.int64)], axis=1)
    return words.reshape(len(column), 2 if is_unsigned(column.type) else 1)


def scale_of(column: pa.Array) -> int:
    """Return the number of decimal places of a decimal column, 0 for any other type."""
    return int(column.type.scale) if pa.types.is_decimal(column.type) else 0


def number_halves(column: pa.Array) -> tuple[Floats, Floats]:
    """Return numbers as `halves`, decimals unscaled; for decimals of more than 64 bit the first float is NaN."""
    if pa.types.is_decimal(column.type):
        numbers: Numbers = ticks(column) if is_ticks(column.type) else np.full(len(column), np.nan)
    else:
        numbers = floats(column) if pa.types.is_floating(column.type) else integers(column)
    high, low = halves(numbers, is_unsigned(column.type))
    return frozen(high), frozen(low)


def is_ticks(dtype: pa.DataType) -> bool:
    """Whether a type's values are whole `ticks` of 64 bit."""
    if pa.types.is_decimal(dtype):
        return bool(dtype.precision <= INT64_DIGITS)
    return bool(is_measurable(dtype) and not pa.types.is_floating(dtype))


def ticks(column: pa.Array) -> Ints:
    """Return int64 of shape (n,) with the order and the differences of the values; see `is_ticks`."""
    wide = pa.types.is_decimal256(column.type)
    return frozen(measures(column.cast(pa.decimal128(INT64_DIGITS, column.type.scale)) if wide else column))


def order_keys(column: pa.Array) -> Numbers:
    """Return int64 or float64 of shape (n,) that sort like the values of any sortable type; NaN stays NaN."""
    dtype = column.type
    if pa.types.is_floating(dtype):
        return floats(column)
    if pa.types.is_boolean(dtype):
        return integers(column)
    if is_ticks(dtype):
        return ticks(column)
    return frozen(sort_codes(column.dictionary_encode())[0])


def codes(column: pa.Array) -> tuple[Codes, int]:
    """Return a code for each value, int32 (n,), and how many codes there are; -0.0 equals 0.0, NaN equals NaN."""
    if pa.types.is_floating(column.type):
        column = pa.array(float_words(_words(floats(column))))
    encoded = column.dictionary_encode()
    return frozen(encoded.indices.to_numpy()), len(encoded.dictionary)


def equality_keys(column: pa.Array) -> EqualityKeys:
    """Return what decides which values of a column are equal; -0.0 equals 0.0, NaN equals NaN."""
    dtype = column.type
    if is_text(dtype):
        offsets, data = offsets_and_bytes(column)
        return NO_KEYS._replace(offsets=frozen(offsets), data=frozen(data))
    words: npt.NDArray[Any]
    if pa.types.is_floating(dtype):
        words = float_words(_words(floats(column)))
    elif pa.types.is_boolean(dtype):
        words = integers(column)
    else:
        words = ticks(column) if is_ticks(dtype) else codes(column)[0].astype(np.int64)
    return NO_KEYS._replace(words=_words(words))


NO_KEYS = EqualityKeys(*(frozen(np.empty(0, kind)) for kind in (np.uint64, np.int64, np.uint8)))
"""Those of no values."""


def _words(values: npt.NDArray[Any]) -> Words:
    words: Words = frozen(values.view(np.uint64))
    return words


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
class Spans:
    """What P panes cover of the clock, for aggregates by which a value of a key holds until its next one (section 9).

    ``clock``: (n,), the clock of each row, ascending in each sequence: int64 ticks, or float64.
    ``per_second``: how many ticks make one second.
    ``bounds``: int64 (S+1,), the bounds of the sequences among the rows.
    ``sequence``: int64 (P,), the sequence of each pane.
    ``begin``, ``end``: (P,), what each pane covers of the clock, half open.
    ``stop``: int64 (P,), the end of the rows of each pane; 0 for an empty pane.
    ``known``: bool (n,), which rows have a say; None: all.
    ``before``: (S,), the value that each sequence had before its first row; null where it had none.
    """

    clock: Numbers
    per_second: int
    bounds: Ints
    sequence: Ints
    begin: Numbers
    end: Numbers
    stop: Ints
    known: Mask | None
    before: pa.Array

    def having_values(self, column: pa.Array) -> Ints:
        """Return the rows that have a value in a column, int64, ascending."""
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        return np.flatnonzero(valid if self.known is None else valid & self.known)


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
    ``spans``: what the panes cover of the clock, where the call asks for it; then columns have a value for each row.
    """

    columns: tuple[pa.Array, ...]
    names: tuple[str, ...]
    literals: tuple[Any, ...]
    ranked: Ranked
    type: pa.DataType
    call: str
    cache: dict[str, Any]
    spans: Spans | None = None

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
class TwoPhase:
    """An aggregate in two phases, before and after the exchange (semantics section 9).

    The first phase turns some rows of a pane into a few columns: exact sums that cannot overflow, a few floats with the
    same true sum as many, extremes. The second phase merges these columns. Its result is, to the bit, the result of one
    phase over all rows.

    ``columns``: how many columns the first phase leaves.
    ``split``: the first phase, over disjoint panes; returns that many arrays.
    ``merge``: the second phase, over inputs with these arrays as their columns.
    ``in_order``: whether a first phase must take rows that follow one another, and the second its results in order.
    ``fits``: whether there are two phases for the plain types of the columns of a call, and its literals.
    """

    columns: int
    split: Callable[[Inputs], list[pa.Array]]
    merge: Callable[[Inputs], pa.Array]
    in_order: bool = False
    fits: Callable[[Sequence[pa.DataType], Sequence[Any]], bool] = lambda _types, _literals: True


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
    is_long = hi - lo > loops.FEW
    keys = NO_KEYS if is_long.all() else equality_keys(column)
    found, distinct = _codes_of_panes(column, lo, hi, is_long)
    first: Ints = frozen(loops.first_equals(keys, found, distinct, len(column), lo, hi))
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


def list_array(bounds: Ints, values: Any, null: Mask | None = None) -> pa.Array:
    """Return lists of neighbouring values, (n,); ``bounds``: int64 (n+1,). ``null``: which are null; None: none."""
    return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), values, mask=None if null is None else pa.array(null))


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
