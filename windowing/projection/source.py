"""A source over a source: it has the columns that expressions compute, and says which rows its condition keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..ports import Batch, Condition, InputFile, Source, Split, StreamInfo
from .projection import ARRIVAL, FILE, Projection, project


@dataclass(frozen=True, slots=True)
class ProjectionSource:
    """A `windowing.ports.Source` with the columns and rows of a projection of another one.

    ``base``: the source that is read.
    ``projection``: the columns and rows.
    ``condition``: the condition, where parts of files may be left out for which it is true for no row.
    ``used``: the columns that the run uses. They are computed at every reading, so that a row which fails for one of
        them is left out everywhere.
    """

    base: Source
    projection: Projection
    used: tuple[str, ...] = ()
    condition: Condition | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns of the projection."""
        return self.projection.schema

    @property
    def files(self) -> Sequence[InputFile]:
        """The files, in arrival order."""
        return self.base.files

    @property
    def splits(self) -> Sequence[Split]:
        """The splits of all files; each counts all rows, also those that the condition leaves out."""
        return self.base.splits

    @property
    def columnar(self) -> bool:
        """Whether a few columns of a split can be read without going through all of its bytes."""
        return self.base.columnar

    @property
    def stream(self) -> StreamInfo | None:
        """How the input is read as a stream."""
        return self.base.stream

    def read(self, split: Split, columns: Sequence[str], dictionary: Sequence[str] = ()) -> Batch:
        """Read all rows of one split, and say which of them the condition keeps (`Batch.kept`).

        Reads only the columns that these columns and the condition need.
        """
        needed = self.projection.needs([*columns, *self.used])
        own = [name for name in needed if name not in self.projection.virtual]
        batch = self._read(split, own, [name for name in dictionary if name in own])
        rows = self._with_virtual(split, batch, needed)
        found = project(self.projection, rows, [*columns, *(name for name in self.used if name not in columns)])
        return replace(batch, rows=found.rows.select(list(columns)), kept=found.kept, failures=found.failures)

    def parts_of(self, split: Split) -> Sequence[Split]:
        """Return the smallest splits into which a split can be divided, in order."""
        return self.base.parts_of(split)

    def looks_of(self, split: Split) -> Sequence[Split]:
        """Return small parts that stand for a split, in order; their positions may be estimates."""
        return self.base.looks_of(split)

    def is_local(self, split: Split) -> bool:
        """Whether the file of a split is on a local file system, where reads have little latency."""
        return self.base.is_local(split)

    def parts_with(self, split: Split, condition: Condition) -> Sequence[Split]:  # noqa: ARG002
        """Return the split."""
        return [split]

    def file_name(self, split: Split) -> str:
        """Return the name of the file of a split relative to the path that the user gave."""
        return self.base.file_name(split)

    def explain_type(self, column: str) -> str | None:
        """Return which value made a column of the input text, or None."""
        return self.base.explain_type(column) if column in self.base.schema.names else None

    def line_numbers(self, split: Split, pos: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the 1-based line or row in the file for arrival positions of a split."""
        return self.base.line_numbers(split, pos)

    def _read(self, split: Split, columns: Sequence[str], dictionary: Sequence[str]) -> Batch:
        """Read the parts of a split that may have rows for which the condition is true."""
        if self.condition is None:
            return self.base.read(split, columns, dictionary)
        parts = self.base.parts_with(split, self.condition)
        skipped = split.rows - sum(part.rows for part in parts)
        if not skipped:
            return self.base.read(split, columns, dictionary)
        if len(parts) == 1:
            return replace(self.base.read(parts[0], columns, dictionary), skipped=skipped)
        batches = [self.base.read(part, columns) for part in parts]  # dictionaries of parts would be different ones
        empty = pa.schema([self.base.schema.field(name) for name in columns]).empty_table()
        rejects = [batch.rejects for batch in batches if batch.rejects is not None]
        return Batch(
            pa.concat_tables([empty, *(batch.rows for batch in batches)]),
            np.concatenate([np.empty(0, np.int64), *(batch.pos for batch in batches)]),
            pa.concat_tables(rejects) if rejects else None,
            skipped=skipped,
        )

    def _with_virtual(self, split: Split, batch: Batch, needed: Sequence[str]) -> pa.Table:
        count = len(batch.pos)
        columns: dict[str, pa.ChunkedArray | pa.Array] = dict(
            zip(batch.rows.column_names, batch.rows.columns, strict=True)
        )
        if FILE in needed and FILE in self.projection.virtual:
            columns[FILE] = pa.repeat(self.base.file_name(split), count)
        if ARRIVAL in needed and ARRIVAL in self.projection.virtual:
            columns[ARRIVAL] = pa.array(batch.pos)
        return pa.table(columns or {"": pa.nulls(count)})  # a constant needs to know how many rows there are
