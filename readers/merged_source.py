"""Shares of several inputs as one: rows of a later input beside those of an earlier one, each kept by its order values.

A share is a half-open range of places in the order, so shares of one input that follow each other hold each of its
rows once. Rows keep the positions that they have in their own input, moved by what is between the two.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..windowing.columns.sort_keys import sorts_before
from ..windowing.ports import Batch, InputFile, Split
from ..windowing.sequences.sequence import one_batch
from .schema.types import Mask
from .schema.unify import unify
from .source import FileSource


@dataclass(frozen=True, slots=True)
class SourceRange:
    """The rows of ``source`` from the order values ``after`` on and before those of ``before``.

    Both are one row of order columns, or None for no bound. Without ``before`` rows that have no place in the order and
    those that cannot be read belong to the share, else they do not. ``shift`` is added to all positions.
    """

    source: FileSource
    shift: int = 0
    after: pa.Table | None = None
    before: pa.Table | None = None


@dataclass(frozen=True, slots=True)
class MergedSource:
    """Implements `windowing.ports.Source` over shares; made by `join`.

    Splits say how many rows stand in the files; `read` returns those of the share.
    """

    schema: pa.Schema
    files: tuple[InputFile, ...]
    splits: tuple[Split, ...]
    ranges: tuple[SourceRange, ...]
    stream: None = None

    @property
    def columnar(self) -> bool:
        """Whether a few columns of a split can be read without going through all of its bytes."""
        return all(share.source.columnar for share in self.ranges)

    def read(self, split: Split, columns: Sequence[str], dictionary: Sequence[str] = ()) -> Batch:
        """Read ``columns`` of the rows of one split that are of its share, as `FileSource.read` does."""
        share, own = self._origin(split)
        bounds = [bound for bound in (share.after, share.before) if bound is not None]
        if not bounds:
            return share.source.read(own, columns, dictionary)
        order = bounds[0].column_names
        batch = share.source.read(own, list(dict.fromkeys([*columns, *order])), dictionary)
        kept = _in_range(share, batch.rows.select(order))
        rows = batch.rows.select(list(columns)).filter(pa.array(kept))
        elsewhere = len(kept) - rows.num_rows
        if share.before is None or batch.rejects is None:
            return Batch(rows, batch.pos[kept], batch.rejects, elsewhere)
        return Batch(rows, batch.pos[kept], None, elsewhere + batch.rejects.num_rows)

    @property
    def skipped(self) -> tuple[str, ...]:
        """What was passed over since it cannot be read, and why."""
        return tuple(dict.fromkeys(text for share in self.ranges for text in share.source.skipped))

    def check_unchanged(self) -> None:
        """Raise `InputError` naming a file that is not what it was when it was listed."""
        for share in self.ranges:
            share.source.check_unchanged()

    def parts_of(self, split: Split) -> Sequence[Split]:
        """Return the smallest splits that a split can be read in."""
        return [split]

    def explain_type(self, column: str) -> str | None:
        """Say which value made a column text, or None."""
        told = (share.source.explain_type(column) for share in self.ranges)
        return next((text for text in told if text is not None), None)

    def line_numbers(self, split: Split, pos: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """1-based line (text formats) or row (Parquet) in its file of the given arrival positions of a split."""
        share, own = self._origin(split)
        return share.source.line_numbers(own, pos)

    def _origin(self, split: Split) -> tuple[SourceRange, Split]:
        """The share that a split is of, and the split as that knows it, its positions as here."""
        firsts = [0, *accumulate(len(share.source.files) for share in self.ranges[:-1])]
        which = bisect_right(firsts, split.file) - 1
        return self.ranges[which], replace(split, file=split.file - firsts[which])


def merge(shares: Sequence[SourceRange]) -> MergedSource:
    """Put shares behind one another; their shifts ascend.

    Raises `InputError` where a column is of different types that no type holds together.
    """
    named = [(share.source.files[0].path, share.source.schema) for share in shares]
    schema = unify(named, {})
    splits: list[Split] = []
    first = 0
    for share in shares:
        for split in share.source.splits:
            moved = replace(split, index=len(splits), file=split.file + first, base=split.base + share.shift)
            splits.append(moved)
        first += len(share.source.files)
    typed = tuple(replace(share, source=replace(share.source, schema=schema)) for share in shares)
    return MergedSource(schema, tuple(file for share in typed for file in share.source.files), tuple(splits), typed)


def count_before(source: FileSource, bounds: Sequence[pa.Table], split: Split) -> list[int]:
    """Count the rows of a split that sort before each of ascending ``bounds``, one row of order columns each."""
    rows = one_batch(source.read(split, bounds[0].column_names).rows)
    counts = []
    for bound in reversed(bounds):
        rows = rows.filter(pa.array(sorts_before(rows, bound)))
        counts.append(rows.num_rows)
    return counts[::-1]


def _in_range(share: SourceRange, order: pa.Table) -> Mask:
    rows = one_batch(pa.table([_plain(column) for column in order.columns], names=order.column_names))
    kept: Mask = np.ones(rows.num_rows, np.bool_)
    if share.after is not None:
        kept &= ~sorts_before(rows, share.after)
    if share.before is not None:
        kept &= sorts_before(rows, share.before)
    return kept


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
