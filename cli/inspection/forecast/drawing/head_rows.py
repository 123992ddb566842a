"""The first rows of an input, read in this process: of all keys, or of chosen ones wherever these stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .....readers.source import FileSource
from .....windowing.enrichment.source import EnrichedSource
from .....windowing.ports import Source, Split

_HEAD = 20_000
"""Rows that are read for a drawing; of chosen keys, rows of these keys."""
_PIECE = 4 << 20  # bytes of text that are read at a time


@dataclass(frozen=True, slots=True)
class HeadRows:
    """Rows of an input in arrival order.

    ``rows``: the rows.
    ``ends``: after how many of them a file ends, ascending.
    ``seen``: how many rows of the input were looked at.
    ``is_all``: whether that were all.
    """

    rows: pa.Table
    ends: tuple[int, ...]
    seen: int
    is_all: bool


def read_head(source: Source, columns: Sequence[str], only: Mapping[str, Sequence[Any]], most: int = _HEAD) -> HeadRows:
    """Read rows in arrival order until there are ``most``.

    ``only``: values by column; rows with others are passed over. Memory is bounded by ``most`` and one part of a file.
    """
    schema = pa.schema([source.schema.field(name) for name in columns])
    tables, ends, count, seen = [schema.empty_table()], [], 0, 0
    parts = _parts(source)
    for part, ends_file in parts:
        found = _read_part(source, part, columns, only)
        tables.append(found.slice(0, most - count).cast(schema))
        count, seen = count + found.num_rows, seen + part.rows
        if count > most:
            break
        if ends_file:
            ends.append(count)
        if count == most:
            break
    is_all = count <= most and next(parts, None) is None
    return HeadRows(pa.concat_tables(tables), tuple(ends), seen, is_all)


def _parts(source: Source) -> Iterator[tuple[Split, bool]]:
    """Yield small splits in arrival order, and whether each is the last of its file."""
    for split in source.splits:
        before = None
        for piece in _pieces(source, split):
            if before is not None:
                yield before, False
            before = piece
        if before is not None:
            yield before, split.ends_file


def _pieces(source: Source, split: Split) -> Iterable[Split]:
    """Return the splits that a split is made of, as far as they can be read alone."""
    files = source.base if isinstance(source, EnrichedSource) else source
    return files.pieces_of(split, _PIECE) if isinstance(files, FileSource) else source.parts_of(split)


def _read_part(source: Source, part: Split, columns: Sequence[str], only: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Read a part; where it is columnar, columns besides the chosen keys only if these have rows in it."""
    if only and source.columnar and len(only) < len(columns):
        mask = _mask(source.read(part, list(only)).rows, only)
        if not pc.any(mask).as_py():
            return pa.schema([source.schema.field(name) for name in columns]).empty_table()
    rows = source.read(part, columns).rows
    return rows.filter(_mask(rows, only)) if only else rows


def _mask(rows: pa.Table, only: Mapping[str, Sequence[Any]]) -> Any:
    mask = pa.repeat(True, rows.num_rows)
    for name, values in only.items():
        mask = pc.and_(mask, pc.is_in(rows.column(name), pa.array(values, rows.column(name).type)))
    return mask
