"""A source whose rows have columns of other tables, too; files, splits, positions and rejects are the input's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..columns.arrays import decoded
from ..ports import Batch, Condition, Split
from ..rows.projection import SourceOver
from .binding import BoundEnrichment


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
class Enriched:
    """A bound enrichment, and what finds its values; None while nothing but the schema is known."""

    bound: BoundEnrichment
    matches: Matches | None = None


@dataclass(frozen=True, slots=True)
class EnrichedSource(SourceOver):
    """A `windowing.ports.Source` over another one, with the columns of one enrichment after another behind its own.

    ``base``: the input.
    ``enriched``: the enrichments, often none; the keys of a later one may be columns of an earlier one.
    ``tables``: the sources of their tables, for the record of a run.
    ``splits``: the splits of the input.
    """

    base: Any  # a Source whose files can be checked, see `check_unchanged`
    enriched: tuple[Enriched, ...]
    tables: tuple[Any, ...]
    splits: Sequence[Split]

    @property
    def schema(self) -> pa.Schema:
        if not self.enriched:
            return self.base.schema
        return pa.schema([*self.base.schema, *(field for each in self.enriched for field in each.bound.fields)])

    @classmethod
    def plain(cls, base: Any) -> EnrichedSource:
        """Return an input without enrichments."""
        return cls(base, (), (), base.splits)

    @property
    def skipped(self) -> tuple[str, ...]:
        return tuple(self.base.skipped)

    @property
    def is_cut(self) -> bool:
        return bool(self.base.is_cut)

    def check_unchanged(self) -> None:
        """Raise `InputError` naming a file, of the input or of a table, that has changed since it was listed."""
        for source in (self.base, *self.tables):
            source.check_unchanged()

    def read(self, split: Split, columns: Sequence[str], dictionary: Sequence[str] = ()) -> Batch:
        """Read ``columns`` of one split; those of an enrichment are looked up, in the order of the enrichments."""
        if not self.enriched:
            return self.base.read(split, columns, dictionary)
        *before, last = self.enriched
        source = replace(self, enriched=tuple(before))
        wanted = {
            field.name: column
            for field, column in zip(last.bound.fields, last.bound.taken, strict=True)
            if field.name in columns
        }
        if not wanted:
            return source.read(split, columns, dictionary)
        assert last.matches is not None, "the values of an enrichment are read before its table is"
        own = [name for name in columns if name not in wanted]
        needs = last.matches.needs
        keys = [name for name in needs if pa.types.is_string(source.schema.field(name).type)]
        read = list(dict.fromkeys([*own, *needs]))
        batch = source.read(split, read, [name for name in read if name in dictionary or name in keys])
        encoded = [column for name, column in wanted.items() if name in dictionary]
        pos = batch.pos - self._shift
        found = last.matches.values(split, batch.rows.select(needs), pos, list(wanted.values()), encoded)
        values: dict[str, Any] = dict(zip(wanted, found, strict=True))
        for name in own:
            values[name] = batch.rows.column(name) if name in dictionary else decoded(batch.rows.column(name))
        rows = pa.table([values[name] for name in columns], names=list(columns))
        return replace(batch, rows=rows)

    @property
    def _shift(self) -> int:
        return self.splits[0].base - int(self.base.splits[0].base) if self.splits else 0

    def looks_of(self, split: Split) -> Sequence[Split]:
        """Return small parts that stand for a split; the whole of it, as matches are known by exact positions."""
        return [split] if self.enriched and not self.columnar else self.base.looks_of(split)

    def parts_with(self, split: Split, condition: Condition) -> Sequence[Split]:
        """Return the parts of a split without those that a condition is true for no row of.

        Of enriched columns nothing is known before they are read.
        """
        is_known = all(name in self.base.schema.names for name in condition.columns)
        return self.base.parts_with(split, condition) if is_known else [split]
