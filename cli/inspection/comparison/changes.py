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
import pyarrow.compute as pc

from ....windowing.columns.arrays import combined
from ....windowing.columns.row_hashes import RowHasher
from ....windowing.columns.value_words import Words, words_of
from ....windowing.language.spec import HIDDEN
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
HASH = HIDDEN + "hash"
"""The last column of rows that wait: the hash of each."""


def leftovers(
    a: Iterable[pa.Table], b: Iterable[pa.Table], rows: Sequence[int], columns: Columns, waiting: int = WAITING
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yield the rows that only one side has, in pairs of tables: all rows of a window are in one pair.

    ``a``, ``b``: the rows of both sides with the columns of the schema. ``rows``: about how many each side has.
    ``waiting``: the most rows that wait in memory.
    """
    hasher = RowHasher(columns.schema)
    tables = [_hashed(side, hasher) for side in (a, b)]
    left = [with_hashes(columns.schema.empty_table(), hasher)] * 2
    read, shares = [0, 0], [0.0, 0.0]  # the side of which a smaller share has been read is read on
    with ExitStack() as stack:
        buckets = _Buckets(columns, min(_MOST_BUCKETS, 1 + sum(rows) // max(1, waiting)), stack)
        while min(shares) < math.inf:
            at = shares.index(min(shares))
            table = next(tables[at], None)
            if table is None:
                shares[at] = math.inf
                continue
            read[at] += table.num_rows
            shares[at] = read[at] / max(1, rows[at])
            left[at] = pa.concat_tables([left[at], table])
            left = list(without_equals(*left))
            if sum(map(len, left)) > waiting:
                left = buckets.put(left)
        if buckets.folder is None:
            yield left[0], left[1]
            return
        buckets.put(left)
        for one, other in buckets.pairs():
            yield without_equals(one, other)


def _hashed(tables: Iterable[pa.Table], hasher: RowHasher) -> Iterator[pa.Table]:
    for table in tables:
        for start in range(0, table.num_rows, _STEP):
            yield with_hashes(table.slice(start, _STEP), hasher)


def with_hashes(rows: pa.Table, hasher: RowHasher) -> pa.Table:
    """Return rows with their hashes in place of those that they have."""
    names = [name for name in rows.column_names if name != HASH]
    return rows.select(names).append_column(HASH, pa.array(hasher.hashes(rows)))


def without_equals(a: pa.Table, b: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the rows of two tables with hashes without those that are in both."""
    one, other = (combined(side[HASH]).to_numpy() for side in (a, b))
    if len(one) and np.array_equal(one, other):
        return a.slice(0, 0), b.slice(0, 0)
    in_a, in_b = paired(one, other) if len(one) and len(other) else ((), ())
    return _without(a, in_a), _without(b, in_b)


def _without(rows: pa.Table, places: Sequence[int] | npt.NDArray[np.int64]) -> pa.Table:
    if not len(places):
        return rows
    kept = np.ones(len(rows), np.bool_)
    kept[places] = False
    return rows.filter(pa.array(kept))


def paired(one: Words, other: Words) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Join hashes: return the places of equal ones in both, int64 (k,) each. Several of one pair in their order."""
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


class _Buckets:
    """Rows in temporary files, each row in the bucket of its window."""

    def __init__(self, columns: Columns, count: int, stack: ExitStack) -> None:
        self.hasher, self.count, self.stack = columns.identity_hasher(), count, stack
        self.folder: Path | None = None
        self.writers: dict[tuple[int, int], pa.RecordBatchStreamWriter] = {}

    def put(self, sides: Sequence[pa.Table]) -> list[pa.Table]:
        """Store the rows that wait on both sides; return what waits then: nothing."""
        if self.folder is None:
            self.folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="wincli-diff-")))
        for number, side in enumerate(sides):
            codes = (self.hasher.hashes(side) % np.uint64(self.count)).astype(np.int64)
            order = np.argsort(codes, kind="stable")
            rows, bounds = side.take(pa.array(order)), np.searchsorted(codes[order], np.arange(self.count + 1))
            for bucket, (low, high) in enumerate(pairwise(bounds.tolist())):
                if low == high:
                    continue
                if (bucket, number) not in self.writers:
                    sink = self.stack.enter_context(pa.OSFile(str(self.folder / f"{bucket}-{number}.arrow"), "wb"))
                    self.writers[bucket, number] = pa.ipc.new_stream(sink, side.schema)
                self.writers[bucket, number].write_table(rows.slice(low, high - low))
        self.empty = [side.slice(0, 0) for side in sides]
        return list(self.empty)

    def pairs(self) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Yield the rows of both sides, bucket by bucket, each in the order in which they were read."""
        for writer in self.writers.values():
            writer.close()
        for bucket in range(self.count):
            yield self._read(bucket, 0), self._read(bucket, 1)

    def _read(self, bucket: int, side: int) -> pa.Table:
        if (bucket, side) not in self.writers or self.folder is None:
            return self.empty[side]
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
class Columns:
    """By which columns windows are compared, and how.

    ``identity``: the columns that make a window: those of the key, the groups and the bounds, and what numbers its
        rows. A window has its number here only where it has no bounds.
    ``values``: the columns that are compared.
    ``schema``: identity, values, then the number, in the types of the first side.
    ``tolerance``: numbers are equal if they differ by at most this, times the larger size where that is above 1.
    ``sort``: the numeric column whose change comes first in the effect; None: the first.
    ``number``: the name under which the number of a window is read where it is not compared; None where it is, or
        where there is none.
    ``only_in_a``, ``only_in_b``: names that one side lacks.
    ``retyped``: names whose types differ, with both types as text; their values are not compared.
    """

    identity: tuple[str, ...]
    values: tuple[str, ...]
    schema: pa.Schema
    tolerance: float = 0.0
    sort: str | None = None
    number: str | None = None
    only_in_a: tuple[str, ...] = ()
    only_in_b: tuple[str, ...] = ()
    retyped: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def differ(self) -> bool:
        return bool(self.only_in_a or self.only_in_b or self.retyped)

    @property
    def numeric(self) -> tuple[str, ...]:
        names = [name for name in self.values if is_number(self.schema.field(name).type)]
        return tuple(sorted(names, key=lambda name: name != self.sort))

    def identity_hasher(self) -> RowHasher:
        """Return what hashes the identity of windows."""
        return RowHasher(pa.schema([self.schema.field(name) for name in self.identity]))


@dataclass(frozen=True, slots=True)
class Changes:
    """The windows of one bucket that differ; all arrays of a kind have the same length.

    ``only_in_a``, ``only_in_b``: rows that only one side has.
    ``before``, ``after``: the rows of changed windows on both sides.
    ``differs``: by compared column where ``before`` and ``after`` differ, bool (n,).
    """

    columns: Columns
    only_in_a: pa.Table
    only_in_b: pa.Table
    before: pa.Table
    after: pa.Table
    differs: Mapping[str, npt.NDArray[np.bool_]]


def changes_of(columns: Columns, a: pa.Table, b: pa.Table) -> Changes:
    """Pair the rows that only one side has by their identity; several of one window are paired in their order."""
    hasher = columns.identity_hasher()
    in_a, in_b = paired(hasher.hashes(a), hasher.hashes(b))
    before, after = a.take(pa.array(in_a)), b.take(pa.array(in_b))
    differs = {name: _differs(columns, before[name], after[name]) for name in columns.values}
    kept = np.any([np.zeros(len(in_a), np.bool_), *differs.values()], axis=0)
    return Changes(
        columns,
        _without(a, in_a),
        _without(b, in_b),
        before.filter(pa.array(kept)),
        after.filter(pa.array(kept)),
        {name: mask[kept] for name, mask in differs.items()},
    )


def tally_of(changes: Changes) -> Tally:
    """Count and sum up what differs."""
    found = Tally(len(changes.only_in_a), len(changes.only_in_b), len(changes.before))
    found.windows = {name: count for name, mask in changes.differs.items() if (count := int(mask.sum()))}
    for name in changes.columns.numeric:
        kind = changes.columns.schema.field(name).type
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
    columns, found = changes.columns, list[Difference]()
    for kind, a, b in groups:
        there = a if a is not None else b
        assert there is not None
        effects = []  # the size of the change of each numeric column; what is no number counts as 0
        for name in columns.numeric:
            x, y = (0.0 if table is None else np.nan_to_num(_floats(combined(table[name]))) for table in (a, b))
            effects.append(np.abs(np.asarray(y - x, np.float64)))
        places = np.lexsort([-effect for effect in reversed(effects)]) if effects else np.arange(len(there))
        for at in map(int, places[:most]):
            names = [name for name in columns.values if kind != "changed" or changes.differs[name][at]]
            values = {name: (None if a is None else a[name][at], None if b is None else b[name][at]) for name in names}
            identity = {name: there[name][at] for name in columns.identity}
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


def _differs(columns: Columns, before: pa.ChunkedArray, after: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Return where two columns differ: bool (n,)."""
    one, other = (combined(column) for column in (before, after))
    (words, valid), (others, other_valid) = words_of(one, False), words_of(other, False)
    full = np.ones(len(words), np.uint8)
    valid, other_valid = full if valid is None else valid, full if other_valid is None else other_valid
    found: npt.NDArray[np.bool_] = (valid != other_valid) | ((words != others) & (valid == 1))
    if not columns.tolerance or not is_number(one.type):
        return found
    x, y = _floats(one), _floats(other)
    with np.errstate(invalid="ignore"):
        is_near = np.abs(x - y) <= columns.tolerance * np.maximum(1.0, np.maximum(np.abs(x), np.abs(y)))
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
    wide = pa.decimal128(38, 0)  # a sum of integers of 64 bits may need more
    return int(pc.sum(values.cast(wide), min_count=0).as_py())
