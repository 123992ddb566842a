"""Windows that differ: pairs with the same identity whose values differ, and those that only one side has."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ....windowing.columns.arrays import combined
from ....windowing.columns.row_hashes import RowHasher
from ....windowing.columns.value_words import Words, words_of
from ...console.table import is_number

# The rows of two results that are not in both: equal rows cancel each other as both are read, side by side.
#
# The rows of two similar results come in similar orders, so most cancel soon, by their hashes. What is left waits,
# and where too much waits it goes to temporary files, one for each side and for each of some buckets of windows. In
# the end each bucket is looked at by itself. So memory is bounded for results of any size, in whatever order they
# are.


WAITING = 1 << 20
"""Rows of one side that wait for their equals, and about the rows of one bucket."""
_STEP = 1 << 17
_MOST_BUCKETS = 256
_ROUND = np.uint64(0x9E3779B97F4A7C15)


@dataclass(slots=True)
class _Side:
    """One side: rows that wait, with their hashes; how many were read, of how many.

    ``total``: about how many rows there are.
    ``read``: how many were read. ``is_done``: whether all were.
    ``waiting``, ``hashes``: the rows that wait, and the hash of each, uint64 (n,).
    """

    tables: Iterator[pa.Table]
    total: int
    schema: pa.Schema
    read: int = 0
    is_done: bool = False
    waiting: pa.Table = field(init=False)
    hashes: Words = field(init=False)

    def __post_init__(self) -> None:
        self.drop_all()

    @property
    def share(self) -> float:
        """Which share of its rows has been read; 2 at its end, so that the other side is read on."""
        return 2.0 if self.is_done else self.read / max(1, self.total)

    def advance(self, hasher: RowHasher) -> None:
        """Read the next table, if there is one."""
        table = next(self.tables, None)
        if table is None:
            self.is_done = True
            return
        self.read += table.num_rows
        self.waiting = pa.concat_tables([self.waiting, table])
        self.hashes = np.concatenate([self.hashes, hasher.hashes(table)])

    def keep(self, kept: npt.NDArray[np.bool_]) -> None:
        """Drop the rows that wait and are not among ``kept``, bool (n,)."""
        self.waiting, self.hashes = self.waiting.filter(pa.array(kept)), self.hashes[kept]

    def drop_all(self) -> None:
        """Drop all rows that wait."""
        self.waiting, self.hashes = self.schema.empty_table(), np.empty(0, np.uint64)


def leftovers(
    a: Iterable[pa.Table],
    b: Iterable[pa.Table],
    rows: tuple[int, int],
    schema: pa.Schema,
    identity: Sequence[str],
    waiting: int = WAITING,
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yield the rows that only one side has, in pairs of tables: all rows of a window are in one pair.

    ``a``, ``b``: the rows of both sides with the columns of ``schema``. ``rows``: about how many each side has.
    ``identity``: the columns that make a window. ``waiting``: the most rows that wait in memory.
    """
    hasher = RowHasher(schema)
    sides = _Side(_steps(a), rows[0], schema), _Side(_steps(b), rows[1], schema)
    with ExitStack() as stack:
        buckets = _Buckets(schema, identity, min(_MOST_BUCKETS, 1 + sum(rows) // max(1, waiting)), stack)
        while not all(side.is_done for side in sides):
            min(sides, key=lambda side: side.share).advance(hasher)
            _cancel(*sides)
            if sum(side.waiting.num_rows for side in sides) > waiting:
                buckets.put(sides)
        if buckets.folder is None:
            yield sides[0].waiting, sides[1].waiting
            return
        buckets.put(sides)
        for one, other in buckets.pairs():
            yield without_equals(one, other, schema, hasher)


def without_equals(one: pa.Table, other: pa.Table, schema: pa.Schema, hasher: RowHasher) -> tuple[pa.Table, pa.Table]:
    """Return the rows of two tables without those that are in both, as far as ``hasher`` looks at them."""
    a, b = _Side(iter([one]), 0, schema), _Side(iter([other]), 0, schema)
    a.advance(hasher)
    b.advance(hasher)
    _cancel(a, b)
    return a.waiting, b.waiting


def _steps(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    for table in tables:
        for start in range(0, table.num_rows, _STEP):
            yield table.slice(start, _STEP)


def _cancel(a: _Side, b: _Side) -> None:
    if not len(a.hashes) or not len(b.hashes):
        return
    if np.array_equal(a.hashes, b.hashes):
        a.drop_all()
        b.drop_all()
        return
    for side, gone in zip((a, b), paired(a.hashes, b.hashes), strict=True):
        if len(gone):
            kept = np.ones(len(side.hashes), np.bool_)
            kept[gone] = False
            side.keep(kept)


def paired(one: Words, other: Words) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the places of equal hashes in both, in pairs: int64 (k,) each. Several of one hash pair in their order."""
    (mine, at), (others, in_other) = _numbered(one), _numbered(other)
    _, a, b = np.intersect1d(mine, others, assume_unique=True, return_indices=True)
    return at[a], in_other[b]


def _numbered(hashes: Words) -> tuple[Words, npt.NDArray[np.int64]]:
    """Return hashes in ascending order, each mixed with how many equal ones stand before it, and their places.

    They are nearly sorted, so that to sort them with others takes half of the time.
    """
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    is_new = np.append(True, ordered[1:] != ordered[:-1])[: len(hashes)]
    starts = np.flatnonzero(is_new)
    ranks = np.arange(len(hashes)) - starts[np.cumsum(is_new) - 1]
    return ordered + ranks.astype(np.uint64) * _ROUND, order


@dataclass(slots=True)
class _Buckets:
    """Rows in temporary files, each row in the bucket of its window."""

    schema: pa.Schema
    identity: Sequence[str]
    count: int
    stack: ExitStack
    folder: Path | None = None
    writers: dict[tuple[int, int], pa.RecordBatchStreamWriter] = field(default_factory=dict)

    def put(self, sides: Sequence[_Side]) -> None:
        """Store the rows that wait on both sides."""
        if self.folder is None:
            self.folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="wincli-diff-")))
        hasher = RowHasher(pa.schema([self.schema.field(name) for name in self.identity]))
        for number, side in enumerate(sides):
            codes = (hasher.hashes(side.waiting) % np.uint64(self.count)).astype(np.int64)
            order = np.argsort(codes, kind="stable")
            rows, bounds = side.waiting.take(pa.array(order)), np.searchsorted(codes[order], np.arange(self.count + 1))
            for bucket, (low, high) in enumerate(pairwise(bounds.tolist())):
                if low == high:
                    continue
                if (bucket, number) not in self.writers:
                    sink = self.stack.enter_context(pa.OSFile(str(self.folder / f"{bucket}-{number}.arrow"), "wb"))
                    self.writers[bucket, number] = pa.ipc.new_stream(sink, self.schema)
                self.writers[bucket, number].write_table(rows.slice(low, high - low))
            side.drop_all()

    def pairs(self) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Yield the rows of both sides, bucket by bucket, each in the order in which they were read."""
        for writer in self.writers.values():
            writer.close()
        for bucket in range(self.count):
            yield self._read(bucket, 0), self._read(bucket, 1)

    def _read(self, bucket: int, side: int) -> pa.Table:
        if (bucket, side) not in self.writers or self.folder is None:
            return self.schema.empty_table()
        with pa.OSFile(str(self.folder / f"{bucket}-{side}.arrow"), "rb") as file:
            return pa.ipc.open_stream(file).read_all()


Kind = Literal["only in A", "only in B", "changed"]
Number = int | float | Decimal


@dataclass(frozen=True, slots=True)
class Difference:
    """A window that differs.

    ``unit``: the label of its unit; empty where each side is one result.
    ``identity``: the values that make it, by column.
    ``values``: by column what each side has; the columns that differ, or all of a window that only one side has, for
        which the other value is None.
    ``effect``: the changes of the numeric columns, in their order, as sizes.
    """

    unit: str
    kind: Kind
    identity: Mapping[str, pa.Scalar]
    values: Mapping[str, tuple[pa.Scalar | None, pa.Scalar | None]]
    effect: tuple[float, ...]


@dataclass(slots=True)
class Tally:
    """What differs, counted and summed.

    ``only_in_a``, ``only_in_b``, ``changed``: how many windows.
    ``windows``: by column in how many of the changed windows it differs.
    ``change``: by numeric column the sum over B less the sum over A; a null or NaN counts as 0.
    ``renumbered``: how many windows are equal in all but their number; they do not differ.
    """

    only_in_a: int = 0
    only_in_b: int = 0
    changed: int = 0
    windows: dict[str, int] = field(default_factory=dict)
    change: dict[str, Number] = field(default_factory=dict)
    renumbered: int = 0

    @property
    def total(self) -> int:
        return self.only_in_a + self.only_in_b + self.changed

    def add(self, other: Tally) -> None:
        """Add another tally to this one."""
        self.only_in_a += other.only_in_a
        self.only_in_b += other.only_in_b
        self.changed += other.changed
        self.renumbered += other.renumbered
        for name, count in other.windows.items():
            self.windows[name] = self.windows.get(name, 0) + count
        for name, change in other.change.items():
            self.change[name] = self.change.get(name, 0) + change  # type: ignore[operator]  # of one type for a column


@dataclass(frozen=True, slots=True)
class Comparison:
    """How windows are compared.

    ``identity``: the columns that make a window.
    ``values``: the columns that are compared.
    ``schema``: identity, then values.
    ``tolerance``: numbers are equal if they differ by at most this, times the larger size where that is above 1.
    ``sort``: the numeric column whose change comes first in the effect; None: the first.
    """

    identity: tuple[str, ...]
    values: tuple[str, ...]
    schema: pa.Schema
    tolerance: float = 0.0
    sort: str | None = None

    @property
    def numeric(self) -> tuple[str, ...]:
        names = [name for name in self.values if is_number(self.schema.field(name).type)]
        return tuple(sorted(names, key=lambda name: name != self.sort))


@dataclass(frozen=True, slots=True)
class Changes:
    """The windows of one bucket that differ; all arrays of a kind have the same length.

    ``only_in_a``, ``only_in_b``: rows that only one side has.
    ``before``, ``after``: the rows of changed windows on both sides.
    ``differs``: by compared column where ``before`` and ``after`` differ, bool (n,).
    """

    comparison: Comparison
    only_in_a: pa.Table
    only_in_b: pa.Table
    before: pa.Table
    after: pa.Table
    differs: Mapping[str, npt.NDArray[np.bool_]]


def changes_of(comparison: Comparison, a: pa.Table, b: pa.Table) -> Changes:
    """Pair the rows that only one side has by their identity; several of one window are paired in their order."""
    hasher = RowHasher(pa.schema([comparison.schema.field(name) for name in comparison.identity]))
    in_a, in_b = paired(hasher.hashes(a), hasher.hashes(b))
    before, after = a.take(pa.array(in_a)), b.take(pa.array(in_b))
    differs = {name: _differs(comparison, before[name], after[name]) for name in comparison.values}
    kept = np.zeros(len(in_a), np.bool_)
    for mask in differs.values():
        kept |= mask
    return Changes(
        comparison,
        a.filter(pa.array(~np.isin(np.arange(len(a)), in_a))),
        b.filter(pa.array(~np.isin(np.arange(len(b)), in_b))),
        before.filter(pa.array(kept)),
        after.filter(pa.array(kept)),
        {name: mask[kept] for name, mask in differs.items()},
    )


def tally_of(changes: Changes) -> Tally:
    """Count and sum up what differs."""
    found = Tally(len(changes.only_in_a), len(changes.only_in_b), len(changes.before))
    found.windows = {name: count for name, mask in changes.differs.items() if (count := int(mask.sum()))}
    for name in changes.comparison.numeric:
        kind = changes.comparison.schema.field(name).type
        come, gone = (
            pa.chunked_array([*only[name].chunks, *side[name].chunks], kind)
            for only, side in ((changes.only_in_b, changes.after), (changes.only_in_a, changes.before))
        )
        found.change[name] = _sum(come) - _sum(gone)  # type: ignore[operator]  # both of the type of the column
    return found


def largest(changes: Changes, unit: str, most: int | None) -> list[Difference]:
    """Return the differences with the largest effect, the largest first; ``most``: how many, None: all."""
    groups: list[tuple[Kind, pa.Table | None, pa.Table | None]] = [
        ("only in A", changes.only_in_a, None),
        ("only in B", None, changes.only_in_b),
        ("changed", changes.before, changes.after),
    ]
    comparison, found = changes.comparison, list[Difference]()
    for kind, a, b in groups:
        there = a if a is not None else b
        assert there is not None
        effects = []  # the size of the change of each numeric column; what is no number counts as 0
        for name in comparison.numeric:
            x, y = (0.0 if table is None else np.nan_to_num(_floats(combined(table[name]))) for table in (a, b))
            effects.append(np.abs(np.asarray(y - x, np.float64)))
        places = np.lexsort([-effect for effect in reversed(effects)]) if effects else np.arange(len(there))
        for at in map(int, places[:most]):
            names = [name for name in comparison.values if kind != "changed" or changes.differs[name][at]]
            values = {name: (None if a is None else a[name][at], None if b is None else b[name][at]) for name in names}
            identity = {name: there[name][at] for name in comparison.identity}
            sizes = tuple(float(effect[at]) for effect in effects)
            found.append(Difference(unit, kind, identity, values, sizes))
    return sorted(found, key=order_of)[:most]


def order_of(difference: Difference) -> tuple[Any, ...]:
    """Return what differences are sorted by: the largest effect first, then unit and identity."""
    identity = [
        (value.is_valid, value.as_py() if pa.types.is_integer(value.type) and value.is_valid else str(value))
        for value in difference.identity.values()
    ]
    return tuple(-each for each in difference.effect), difference.unit, tuple(identity)


def _differs(comparison: Comparison, before: pa.ChunkedArray, after: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Return where two columns differ: bool (n,)."""
    one, other = (combined(column) for column in (before, after))
    (words, valid), (others, other_valid) = words_of(one, False), words_of(other, False)
    full = np.ones(len(words), np.uint8)
    valid, other_valid = full if valid is None else valid, full if other_valid is None else other_valid
    found: npt.NDArray[np.bool_] = (valid != other_valid) | ((words != others) & (valid == 1))
    if not comparison.tolerance or not is_number(one.type):
        return found
    x, y = _floats(one), _floats(other)
    with np.errstate(invalid="ignore"):
        is_near = np.abs(x - y) <= comparison.tolerance * np.maximum(1.0, np.maximum(np.abs(x), np.abs(y)))
    is_near &= np.isfinite(x) & np.isfinite(y)
    return found & ~(is_near & (valid == 1) & (other_valid == 1))


def _floats(column: pa.Array) -> npt.NDArray[np.float64]:
    wide = column.cast(pa.float64(), safe=False)
    found: npt.NDArray[np.float64] = wide.fill_null(0.0).to_numpy(zero_copy_only=False)
    return found


def _sum(column: pa.ChunkedArray) -> Number:
    """Return the exact sum of integers and decimals, the nearest float of floats; null and NaN count as 0."""
    values = combined(column).drop_null()
    if pa.types.is_decimal(values.type):
        return sum((value.as_py() for value in values), Decimal(0))
    if pa.types.is_floating(values.type):
        numbers = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
        return math.fsum(numbers[np.isfinite(numbers)].tolist())
    if pa.types.is_uint64(values.type):
        wide = values.to_numpy(zero_copy_only=False)
        return (int((wide >> np.uint64(32)).sum()) << 32) + int((wide & np.uint64(0xFFFFFFFF)).sum())
    numbers = values.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return (int((numbers >> 32).sum()) << 32) + int((numbers & 0xFFFFFFFF).sum())
