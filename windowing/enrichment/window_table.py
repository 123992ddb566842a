"""The windows of a table: bound to the clock and the keys of a window, read, and in force from run to run."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..columns.arrays import INT64_DIGITS, ClockValue, Ints, Mask, Measures, combined, is_measurable, measures, scale_of
from ..columns.row_hashes import RowHasher
from ..errors import ConfigError, DataError, did_you_mean
from ..language.enrichment import WindowsFrom
from ..language.tokens import column_text
from ..ports import Source
from ..rows.sequence import group_codes
from ..support.amounts import size
from ..support.column_types import plain
from .binding import ComparedPair, bind_keys, bind_taken, common_type
from .table import as_seen, compared, place_of, read_all

PLACE, PASSED = "__place", "__passed"
"""Columns of windows: their place in the table; and in a state, whether they are known, and no longer in force."""
_MOST_BYTES = 64 << 20  # each task has the whole table
_LARGEST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class BoundWindows:
    """A table of windows that fits the clock and the keys of a window. It pickles.

    ``keys``: the columns of the key that windows are for, with those of the table.
    ``clock``: the type of the clock column.
    ``compared``: the type in which the clock and the bounds are compared.
    ``type``: the type of the bounds in the result.
    ``taken``: the columns to take, by their names in the table.
    ``fields``: the columns as the result gets them, in the same order.
    ``is_right``: whether windows are closed on the right.
    ``empty``: which windows without rows come out: none, those between the first and the last row of a key, or those
        of each key that the table names.
    """

    request: WindowsFrom
    keys: tuple[ComparedPair, ...]
    clock: pa.DataType
    compared: pa.DataType
    type: pa.DataType
    taken: tuple[str, ...]
    fields: tuple[pa.Field, ...]
    is_right: bool
    empty: str

    @property
    def who(self) -> str:
        return f"--windows {self.request.name}"

    @property
    def right(self) -> tuple[str, ...]:
        keys = (pair.right for pair in self.keys)
        return tuple(dict.fromkeys([*keys, self.request.start, self.request.end, *self.taken]))


NO_EMPTY, BETWEEN_ROWS, OF_KEYS = "none", "between rows", "of keys"
"""The values of ``empty``."""


def bind_windows(
    request: WindowsFrom,
    table: pa.Schema,
    schema: pa.Schema,
    key: Sequence[str],
    clock: str,
    *,
    is_right: bool,
    with_empty: bool,
    own: Sequence[str] = (),
) -> BoundWindows:
    """Bind a table of windows to the columns of the rows.

    ``table``: the columns of the table; ``schema``: those of the rows; ``clock``: the clock column among these.
    ``own``: columns that the table has as a stream of wincli, which are taken only by name. Raises `ConfigError` for a
    column that is missing, a key that the window does not have, and types that cannot be compared.
    """
    who = f"--windows {request.name}"
    for pair in request.keys:
        if pair.left not in key:
            keys = ",".join(map(column_text, [*key, pair.left]))
            raise ConfigError(f"{who}: {pair.left!r} is no key of the window", f"give --key {keys}")
    pairs, kind = bind_keys(who, request.keys, schema, table), _signed(schema.field(clock).type)
    compared = kind
    for name in (request.start, request.end):
        if name not in table.names:
            raise ConfigError(f"{who}: its table has no column {name!r}", did_you_mean(name, table.names))
        wide = common_type(compared, _signed(plain(table.field(name).type)))
        if wide is None:
            what = f"{who}: {name!r} is {table.field(name).type} and {clock!r} is {kind}: these do not compare"
            raise ConfigError(what, "give both columns one type before, in the files or with --schema")
        compared = wide
    if not is_measurable(compared) or (pa.types.is_decimal(compared) and compared.precision > INT64_DIGITS):
        what = f"{who}: bounds and clock are compared as {compared}"
        raise ConfigError(what, "a clock is a time or a number of 64 bits; give its type with --schema")
    given = [(taken.column, taken.name) for taken in request.take or ()]
    if request.take is None:
        left_out = {*(pair.right for pair in pairs), request.start, request.end, *own}
        given = [(name, None) for name in table.names if name not in left_out]
    taken, fields = bind_taken(who, request.name, given, key, table)
    shown = pa.timestamp(compared.unit, kind.tz) if pa.types.is_timestamp(compared) and _zone(kind) else compared
    empty = NO_EMPTY
    if with_empty:
        empty = OF_KEYS if pairs and {pair.left for pair in pairs} == {*key} else BETWEEN_ROWS
    return BoundWindows(request, pairs, kind, compared, shown, taken, fields, is_right, empty)


def _signed(kind: pa.DataType) -> pa.DataType:
    return pa.int64() if pa.types.is_uint64(kind) else kind  # as which a clock is read


def _zone(kind: pa.DataType) -> str | None:
    return kind.tz if pa.types.is_timestamp(kind) else None


@dataclass(frozen=True, slots=True)
class WindowTable:
    """The windows that are in force in a run. Equal are only those of one token. It pickles.

    ``rows``: W windows: the columns ``bound.right``, and `PLACE`.
    ``token``: what no other windows have.
    ``in_table``: bool (W,), which of them the table of this run has; the others are those of a state alone.
    ``passed``: windows of the table that are not in force: they are over, or came too late.
    ``late``: how many of these no run has known before.
    """

    bound: BoundWindows = field(compare=False)
    rows: pa.Table = field(compare=False, repr=False)
    token: str
    in_table: Mask = field(compare=False, repr=False)
    passed: pa.Table = field(compare=False, repr=False)
    late: int = field(default=0, compare=False)

    @property
    def attributes(self) -> list[pa.Array]:
        """The taken columns, (W,)."""
        return [combined(self.rows.column(name)) for name in self.bound.taken]

    @property
    def schema(self) -> pa.Schema:
        """The columns of windows in a state."""
        return self.rows.schema.append(pa.field(PASSED, pa.bool_()))


def window_table(
    bound: BoundWindows, rows: pa.Table, place: Callable[[int], tuple[str, int]] | None = None
) -> WindowTable:
    """Return the rows of a table as windows.

    ``rows``: with the columns ``bound.right``, in the order of the table. ``place``: returns the file and the number of
    a row; None: rows have no other place than in ``rows``. Raises `DataError` where a row is no window.
    """
    rows = rows.select(list(bound.right))
    _check(bound, rows, place or (lambda at: ("the table", at + 1)))
    rows = rows.append_column(PLACE, pa.array(np.arange(rows.num_rows)))
    return _in_force(bound, rows, np.ones(rows.num_rows, np.bool_), rows.slice(0, 0))


class GivenTable(NamedTuple):
    """A table of windows that is open, and not read yet.

    ``schema``: its columns. ``own``: those that it has as a stream of wincli.
    """

    request: WindowsFrom
    schema: pa.Schema
    own: tuple[str, ...] = ()


def tables_of(table: WindowTable) -> dict[str, pa.Table]:
    """Return windows as `wincli.aggregate` takes them: by their request without a path."""
    request = table.bound.request
    return {f"{request.name} {request.clauses}": table.rows.select(list(table.bound.right))}


def no_windows(bound: BoundWindows, table: pa.Schema) -> WindowTable:
    """Return a table of windows that has not been read yet."""
    return window_table(bound, pa.schema([table.field(name) for name in bound.right]).empty_table())


def read_windows(bound: BoundWindows, source: Source) -> WindowTable:
    """Read the windows of a table. Raises as `window_table`, and the readers of rows, do."""
    rows, pos = read_all(bound, source, None)
    if rows.nbytes > _MOST_BYTES:
        what = (
            f"{bound.who}: its columns take {size(rows.nbytes)}, and each task holds them: at most {size(_MOST_BYTES)}"
        )
        raise DataError(what, "take fewer columns, or leave out windows that no row can be in")
    return window_table(bound, rows, lambda at: place_of(source, int(pos[at])))


def _in_force(bound: BoundWindows, rows: pa.Table, in_table: Mask, passed: pa.Table, late: int = 0) -> WindowTable:
    return WindowTable(bound, rows, uuid.uuid4().hex, in_table, passed, late)


def _check(bound: BoundWindows, rows: pa.Table, place: Callable[[int], tuple[str, int]]) -> None:
    start, end = (comparable(bound, rows, name) for name in (bound.request.start, bound.request.end))
    named = {**{pair.right: f"no {pair.right}" for pair in bound.keys}, bound.request.start: "no start"}
    lacks = {name: _has_none(rows, name) for name in {**named, bound.request.end: "no end"}}
    backwards = measures(end) < measures(start)
    bad = np.flatnonzero(np.logical_or.reduce([*lacks.values(), backwards]))
    if not len(bad):
        return
    at = int(bad[0])
    path, line = place(at)
    what = next((f"has {named.get(name, 'no end')}" for name, missing in lacks.items() if missing[at]), None)
    if what is None:
        texts = [
            str(combined(rows.column(name)).slice(at, 1).cast(pa.string())[0])
            for name in (bound.request.end, bound.request.start)
        ]
        what = f"ends ({texts[0]}) before it begins ({texts[1]})"
    do = "correct it: a window has a start, an end that is not before it, and the keys that it is for"
    raise DataError(f"{bound.who}: row {line} of {path} {what}", do)


def _has_none(rows: pa.Table, name: str) -> Mask:
    column = combined(rows.column(name))
    missing = column.is_null(nan_is_null=True) if pa.types.is_floating(column.type) else column.is_null()
    return np.asarray(missing.to_numpy(zero_copy_only=False), np.bool_)


def comparable(bound: BoundWindows, rows: pa.Table, name: str) -> pa.Array:
    """Return bounds in the type in which they are compared. Raises `DataError` for one that it does not hold."""
    column = combined(rows.column(name))
    try:
        return column.cast(bound.compared)
    except pa.ArrowInvalid as error:
        if pa.types.is_uint64(column.type) and pa.types.is_int64(bound.compared):
            what = f"{bound.who}: {name!r} holds numbers beyond 2**63 - 1"
            do = "write that number in their place: a clock has 64 signed bits, and no row is behind it"
            raise DataError(what, do) from None
        what = f"{bound.who}: a value of {name!r} does not fit {bound.compared}: {error}"
        raise DataError(what, "give the clock and both bounds one type that holds it") from error


# The bounds of windows on the clock of the rows: half open, whichever side is closed.


class Bounds(NamedTuple):
    """The bounds of W windows, in measures of the clock column, int64 or float64 (W,).

    ``begin``, ``stop``: a row is in the window iff its clock is in ``[begin, stop)``; when the clock is at ``stop``, or
        behind it, the window is complete.
    ``fixed``: when the clock is there, no table changes the window.
    """

    begin: Measures
    stop: Measures
    fixed: Measures


def bounds_of(bound: BoundWindows, rows: pa.Table) -> Bounds:
    """Return the bounds of windows."""
    start, end = (_ticks(bound, comparable(bound, rows, name)) for name in (bound.request.start, bound.request.end))
    if not bound.is_right:
        return Bounds(start[1], end[1], start[1])
    return Bounds(_behind(start[0]), _behind(end[0]), start[1])


def spans_of(bound: BoundWindows, rows: pa.Table) -> tuple[Measures, Measures, Mask]:
    """Return from when to when W windows last, widened to ticks of the clock, (W,), and which have no length.

    A row that lasts over ``[t, u)`` shares time with a window iff ``t`` is before the one end, and ``u`` behind the
    other, whichever side is closed.
    """
    start, end = (comparable(bound, rows, name) for name in (bound.request.start, bound.request.end))
    return _ticks(bound, start)[0], _ticks(bound, end)[1], measures(start) == measures(end)


def _ticks(bound: BoundWindows, column: pa.Array) -> tuple[Measures, Measures]:
    """Return instants in ticks of the clock, rounded down and up; of a clock of floats, as they are."""
    values, own, wanted = measures(column), scale_of(column.type).per_second, scale_of(bound.clock).per_second
    if wanted is None:
        exact = values.astype(np.float64)
        return exact, exact
    if own is None:
        exact = values.astype(np.float64) * float(wanted)
        low, high = (
            np.clip(whole, -(2.0**63), 2.0**63 - 1024).astype(np.int64) for whole in (np.floor(exact), np.ceil(exact))
        )
        return low, high
    fine = own / wanted if not pa.types.is_null(bound.clock) else Fraction(1)
    assert fine.denominator == 1, "bounds are compared in a type that is at least as fine as the clock"
    return values // fine.numerator, -(-values // fine.numerator)


def _behind(values: Measures) -> Measures:
    if values.dtype.kind == "f":
        return np.nextafter(values, np.inf)
    return np.where(values < _LARGEST, values + 1, _LARGEST)


@lru_cache(maxsize=16)  # slices, segments and batches ask again
def _ends_last(table: WindowTable) -> bool:
    """Whether a window that has a length is closed on the right at the last instant, behind which it is to end."""
    bound, (start, end) = table.bound, (table.bound.request.start, table.bound.request.end)
    low, high = (_ticks(bound, comparable(bound, table.rows, name))[0] for name in (start, end))
    return bound.is_right and high.dtype.kind != "f" and bool(((high == _LARGEST) & (low < high)).any())


def check_last(table: WindowTable, values: Measures) -> None:
    """Raise `DataError` for a row at the last instant of 64 bit, where a window that is closed on the right ends."""
    if _ends_last(table) and values.max(initial=0) == _LARGEST:
        what = f"{table.bound.who}: a row is at {_LARGEST}, where a window ends that is closed on the right"
        raise DataError(
            f"{what}, and no instant of 64 bit is behind it", "leave such rows out, or end the window before"
        )


# From run to run: a window is fixed when the clock has reached its start. From then on a state holds it. Those that
# begin are the table's. Tables of units add up: a state holds what begins, too, until it is fixed, or a later table has
# windows of the same keys and start in its place.


def in_force(table: WindowTable, before: pa.Table | None, clock: ClockValue | None) -> WindowTable:
    """Return the windows in force behind a cut: those that are fixed and not over, and of the table those that begin.

    Of tables of units also those that begin in tables before, unless this one has windows of their keys and start.
    ``before``: windows as `known_windows` leaves them; None: there was no run before. ``clock``: where it stood then.
    """
    bound = table.bound
    if before is None or (clock is None and not bound.request.of_unit):
        return table
    known = as_seen(bound, before, table.rows.schema)
    _, stop, fixed = bounds_of(bound, known)
    goes_on = ~_is_reached(stop, clock) | (bound.empty == BETWEEN_ROWS)
    passed = combined(before.column(PASSED)).to_numpy(zero_copy_only=False)
    is_held = ~passed & _is_reached(fixed, clock) & goes_on
    is_old = _is_reached(bounds_of(bound, table.rows).fixed, clock)
    old, new = table.rows.filter(pa.array(is_old)), table.rows.filter(pa.array(~is_old))
    pending = known.slice(0, 0)
    if bound.request.of_unit:
        pending = known.filter(pa.array(~passed & ~_is_reached(fixed, clock)))
        pending = pending.filter(pa.array(~_is_replaced(bound, pending, new)))
    own, seen = _identities(bound, old), _identities(bound, known, passed)
    held = known.filter(pa.array(is_held))
    in_table = np.repeat([False, True], [pending.num_rows, new.num_rows])
    in_table = np.concatenate([np.isin(seen[is_held], own), in_table])
    left = old.filter(pa.array(~np.isin(own, seen[is_held])))
    rows, late = pa.concat_tables([held, pending, new]), int(np.count_nonzero(~np.isin(own, seen)))
    return _in_force(bound, rows, in_table, left, late)


def known_windows(table: WindowTable, clock: ClockValue | None) -> pa.Table:
    """Return what the next run must know of windows: those that are fixed and not over, and those that tables repeat.

    Of tables of units also those that begin, for the next unit has another table. ``clock``: where it stands. Windows
    that are over are known as long as the table has them: then they are not new.
    """
    rows = table.rows
    _, stop, fixed = bounds_of(table.bound, rows)
    is_fixed = _is_reached(fixed, clock)
    is_passed = _is_reached(stop, clock) & (table.bound.empty != BETWEEN_ROWS)
    is_kept = is_fixed & (~is_passed | table.in_table)
    if table.bound.request.of_unit:
        is_kept |= ~is_fixed
    kept = rows.filter(pa.array(is_kept))
    flags = np.concatenate([is_passed[is_kept], np.ones(table.passed.num_rows, np.bool_)])
    return pa.concat_tables([kept, table.passed]).append_column(PASSED, pa.array(flags))


def _is_reached(values: Measures, clock: ClockValue | None) -> Mask:
    return np.zeros(len(values), np.bool_) if clock is None else np.asarray(values <= clock)


def _is_replaced(bound: BoundWindows, rows: pa.Table, new: pa.Table) -> Mask:
    """Return which windows have the keys and the start of one that is new, bool (n,)."""
    both = pa.concat_tables([rows, new])
    keys = [compared(both.column(pair.right), pair) for pair in bound.keys]
    codes, _ = group_codes([*keys, comparable(bound, both, bound.request.start)])
    return np.isin(codes[: rows.num_rows], codes[rows.num_rows :])


def _identities(bound: BoundWindows, rows: pa.Table, last: Mask | None = None) -> Ints:
    """Return for each window a number that an equal one has, too: the first of equals the first, and so on.

    ``last``: bool (n,), which are the last among equals.
    """
    hasher = RowHasher(pa.schema([rows.schema.field(name) for name in bound.right]))
    hashes = hasher.hashes(rows.select(list(bound.right))).view(np.int64)
    order = np.lexsort([np.zeros(len(hashes), np.bool_) if last is None else last, hashes])
    begins = np.flatnonzero(np.append(True, hashes[order][1:] != hashes[order][:-1])[: len(order)])
    number = np.arange(len(order)) - np.repeat(begins, np.diff(np.append(begins, len(order))))
    found = np.empty(len(order), np.int64)
    found[order] = hashes[order] + number
    return found
