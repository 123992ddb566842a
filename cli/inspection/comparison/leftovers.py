"""The rows of two results that are not in both: equal rows cancel each other as both are read, side by side.

The rows of two similar results come in similar orders, so most cancel soon, by their hashes. What is left waits, and
where too much waits it goes to temporary files, one for each side and for each of some buckets of windows. In the end
each bucket is looked at by itself. So memory is bounded for results of any size, in whatever order they are.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ....windowing.columns.hash_kernels import Words
from ....windowing.columns.row_hashes import RowHasher

WAITING = 1 << 20
"""Rows of one side that wait for their equals, and about the rows of one bucket."""
_STEP = 1 << 17
_MOST_BUCKETS = 256


@dataclass(slots=True)
class _Side:
    """One side: rows that wait, with their hashes; how many were read, of how many.

    ``tables``: the rows to come.
    ``total``: about how many rows there are.
    ``schema``: their columns.
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
        if not buckets.is_used:
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
    """Yield rows in tables so small that those of both sides stay side by side."""
    for table in tables:
        for start in range(0, table.num_rows, _STEP):
            yield table.slice(start, _STEP)


def _cancel(a: _Side, b: _Side) -> None:
    """Drop the rows that wait on both sides, each as often as it is on both."""
    if not len(a.hashes) or not len(b.hashes):
        return
    if np.array_equal(a.hashes, b.hashes):
        a.drop_all()
        b.drop_all()
        return
    of_a, of_b = _ranked(a.hashes), _ranked(b.hashes)
    common, in_a, in_b = np.intersect1d(of_a.values, of_b.values, assume_unique=True, return_indices=True)
    if len(common):
        both = np.minimum(of_a.counts[in_a], of_b.counts[in_b])
        a.keep(of_a.kept(in_a, both))
        b.keep(of_b.kept(in_b, both))


@dataclass(frozen=True, slots=True)
class _Ranked:
    """Hashes by value.

    ``values``: each value once, ascending, (k,). ``counts``: how often each occurs. ``codes``: (n,), the index of the
    value of each hash. ``ranks``: (n,), how many equal ones stand before it.
    """

    values: Words
    counts: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int64]
    ranks: npt.NDArray[np.int64]

    def kept(self, at: npt.NDArray[np.int64], dropped: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which hashes stay, (n,), if of the values ``at`` the first ``dropped`` of each go."""
        drop = np.zeros(len(self.values), np.int64)
        drop[at] = dropped
        return self.ranks >= drop[self.codes]


def ranks_of(hashes: Words) -> npt.NDArray[np.int64]:
    """Return how many equal hashes stand before each: int64 (n,)."""
    return _ranked(hashes).ranks


def _ranked(hashes: Words) -> _Ranked:
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    is_new = np.ones(len(hashes), np.bool_)
    is_new[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(is_new)
    group = np.cumsum(is_new) - 1
    codes, ranks = np.empty(len(hashes), np.int64), np.empty(len(hashes), np.int64)
    codes[order], ranks[order] = group, np.arange(len(hashes)) - starts[group]
    return _Ranked(ordered[starts], np.diff(np.append(starts, len(hashes))), codes, ranks)


@dataclass(slots=True)
class _Buckets:
    """Rows in temporary files, each row in the bucket of its window.

    ``count``: how many buckets there are.
    """

    schema: pa.Schema
    identity: Sequence[str]
    count: int
    stack: ExitStack
    folder: Path | None = None
    writers: dict[tuple[int, int], pa.RecordBatchStreamWriter] = field(default_factory=dict)

    @property
    def is_used(self) -> bool:
        return self.folder is not None

    def put(self, sides: Sequence[_Side]) -> None:
        """Store the rows that wait on both sides."""
        if self.folder is None:
            self.folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="wincli-diff-")))
        hasher = RowHasher(pa.schema([self.schema.field(name) for name in self.identity]))
        for number, side in enumerate(sides):
            codes = (hasher.hashes(side.waiting) % np.uint64(self.count)).astype(np.int64)
            order = np.argsort(codes, kind="stable")
            rows, bounds = side.waiting.take(pa.array(order)), np.searchsorted(codes[order], np.arange(self.count + 1))
            for bucket in range(self.count):
                low, high = int(bounds[bucket]), int(bounds[bucket + 1])
                if low < high:
                    self._write(bucket, number, rows.slice(low, high - low))
            side.drop_all()

    def pairs(self) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Yield the rows of both sides, bucket by bucket, each in the order in which they were read."""
        for writer in self.writers.values():
            writer.close()
        for bucket in range(self.count):
            yield self._read(bucket, 0), self._read(bucket, 1)

    def _write(self, bucket: int, side: int, rows: pa.Table) -> None:
        if (bucket, side) not in self.writers:
            sink = self.stack.enter_context(pa.OSFile(str(self._path(bucket, side)), "wb"))
            self.writers[bucket, side] = pa.ipc.new_stream(sink, self.schema)
        self.writers[bucket, side].write_table(rows)

    def _read(self, bucket: int, side: int) -> pa.Table:
        if (bucket, side) not in self.writers:
            return self.schema.empty_table()
        with pa.OSFile(str(self._path(bucket, side)), "rb") as file:
            return pa.ipc.open_stream(file).read_all()

    def _path(self, bucket: int, side: int) -> Path:
        assert self.folder is not None
        return self.folder / f"{bucket}-{side}.arrow"
