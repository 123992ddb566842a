"""Pairs of rows of both sides of a join: what panes of joins hold, and how a pair becomes a row (semantics section 16).

Both sides stand in one sequence. A row of it has the columns of its own side; those of the other are null. A pair is a
row of the same schema in which both are filled: so aggregates, conditions and results read pairs as rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import Ints, Mask, combined, is_true, spread
from ..columns.text_sort import is_text, take_column
from ..errors import DataError
from ..expressions.binding import BoundExpression
from ..language.joins import LEFT, RIGHT, SIDE
from ..support.jit import kernel


@dataclass(frozen=True, slots=True)
class Pairs:
    """The pairs of P panes, pane after pane, as S spans: each a left row and a range of right rows.

    ``bounds``: int64 (P+1,), the spans of pane p are ``[bounds[p], bounds[p + 1])``.
    ``left``: int64 (S,), the left row of each span; -1: the right rows of the span have no partner.
    ``lo``, ``hi``: int64 (S,), ranges into ``right``; an empty one: the left row has no partner in this pane. A row
        that comes out without its partner is in a pane; panes without any output are not there.
    ``right``: int64 (R,), rows of the right side in their order.
    ``tag``: int64 (S,), the number of the offset of each span (`At`); None: there is one, or none.
    ``kept``: int8 (n,), the sides on which each of all rows is still there at the end, and `MET` times each side on
        which it had a partner (`language.joins`); None: the data ends, or the window says it otherwise.
    ``piece``: of one pane that comes out in pieces, how many rows came out before these spans, and whether they are its
        last; None: panes come out whole.
    """

    bounds: Ints
    left: Ints
    lo: Ints
    hi: Ints
    right: Ints
    tag: Ints | None = None
    kept: npt.NDArray[np.int8] | None = None
    piece: tuple[int, bool] | None = None

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def counts(self) -> Ints:
        """How many rows come out for each span, int64 (S,): a row without a partner is one."""
        return np.maximum(self.hi - self.lo, 1)

    @property
    def ends(self) -> Ints:
        """How many rows come out before each pane, and in all, int64 (P+1,)."""
        return np.append(0, np.cumsum(self.counts))[self.bounds]

    def rows_of(self, at: int) -> Ints:
        """Return the rows that a pane shows, int64, ascending, each once."""
        some = self.chosen(slice(at, at + 1))
        return np.unique(np.concatenate([some.left[some.left >= 0], self.right[spread(some.lo, some.hi - some.lo)]]))

    def pieces(self, rows: int) -> Iterator[Pairs]:
        """Yield the pairs of one pane, so many at a time."""
        counts = self.counts
        ends = np.cumsum(counts)
        for first in range(0, int(ends[-1]), rows):
            stop = min(int(ends[-1]), first + rows)
            some = slice(np.searchsorted(ends, first, side="right"), np.searchsorted(ends, stop) + 1)
            begins, tag = ends[some] - counts[some], None if self.tag is None else self.tag[some]
            lo, hi = self.lo[some] + np.maximum(first - begins, 0), self.hi[some]
            hi = np.minimum(hi, self.lo[some] + np.maximum(stop - begins, 0))
            whole = np.array([0, len(lo)])
            yield Pairs(whole, self.left[some], lo, hi, self.right, tag, piece=(first, stop == ends[-1]))

    def chosen(self, picks: Ints | slice) -> Pairs:
        """Return the pairs of some panes, which may be in any order."""
        first, counts = self.bounds[:-1][picks], np.diff(self.bounds)[picks]
        is_run = isinstance(picks, slice) and len(first) > 0
        spans = slice(first[0], first[-1] + counts[-1]) if is_run else spread(first, counts)
        tag = None if self.tag is None else self.tag[spans]
        ranges = (self.left[spans], self.lo[spans], self.hi[spans])
        return Pairs(np.append(0, np.cumsum(counts)), *ranges, self.right, tag, self.kept)

    def with_alone(self, left: Ints, lo: Ints, hi: Ints) -> Pairs:
        """Return the pairs, and behind them a pane for each of some rows that come out alone: spans without tags."""
        bounds = np.append(self.bounds, len(self.left) + 1 + np.arange(len(left)))
        lefts, los, his = (np.append(own, new) for own, new in ((self.left, left), (self.lo, lo), (self.hi, hi)))
        return Pairs(bounds, lefts, los, his, self.right)


@kernel
def each_pair(left: Ints, lo: Ints, hi: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Return the left and the right row of each pair of spans, int64; -1 where a row has no partner."""
    size = 0
    for s in range(len(left)):
        size += max(hi[s] - lo[s], 1)
    of_left, of_right = np.empty(size, np.int64), np.empty(size, np.int64)
    at = 0
    for s in range(len(left)):
        if lo[s] == hi[s]:
            of_left[at], of_right[at] = left[s], -1
            at += 1
        for place in range(lo[s], hi[s]):
            of_left[at], of_right[at] = left[s], right[place]
            at += 1
    return of_left, of_right


