"""Blocks of calls with what the methods get: rows as mappings and panes, made column by column."""

from __future__ import annotations

import gc
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cached_property
from itertools import repeat
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints, Mask, combined, spread
from ..errors import DataError
from ..operator import PaneInfo, Row, reason_of
from ..planning.plan import Plan
from ..planning.result_schema import FIXED, OUTPUTS
from ..rows.membership import Memberships, Ranges, gathered, sizes
from ..rows.sequence import Sequences
from .operator_scenes import EVICT, FILL, INSERT, PARTITION, PHASES, TRIGGER, Scene

# Conversion for operators: Arrow columns to Python values, rows and panes.


def key_of(sequences: Sequences, key: int) -> Row:
    """Return the values of the key columns; empty where there is no key."""
    if sequences.keys is None:
        return MappingProxyType({})
    one = sequences.keys.slice(key, 1)
    return MappingProxyType({name: python_values(name, one.column(name))[0] for name in one.column_names})


def python_rows(sequences: Sequences, picks: Ints) -> list[Row]:
    """Return the rows at ``picks`` as read-only mappings of all their columns, including those of the key.

    Each mapping holds its own values, so a row that an operator keeps keeps no other row in memory.
    """
    columns = dict[str, Sequence[Any]]()
    if sequences.keys is not None:
        keys, key = np.unique(np.searchsorted(sequences.bounds, picks, side="right") - 1, return_inverse=True)
        places = key.tolist()
        for name in sequences.keys.column_names:
            values = python_values(name, sequences.keys.column(name).take(pa.array(keys)))
            columns[name] = list(map(values.__getitem__, places))
    rows = pa.array(picks)
    columns |= {
        name: python_values(name, sequences.rows.column(name).take(rows)) for name in sequences.rows.schema.names
    }
    # no line of Python for a row: this takes two thirds of the time of a loop
    pairs = map(zip, repeat(tuple(columns)), zip(*columns.values(), strict=True))
    return list(map(MappingProxyType, map(dict, pairs)))


def pane_infos(plan: Plan, pane_columns: pa.Table, picks: Ints) -> list[PaneInfo]:
    """Return `PaneInfo` for the panes at ``picks``; ``pane_columns``: the columns of all panes in the result."""
    block = pane_columns.select(columns_of_pane(plan)).take(pa.array(picks))
    columns = [python_values(name, block.column(i)) for i, name in enumerate(block.column_names)]
    columns += [[None] * len(picks)] * (len(_SETTERS) - len(columns))
    infos = list(map(object.__new__, repeat(PaneInfo, len(picks))))
    for set_field, values in zip(_SETTERS, columns, strict=True):
        deque(map(set_field, infos, values), maxlen=0)
    return infos


_SETTERS = [getattr(PaneInfo, one.name).__set__ for one in fields(PaneInfo)]
"""Set a field of an instance: column by column takes half the time of the constructor of a frozen value."""


