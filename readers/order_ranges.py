"""Merge ranges of several inputs into one source: late rows of a later input beside the rows of an earlier one.

A `SourceRange` is a half-open range of order values, so adjacent ranges of one input hold each of its rows exactly
once. Rows keep the arrival positions of their own input, plus a constant shift for each range.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from typing import ClassVar

import numpy as np
import pyarrow as pa

from ..windowing.columns.sort_keys import sorts_before
from ..windowing.ports import Batch, InputFile, Looks, Source, Split
from ..windowing.rows.projection import RowExpressions, with_columns
from ..windowing.rows.sequence import one_batch
from ..windowing.support.value_table import share, value_table
from .files.file import Located
from .joined import BothSides, rebound
from .source import FileSource
from .values.types import Mask, unify


@dataclass(frozen=True, slots=True)
class OrderRange:
    """Rows whose order values are in ``[after, before)``.

    ``after``: the inclusive lower bound, one row of order columns; None for no bound.
    ``before``: the exclusive upper bound, one row of order columns; None for no bound. Only a range without this bound
        holds the rows that have no place in the order, those that the condition of the job leaves out, and the rejects.
    """

    after: pa.Table | None = None
    before: pa.Table | None = None

    @property
    def order(self) -> list[str]:
        """The order columns; none where there is no bound."""
        return next((each.column_names for each in (self.after, self.before) if each is not None), [])

    def holds(self, places: pa.Table) -> Mask:
        """Return which rows are in it, bool (n,); ``places``: their order columns."""
        plain = [c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in places.columns]
        rows = one_batch(pa.table(plain, names=places.column_names))
        kept: Mask = np.ones(rows.num_rows, np.bool_)
        if self.after is not None:
            kept &= ~sorts_before(rows, self.after)
        if self.before is not None:
            kept &= sorts_before(rows, self.before)
        return kept


@dataclass(frozen=True, slots=True)
class SourceRange:
    """A part of one source, to be merged with others.

    ``source``: the input that holds the rows; it has no step but that for both sides of a join.
    ``shift``: the number that is added to all arrival positions.
    ``rows``: which of its rows.
    """

    source: FileSource
    shift: int = 0
    rows: OrderRange = OrderRange()


@dataclass(frozen=True, slots=True)
class Within:
    """A `windowing.ports.Step`: of each file only the rows of a range. A batch counts those outside of it.

    ``firsts``: the index of the first file of each range, ascending from 0.
    ``expressions``: the expressions over rows of the job: order columns may be among their columns.
    """

    skips: ClassVar[bool] = False  # the rows of a file are divided between units, and each must be counted
    looks: ClassVar[Looks] = "none"

    firsts: tuple[int, ...]
    ranges: tuple[OrderRange, ...]
    expressions: RowExpressions

    def schema_after(self, before: pa.Schema) -> pa.Schema:
        return before

    def read(self, before: Source, split: Split, columns: Sequence[str], dictionary: Sequence[str]) -> Batch:
        own = self.ranges[bisect_right(self.firsts, split.file) - 1]
        order = own.order
        if not order:
            return before.read(split, columns, dictionary)
        is_stored = set(order) <= set(before.schema.names)
        names = list(dict.fromkeys([*columns, *order])) if is_stored else columns
        batch = before.read(split, names, dictionary)
        placed = batch
        if not is_stored or self.expressions.where is not None:
            placed = with_columns(before, self.expressions, order).read(split, order)
        kept = own.holds(placed.rows.select(order))
        if placed.kept is not None:  # as `count_before` has it: no unit takes a row that the condition leaves out
            kept = kept | ~placed.kept if own.before is None else kept & placed.kept
        rows = batch.rows.select(list(columns)).filter(pa.array(kept))
        elsewhere = len(kept) - rows.num_rows
        if own.before is None or batch.rejects is None:
            return Batch(rows, batch.pos[kept], batch.rejects, elsewhere)
        return Batch(rows, batch.pos[kept], None, elsewhere + batch.rejects.num_rows)


def merge(ranges: Sequence[SourceRange], expressions: RowExpressions) -> FileSource:
    """Concatenate ranges, whose shifts must ascend, into one source. It is never read as a stream.

    ``expressions``: those over rows of the job. Raises `InputError` where a column has types that no common type can
    hold.
    """
    sources = [each.source for each in ranges]
    schema, _ = unify([(source.files[0].path, source.stored) for source in sources], {})
    firsts = [0, *accumulate(len(source.files) for source in sources)]
    splits: list[Split] = []
    text_at: dict[str, int] = {}
    for first, each in zip(firsts[:-1], ranges, strict=True):
        text_at = {name: len(splits) + at for name, at in each.source.text_at.items()} | text_at
        for split in each.source.splits:
            splits.append(replace(split, index=len(splits), file=split.file + first, base=split.base + each.shift))
    constants = {}
    for name in dict.fromkeys(chain.from_iterable(source.constants for source in sources)):
        kind = schema.field(name).type  # one value for each file; null where it has none by its folders
        values = [(len(source.files), source.constants.get(name)) for source in sources]
        constants[name] = pa.concat_arrays([pa.nulls(n, kind) if one is None else one.cast(kind) for n, one in values])
    return FileSource(
        schema,
        value_table(InputFile, chain.from_iterable(source.files for source in sources)),
        value_table(Split, splits),
        None,
        share(chain.from_iterable(source.kinds for source in sources)),
        value_table(Located, chain.from_iterable(source.places for source in sources)),
        constants,
        text_at,
        list(chain.from_iterable(source.names for source in sources)),
        tuple(dict.fromkeys(chain.from_iterable(source.skipped for source in sources))),
        rights=sources[0].rights if sources else {},
        steps=(
            *(rebound(step, schema) for step in (sources[0].steps if sources else ()) if isinstance(step, BothSides)),
            Within(tuple(firsts[:-1]), tuple(each.rows for each in ranges), expressions),
        ),
    )


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
