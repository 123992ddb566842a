"""The rows of an enrich table, read whole or split by split; a row that cannot be read is an error, never a gap."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..columns.arrays import Ints
from ..errors import DataError, InputError
from ..ports import Source, Split
from .binding import BoundEnrichment
from .table import DuplicateKeyError, EnrichTable, enrich_table


def read_rows(bound: BoundEnrichment, source: Source, split: Split) -> tuple[pa.Table, Ints]:
    """Read the columns of an enrich table that are needed, and the arrival positions, from one split.

    Raises `InputError` naming the first row that cannot be read.
    """
    batch = source.read(split, bound.right)
    if batch.rejects is not None and batch.rejects.num_rows:
        bad: dict[str, Any] = batch.rejects.slice(0, 1).to_pylist()[0]
        why = bad["_detail"] or bad["_reason"]
        what = f"--enrich {bound.enrichment.name}: row {bad['_row']} of {bad['_file']} cannot be read: {why}"
        raise InputError(what, "correct it, for rows that look something up there would silently get nothing")
    return batch.rows, batch.pos


def read_all(bound: BoundEnrichment, source: Source, before: pa.Table | None) -> tuple[pa.Table, Ints]:
    """Read a whole enrich table: its rows, and their arrival positions, int64 (n,).

    ``before``: rows that earlier runs have seen, which come before all others, at -1; or None. Raises as `read_rows`.
    """
    schema = pa.schema([source.schema.field(name) for name in bound.right])
    found = [read_rows(bound, source, split) for split in source.splits]
    if before is not None:
        found.insert(0, (as_seen(bound, before, schema), np.full(before.num_rows, -1, np.int64)))
    rows = pa.concat_tables([schema.empty_table(), *(rows for rows, _ in found)])
    return rows, np.concatenate([np.empty(0, np.int64), *(pos for _, pos in found)])


def as_seen(bound: BoundEnrichment, rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows that earlier runs have seen in the types of now. Raises `DataError` where these cannot hold them."""
    try:
        return rows.select(schema.names).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, KeyError) as error:
        what = f"--enrich {bound.enrichment.name}: its table has other columns or types than in the run before: {error}"
        raise DataError(
            what, "give the columns of the table the types that they had, as --schema does for text"
        ) from error


def read_table(bound: BoundEnrichment, source: Source) -> EnrichTable:
    """Read a whole enrich table into memory.

    Raises what `read_rows` raises, and `DataError` for a key that a lookup table has twice, with both places.
    """
    return table_of(bound, source, *read_all(bound, source, None))


def table_of(bound: BoundEnrichment, source: Source, rows: pa.Table, pos: Ints) -> EnrichTable:
    """Sort what `read_all` has read. Raises `DataError` for a key that a lookup table has twice, with both places."""
    try:
        return enrich_table(bound, rows, pos)
    except DuplicateKeyError as error:
        raise located(error, source) from None


def located(error: DuplicateKeyError, source: Source) -> DataError:
    """Return the error of a key that is there twice with the places of both rows."""
    one, other = (_place(source, position) for position in error.positions)
    return DataError(f"{error.what}: in {one} and in {other}", error.do)


def _place(source: Source, position: int) -> str:
    splits: Sequence[Split] = source.splits
    split = splits[bisect_right([each.base for each in splits], position) - 1]
    line = source.line_numbers(split, np.array([position]))[0]
    return f"{source.files[split.file].path} (row {line})"
