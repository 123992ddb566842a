"""Merge ranges of several inputs into one source: late rows of a later input beside the rows of an earlier one.

A `SourceRange` is a half-open range of order values, so adjacent ranges of one input hold each of its rows exactly
once. Rows keep the arrival positions of their own input, plus a constant shift for each range.
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
    """The rows of one source whose order values are in ``[after, before)``.

    ``source``: the input that holds the rows.
    ``shift``: the number that is added to all arrival positions.
    ``after``: the inclusive lower bound, one row of order columns; None for no bound.
    ``before``: the exclusive upper bound, one row of order columns; None for no bound. Only a range without this bound
        holds the rows that have no place in the order, and the rejects.
    """

    source: FileSource
    shift: int = 0
    after: pa.Table | None = None
    before: pa.Table | None = None


@dataclass(frozen=True, slots=True)
class MergedSource:
    """A `windowing.ports.Source` over several `SourceRange`; `merge` makes it.

    ``schema``: the unified columns of all ranges.
    ``files``: the files of all ranges, range after range.
    ``splits``: the splits of all ranges. ``rows`` of a split counts all rows in the file; `read` returns only those of
        the range.
    ``ranges``: the ranges, in the order of their shifts.
    ``stream``: always None: a merged source is never read as a result stream.
    """

    schema: pa.Schema
    files: tuple[InputFile, ...]
    splits: tuple[Split, ...]
    ranges: tuple[SourceRange, ...]
    stream: None = None

    @property
    def columnar(self) -> bool:
        """Whether a few columns of a split can be read without going through all of its bytes."""
        return all(source_range.source.columnar for source_range in self.ranges)

    def read(self, split: Split, columns: Sequence[str], dictionary: Sequence[str] = ()) -> Batch:
        """Read ``columns`` of the rows of one split that are in its range, as `FileSource.read` does.

        The batch counts the rows of the split that are outside the range.
        """
        source_range, own = self._origin(split)
        bounds = [bound for bound in (source_range.after, source_range.before) if bound is not None]
        if not bounds:
            return source_range.source.read(own, columns, dictionary)
        order = bounds[0].column_names
        batch = source_range.source.read(own, list(dict.fromkeys([*columns, *order])), dictionary)
        kept = _in_range(source_range, batch.rows.select(order))
        rows = batch.rows.select(list(columns)).filter(pa.array(kept))
        elsewhere = len(kept) - rows.num_rows
        if source_range.before is None or batch.rejects is None:
            return Batch(rows, batch.pos[kept], batch.rejects, elsewhere)
        return Batch(rows, batch.pos[kept], None, elsewhere + batch.rejects.num_rows)

    @property
    def skipped(self) -> tuple[str, ...]:
        """The unreadable paths that were skipped, each with its reason."""
        return tuple(dict.fromkeys(text for source_range in self.ranges for text in source_range.source.skipped))

    def check_unchanged(self) -> None:
        """Raise `InputError` naming a file that has changed since it was listed."""
        for source_range in self.ranges:
            source_range.source.check_unchanged()

    def parts_of(self, split: Split) -> Sequence[Split]:
        """Return the smallest splits that a split can be read in."""
        return [split]

    def explain_type(self, column: str) -> str | None:
        """Say which value made the type of a column string; None where no value did."""
        explanations = (source_range.source.explain_type(column) for source_range in self.ranges)
        return next((text for text in explanations if text is not None), None)

    def line_numbers(self, split: Split, pos: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return where rows of a split are in their file: 1-based lines (text formats) or rows (Parquet).

        ``pos``: arrival positions, int64 (N,). The result has the same shape.
        """
        source_range, own = self._origin(split)
        return source_range.source.line_numbers(own, pos)

    def _origin(self, split: Split) -> tuple[SourceRange, Split]:
        """Return the range that a split belongs to, and the split with the file index of that range's source.

        Arrival positions stay those of the merged source.
        """
        firsts = [0, *accumulate(len(source_range.source.files) for source_range in self.ranges[:-1])]
        which = bisect_right(firsts, split.file) - 1
        return self.ranges[which], replace(split, file=split.file - firsts[which])


def merge(ranges: Sequence[SourceRange]) -> MergedSource:
    """Concatenate ranges, whose shifts must ascend, into one source.

    Raises `InputError` where a column has types that no common type can hold.
    """
    named = [(source_range.source.files[0].path, source_range.source.schema) for source_range in ranges]
    schema = unify(named, {})
    splits: list[Split] = []
    first = 0
    for source_range in ranges:
        for split in source_range.source.splits:
            moved = replace(split, index=len(splits), file=split.file + first, base=split.base + source_range.shift)
            splits.append(moved)
        first += len(source_range.source.files)
    typed = tuple(replace(source_range, source=replace(source_range.source, schema=schema)) for source_range in ranges)
    return MergedSource(
        schema, tuple(file for source_range in typed for file in source_range.source.files), tuple(splits), typed
    )


def count_before(source: FileSource, bounds: Sequence[pa.Table], split: Split) -> list[int]:
    """Count the rows of a split that sort before each bound.

    ``bounds``: ascending, one row of order columns each.
    """
    rows = one_batch(source.read(split, bounds[0].column_names).rows)
    counts = []
    # From the largest bound down: the rows before a bound contain the rows before each smaller one.
    for bound in reversed(bounds):
        rows = rows.filter(pa.array(sorts_before(rows, bound)))
        counts.append(rows.num_rows)
    return counts[::-1]


def _in_range(source_range: SourceRange, order: pa.Table) -> Mask:
    rows = one_batch(pa.table([_plain(column) for column in order.columns], names=order.column_names))
    kept: Mask = np.ones(rows.num_rows, np.bool_)
    if source_range.after is not None:
        kept &= ~sorts_before(rows, source_range.after)
    if source_range.before is not None:
        kept &= sorts_before(rows, source_range.before)
    return kept


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
