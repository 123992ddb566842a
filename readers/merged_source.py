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
from ..windowing.ports import Batch, Condition, InputFile, Source, Split
from ..windowing.rows.projection import ProjectionSource, RowExpressions, make_projection
from ..windowing.rows.sequence import one_batch
from ..windowing.support.value_table import value_table
from .source import FileSource
from .values.types import Mask, unify


def columns_of_folders(source: Source) -> frozenset[str]:
    """Return the columns of an input whose values are in names of folders, such as ``dt=2026-11-01``."""
    if isinstance(source, MergedSource):
        return frozenset().union(*(columns_of_folders(each.source) for each in source.ranges))
    return frozenset(source.constants) if isinstance(source, FileSource) else frozenset()


@dataclass(frozen=True, slots=True)
class SourceRange:
    """The rows of one source whose order values are in ``[after, before)``.

    ``source``: the input that holds the rows.
    ``shift``: the number that is added to all arrival positions.
    ``after``: the inclusive lower bound, one row of order columns; None for no bound.
    ``before``: the exclusive upper bound, one row of order columns; None for no bound. Only a range without this bound
        holds the rows that have no place in the order, and the rejects.
    ``expressions``: the expressions over rows of the job: order columns may be among their columns.
    """

    source: FileSource
    shift: int = 0
    after: pa.Table | None = None
    before: pa.Table | None = None
    expressions: RowExpressions = RowExpressions()  # noqa: RUF009 - frozen


@dataclass(frozen=True, slots=True)
class MergedSource:
    """A `windowing.ports.Source` over several `SourceRange`; `merge` makes it.

    ``schema``: the unified columns of all ranges.
    ``files``: the files of all ranges, range after range.
    ``splits``: the splits of all ranges. ``rows`` of a split counts all rows in the file; `read` returns only those of
        the range.
    ``ranges``: the ranges, in the order of their shifts.
    ``stream``: always None: a merged source is never read as a result stream.
    ``is_cut``: always False: all rows of its ranges are read.
    """

    schema: pa.Schema
    files: Sequence[InputFile]
    splits: Sequence[Split]
    ranges: tuple[SourceRange, ...]
    stream: None = None
    is_cut: bool = False

    @property
    def columnar(self) -> bool:
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
        is_stored = all(name in source_range.source.schema.names for name in order)
        names = list(dict.fromkeys([*columns, *order])) if is_stored else columns
        batch = source_range.source.read(own, names, dictionary)
        places = (
            batch.rows.select(order)
            if is_stored
            else (with_expressions(source_range.source, source_range.expressions, order).read(own, order).rows)
        )
        kept = _in_range(source_range, places)
        rows = batch.rows.select(list(columns)).filter(pa.array(kept))
        elsewhere = len(kept) - rows.num_rows
        if source_range.before is None or batch.rejects is None:
            return Batch(rows, batch.pos[kept], batch.rejects, elsewhere)
        return Batch(rows, batch.pos[kept], None, elsewhere + batch.rejects.num_rows)

    @property
    def skipped(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(text for source_range in self.ranges for text in source_range.source.skipped))

    def check_unchanged(self) -> None:
        for source_range in self.ranges:
            source_range.source.check_unchanged()

    def parts_of(self, split: Split) -> Sequence[Split]:
        return [split]

    def looks_of(self, split: Split) -> Sequence[Split]:
        return [split]

    def is_local(self, split: Split) -> bool:
        source_range, own = self._origin(split)
        return source_range.source.is_local(own)

    def parts_with(self, split: Split, condition: Condition) -> Sequence[Split]:  # noqa: ARG002
        """Return the split: its rows are divided between units, and each must be counted."""
        return [split]

    def file_name(self, split: Split) -> str:
        source_range, own = self._origin(split)
        return source_range.source.file_name(own)

    def explain_type(self, column: str) -> str | None:
        explanations = (source_range.source.explain_type(column) for source_range in self.ranges)
        return next((text for text in explanations if text is not None), None)

    def line_numbers(self, split: Split, pos: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
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
    schema = unify(named, {}).schema
    splits: list[Split] = []
    first = 0
    for source_range in ranges:
        for split in source_range.source.splits:
            moved = replace(split, index=len(splits), file=split.file + first, base=split.base + source_range.shift)
            splits.append(moved)
        first += len(source_range.source.files)
    typed = tuple(replace(source_range, source=replace(source_range.source, schema=schema)) for source_range in ranges)
    return MergedSource(
        schema,
        value_table(InputFile, (file for each in typed for file in each.source.files)),
        value_table(Split, splits),
        typed,
    )


def with_expressions(source: FileSource, expressions: RowExpressions, names: Sequence[str]) -> ProjectionSource:
    """Return a source that has the columns ``names``, which may be among those of expressions, and their condition."""
    return ProjectionSource(source, make_projection(source.schema, expressions, names=names))


def count_before(source: Source, bounds: Sequence[pa.Table], split: Split) -> list[int]:
    """Count the rows of a split that sort before each bound; those that a condition leaves out do not count.

    ``bounds``: ascending, one row of order columns each.
    """
    batch = source.read(split, bounds[0].column_names)
    rows = one_batch(batch.rows if batch.kept is None else batch.rows.filter(pa.array(batch.kept)))
    counts = []
    # From the largest bound down: the rows before a bound contain the rows before each smaller one.
    for bound in reversed(bounds):
        rows = rows.filter(pa.array(sorts_before(rows, bound)))
        counts.append(rows.num_rows)
    return counts[::-1]


def _in_range(source_range: SourceRange, order: pa.Table) -> Mask:
    plain = [c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in order.columns]
    rows = one_batch(pa.table(plain, names=order.column_names))
    kept: Mask = np.ones(rows.num_rows, np.bool_)
    if source_range.after is not None:
        kept &= ~sorts_before(rows, source_range.after)
    if source_range.before is not None:
        kept &= sorts_before(rows, source_range.before)
    return kept