@dataclass(frozen=True, slots=True)
class PairColumns:
    """Which side of a pair each column of its row is taken of.

    ``key``: the key columns, of the side that is there.
    ``left``: the columns of the left row; null where there is none.
    ``right``: the columns of the right row, each with the column of the one sequence that holds it.
    """

    key: tuple[str, ...]
    left: tuple[str, ...]
    right: tuple[tuple[str, str], ...]


def without_padding(rows: pa.RecordBatch, columns: PairColumns) -> pa.RecordBatch:
    """Return rows for `pair_rows` whose columns of one side are not null where only rows of the other are.

    To take values with nulls takes six times as long, and no pair takes these.
    """
    side, right = combined(rows.column(SIDE)).to_numpy(), {stored for _, stored in columns.right}
    left = {*columns.left}.difference(columns.key)
    for bit, names in ((LEFT, left - right), (RIGHT, right.difference(left, columns.key))):
        own = pa.array((side & bit) > 0)
        for name in names:
            column = rows.column(name)
            values = column.indices if pa.types.is_dictionary(column.type) else column
            if not column.null_count or not pa.types.is_primitive(values.type) or not column.is_valid().equals(own):
                continue
            bare = pa.Array.from_buffers(values.type, len(values), [None, values.buffers()[1]], 0, values.offset)
            bare = bare if values is column else pa.DictionaryArray.from_arrays(bare, column.dictionary, safe=False)
            rows = rows.set_column(rows.schema.get_field_index(name), name, bare)
    return rows


def pair_rows(rows: pa.RecordBatch, left: Ints, right: Ints, columns: PairColumns) -> pa.RecordBatch:
    """Return a row for each pair. ``left``, ``right``: int64 (n,), rows; -1: none, of one of both at most."""
    has_left, has_right = left >= 0, right >= 0
    of_left, of_right = np.where(has_left, left, right), np.where(has_right, right, left)
    there = [None if has.all() else pa.array(has) for has in (has_left, has_right)]

    def taken(name: str, at: Ints, has: pa.BooleanArray | None) -> pa.Array:
        # not one `take` by places with nulls: that takes four times as long
        values = take_column(rows.column(name), at)
        return values if has is None else _where(has, values)

    found = {name: taken(name, of_left, None) for name in columns.key}
    found |= {name: taken(name, of_left, there[0]) for name in columns.left}
    found |= {name: taken(stored, of_right, there[1]) for name, stored in columns.right}
    return pa.RecordBatch.from_pydict(found or {"": pa.nulls(len(left))})


def _where(has: pa.BooleanArray, values: pa.Array) -> pa.Array:
    """Return values, and null where ``has`` is false."""
    if values.null_count or values.offset:
        return pc.if_else(has, values, pa.scalar(None, values.type))
    if pa.types.is_dictionary(values.type):
        return pa.DictionaryArray.from_arrays(_where(has, values.indices), values.dictionary, safe=False)
    if pa.types.is_primitive(values.type) or is_text(values.type):
        return pa.Array.from_buffers(values.type, len(values), [has.buffers()[1], *values.buffers()[1:]])
    return pc.if_else(has, values, pa.scalar(None, values.type))


@dataclass(frozen=True, slots=True)
class PairCondition:
    """The condition of pairs, ``--match``.

    ``value``: bound over the rows that `pair_rows` makes. ``columns``: those that it reads.
    """

    value: BoundExpression
    columns: PairColumns

    def holds(self, rows: pa.RecordBatch, left: Ints, right: Ints) -> Mask:
        """Return which pairs match, bool (n,): null is not true. Raises `DataError` for a pair for which it fails."""
        found = self.value.evaluate(pair_rows(rows, left, right, self.columns))
        if found.failures is not None:
            what = f"--match {self.value.text!r} fails for a pair: {found.details[0].as_py()}"
            raise DataError(what, "guard it with CASE or TRY_CAST")
        return is_true(combined(found.values))
