"""The step that gives rows the columns of another table; files, splits, positions and rejects stay the input's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import decoded
from ..language.joins import SIDE
from ..ports import Batch, Looks, Source, Split
from .binding import BoundEnrichment

S = TypeVar("S", bound=Source)


class Matches(Protocol):
    """What finds the values of taken columns for the rows of a split. Implementations pickle."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns of the input that `values` looks at."""
        ...

    def values(
        self, split: Split, rows: pa.Table, pos: npt.NDArray[np.int64], columns: Sequence[str], encoded: Sequence[str]
    ) -> list[pa.Array]:
        """Return the values of taken columns, by their names on the right, null where a row has no match: (n,).

        ``rows``: the columns ``needs``; text may be dictionary encoded. ``pos``: arrival positions in the input, (n,).
        ``encoded``: those of ``columns`` that shall be dictionary arrays.
        """
        ...


@dataclass(frozen=True, slots=True)
class Enrich:
    """A `windowing.ports.Step`: the columns of one table behind those of the rows, null where a row has no match.

    ``bound``: the enrichment; its keys may be columns of an enrichment before it.
    ``table``: the source of its table.
    ``matches``: what finds the values; None while the table has not been read.
    ``side``: the side of the rows that get them, where the input has both sides of a join; None: all do.
    """

    skips: ClassVar[bool] = True
    looks: ClassVar[Looks] = "columnar"  # matches are known by exact positions

    bound: BoundEnrichment
    table: Source
    matches: Matches | None = None
    side: int | str | None = None

    def schema_after(self, before: pa.Schema) -> pa.Schema:
        return pa.schema([*before, *self.bound.fields])

    def read(self, before: Source, split: Split, columns: Sequence[str], dictionary: Sequence[str]) -> Batch:
        """Read ``columns`` of one split, and look up those of the table, where there are any."""
        wanted = {
            field.name: column
            for field, column in zip(self.bound.fields, self.bound.taken, strict=True)
            if field.name in columns
        }
        if not wanted:
            return before.read(split, columns, dictionary)
        assert self.matches is not None, "the values of an enrichment are read before its table is"
        schema = before.schema
        own = [name for name in columns if name not in wanted]
        needs = self.matches.needs
        sides = () if self.side is None else (SIDE,)
        keys = [name for name in needs if pa.types.is_string(schema.field(name).type)]
        read = list(dict.fromkeys([*own, *needs, *sides]))
        batch = before.read(split, read, [name for name in read if name in dictionary or name in keys])
        encoded = [column for name, column in wanted.items() if name in dictionary]
        pos = batch.pos - before.shift
        found = self.matches.values(split, batch.rows.select(needs), pos, list(wanted.values()), encoded)
        if sides:
            there = pc.equal(batch.rows.column(SIDE), self.side).to_numpy()
            found = [each.take(pa.array(np.arange(len(there)), mask=~there)) for each in found]
        values: dict[str, Any] = dict(zip(wanted, found, strict=True))
        for name in own:
            values[name] = batch.rows.column(name) if name in dictionary else decoded(batch.rows.column(name))
        rows = pa.table([values[name] for name in columns], names=list(columns))
        return replace(batch, rows=rows)


def enrichments_of(source: Source) -> list[Enrich]:
    """Return the enrichments of a source, in order."""
    return [step for step in source.steps if isinstance(step, Enrich)]


def without_enrichments(source: S) -> S:
    """Return a source as it is before its first enrichment."""
    before = takewhile(lambda step: not isinstance(step, Enrich), source.steps)
    return source.with_steps(before)