def python_values(name: str, column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return a column as Python values; times in nanoseconds, which Python does not have, as integers.

    Raises `DataError` for times beyond Python's range.
    """
    if pa.types.is_temporal(column.type) and getattr(column.type, "unit", "") == "ns":
        column = column.cast(pa.int64())
    try:
        whole = combined(column)
        return _numbers(whole) or _texts(whole) or _times(whole) or whole.to_pylist()
    except (OverflowError, ValueError) as error:
        what = f"column {name!r} holds {column.type} beyond Python's, which an operator would get ({reason_of(error)})"
        raise DataError(what, "make it a number, or leave such rows out") from None


def _numbers(column: pa.Array) -> list[Any]:
    """Return numbers and truth values as `to_pylist` does, in a tenth of the time; nothing where one is null."""
    is_number = pa.types.is_integer(column.type) or column.type in (pa.float64(), pa.float32(), pa.bool_())
    values: list[Any] = column.to_numpy(zero_copy_only=False).tolist() if is_number and not column.null_count else []
    return values


def _texts(column: pa.Array) -> list[Any]:
    """Return texts as `to_pylist` does, each different one made once; nothing where most are different."""
    if not (pa.types.is_string(column.type) or pa.types.is_dictionary(column.type)):
        return []
    codes = column.dictionary_encode()  # no work for a dictionary
    if 2 * len(codes.dictionary) > len(column):
        return []
    values = [*codes.dictionary.to_pylist(), None]
    return list(map(values.__getitem__, codes.indices.cast(pa.int64()).fill_null(-1).to_numpy().tolist()))


def _times(column: pa.Array) -> list[Any]:
    """Return timestamps without a zone as `to_pylist` does, in a twentieth of the time; nothing for other values."""
    if not pa.types.is_timestamp(column.type) or column.type.tz is not None:
        return []
    values: list[Any] = column.to_numpy(zero_copy_only=False).tolist()  # None for null; integers beyond Python's range
    times = sum(type(value) is datetime for value in values)
    return values if times + column.null_count == len(values) else []


def columns_of_pane(plan: Plan) -> list[int]:
    """Return the indices of the columns that describe a pane: those between the key and the stream columns."""
    count = len(FIXED) + (len(OUTPUTS) if plan.options.event_time else 0)
    count += 0 if plan.windows is None else len(plan.windows.bound.fields)
    return list(range(len(plan.key), len(plan.key) + count))


def of_key(sequences: Sequences, key: int) -> str:
    """Return `` of key NAME=VALUE, ..``, for messages; empty where there is no key."""
    words = ", ".join(f"{name}={_text(value)}" for name, value in key_of(sequences, key).items())
    return f" of key {words}" if words else ""


def _text(value: Any) -> str:
    return repr(value) if isinstance(value, str | bytes) else str(value)


_CALLS = 4096
_ROWS = 1 << 16  # rows that the calls of a block get together


@dataclass(frozen=True, slots=True)
class Block:
    """B calls of a timetable and what they get.

    ``first``, ``stop``: the calls of the timetable that the block covers.
    ``is_silent``: whether calls of `Operator.insert` and `Operator.evict` are left out.
    ``calls``: the number of each call in the timetable, ascending.
    ``groups``: the rows that each call gets, ascending.
    ``infos``: the pane of each call of `Operator.trigger`, None for others.
    ``triggers``: int64 (T,), the calls of `Operator.trigger`.
    ``shown``: int64, the rows that these get; ``bounds``: int64 (T+1,), the bounds of each.
    """

    first: int
    stop: int
    is_silent: bool
    calls: list[int]
    methods: list[int]
    groups: list[tuple[Row, ...]]
    infos: list[PaneInfo | None]
    triggers: Ints
    shown: Ints
    bounds: Ints

    def place(self, call: int) -> int:
        """Return the place of the first call from ``call`` on."""
        return bisect_left(self.calls, call)


class Blocks:
    """The calls of a scene, block after block; the same row is the same object in all of them."""

    def __init__(self, scene: Scene, known: Known | None = None) -> None:
        self.scene = scene
        self.known = known or Known(np.empty(0, np.int64), [])
        self.panes = _ShownRows(scene)
        self.block: Block | None = None
        self.is_silent = True

    def at(self, call: int, is_silent: bool) -> Block:
        """Return a block that covers a call, not before those that were asked for so far.

        ``is_silent``: whether the operator inherits `Operator.insert` and `Operator.evict`.
        """
        block = self.block
        if block is None or not block.first <= call < block.stop or block.is_silent > is_silent:
            self.is_silent &= is_silent  # where some operators have them, the others leave out their calls
            with _collector_off():
                block = self.block = self._make(call)
        return block

    def rows(self, numbers: Ints, time: int) -> list[Row]:
        """Return rows of the scene, ascending, that are in a window at a time, as objects; they stay known."""
        need, places = np.unique(numbers, return_inverse=True)
        found, is_known = self.known.find(need)
        fresh = need[~is_known]
        pool = self.known.rows + python_rows(self.scene.sequences, fresh)
        found[~is_known] = len(self.known.rows) + np.arange(len(fresh))
        values = list(map(pool.__getitem__, found.tolist()))
        alive = _is_alive(self.scene, self.known.numbers, time)
        rest, recent = np.setdiff1d(self.known.numbers[alive], need, assume_unique=True), need
        if len(rest):
            at, _ = self.known.find(rest)
            order = np.argsort(np.concatenate([rest, recent]), kind="stable")
            both = [*map(self.known.rows.__getitem__, at.tolist()), *values]
            self.known = Known(np.concatenate([rest, recent])[order], list(map(both.__getitem__, order.tolist())))
        else:
            self.known = Known(recent, values)
        return list(map(values.__getitem__, places.tolist()))

    @cached_property
    def _loud(self) -> Ints:
        return np.flatnonzero(self.scene.timetable.method >= FILL)

    def _make(self, call: int) -> Block:
        table = self.scene.timetable
        if self.is_silent:
            begin = int(np.searchsorted(self._loud, call))
            picks, last = self._loud[begin : begin + _CALLS], begin + _CALLS >= len(self._loud)
        else:
            picks = np.arange(call, min(call + _CALLS, len(table.time)))
            last = call + _CALLS >= len(table.time)
        method, item, time = table.method[picks], table.item[picks], table.time[picks]
        is_pane, inserts = method == TRIGGER, method == INSERT
        low, high = (np.searchsorted(table.gone_at, time, side=side) for side in ("left", "right"))
        counts = np.where((method == EVICT) | (method == PARTITION), high - low, inserts)
        counts[is_pane] = self.panes.sizes[item[is_pane]]
        size = max(1, int(np.searchsorted(np.cumsum(counts), _ROWS, side="right")))
        if size < len(picks):
            last, picks, method, item, time = False, picks[:size], method[:size], item[:size], time[:size]
            is_pane, inserts, low, counts = is_pane[:size], inserts[:size], low[:size], counts[:size]
        stop = len(table.time) if last else int(picks[-1]) + 1
        shown, shown_counts = self.panes.of(item[is_pane], time[is_pane])
        counts[is_pane] = shown_counts
        bounds = _bounds(counts)
        flat = np.empty(bounds[-1], np.int64)
        flat[spread(bounds[:-1][is_pane], shown_counts)] = shown
        flat[bounds[:-1][inserts]] = item[inserts]
        takes = np.flatnonzero((method == EVICT) | (method == PARTITION))
        flat[spread(bounds[takes], counts[takes])] = table.gone[spread(low[takes], counts[takes])]
        values, ends = tuple(self.rows(flat, int(table.time[call]))), bounds.tolist()
        groups = list(map(values.__getitem__, map(slice, ends, ends[1:])))
        infos = _aligned(pane_infos(self.scene.plan, self.scene.emitted, item[is_pane]), is_pane)
        kept = picks[is_pane], shown, _bounds(shown_counts)
        return Block(call, stop, self.is_silent, picks.tolist(), method.tolist(), groups, infos, *kept)


@dataclass(frozen=True, slots=True)
class Known:
    """Rows that have been made.

    ``numbers``: int64, ascending.
    ``rows``: each as an object.
    """

    numbers: Ints
    rows: list[Row]

    def find(self, numbers: Ints) -> tuple[Ints, Mask]:
        """Return where numbers are, of any value where they are not known, and which are known."""
        if not len(self.numbers):
            return np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.bool_)
        at = np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
        return at, self.numbers[at] == numbers


class _ShownRows:
    """The rows of the panes of a scene, some panes at a time, in the order of calls."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.table, self.membership = scene, scene.timetable, scene.panes.membership
        self.sizes = sizes(self.membership)
        if isinstance(self.membership, Memberships):
            self.entering = np.argsort(self.table.enter[self.membership.row], kind="stable")
            self.enter = self.table.enter[self.membership.row[self.entering]]
            self.alive, self.next = np.empty(0, np.int64), 0

    def of(self, panes: Ints, times: Ints) -> tuple[Ints, Ints]:
        """Return the rows that are in their windows at ``times``, pane after pane and ascending, and their counts."""
        if isinstance(self.membership, Ranges):
            counts = self.membership.hi[panes] - self.membership.lo[panes]
            rows = spread(self.membership.lo[panes], counts)
            rows = rows if self.membership.row is None else self.membership.row[rows]
        else:
            rows, counts = self._of_memberships(self.membership, panes, times)
        pane = np.repeat(np.arange(len(panes)), counts)
        if not (rows[1:] > rows[:-1]).all():  # as where no row is in two panes and entries are rows
            order = np.lexsort([rows, pane])
            rows = rows[order]
        time = times[pane]
        held = (self.table.enter[rows] < time) & (time <= self.table.leave[rows])
        if not held.all():
            rows, counts = rows[held], np.bincount(pane[held], minlength=len(panes))
        return rows, counts

    def _of_memberships(self, lives: Memberships, panes: Ints, times: Ints) -> tuple[Ints, Ints]:
        """As `of`; entries of rows that are in no window during these panes are not looked at."""
        if not len(panes):
            return panes, panes
        until = int(np.searchsorted(self.enter, times[-1]))
        entries = np.concatenate([self.alive, self.entering[self.next : until]])
        self.alive = entries = entries[_is_alive(self.scene, lives.row[entries], int(times[0]))]
        self.next = max(self.next, until)
        order = np.argsort(panes)
        enter, leave = (np.searchsorted(panes[order], ends[entries]) for ends in (lives.enter, lives.leave))
        some = np.flatnonzero(enter < leave)
        ends = np.array([0, len(some)]), np.array([0, len(panes)])
        rows, bounds = gathered(Memberships(lives.row[entries[some]], enter[some], leave[some], *ends), 0, len(panes))
        place = np.argsort(order)
        counts = np.diff(bounds)[place]
        return rows[spread(bounds[:-1][place], counts)], counts


def _is_alive(scene: Scene, rows: Ints, time: int) -> Mask:
    """Return which rows may be in a window at a time or later: those that have not left, of keys that are not done."""
    key = scene.timetable.events.key[time // PHASES]
    return (scene.timetable.leave[rows] >= time) & (rows >= scene.sequences.bounds[key])


@contextmanager
def _collector_off() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _bounds(counts: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _aligned(infos: Sequence[PaneInfo], is_pane: Mask) -> list[PaneInfo | None]:
    if len(infos) == len(is_pane):
        return list(infos)
    rest = iter(infos)
    return [next(rest) if own else None for own in is_pane.tolist()]
