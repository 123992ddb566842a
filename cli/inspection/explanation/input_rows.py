"""Rows by their arrival positions, as the input has them, with file and line."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from ....windowing.columns.arrays import Ints
from ....windowing.ports import Source, Split
from .explanation import InputRows


def read_ends(source: Source, pos: Ints, most: int) -> InputRows:
    """Read the first and the last of some rows.

    ``pos``: int64 (n,), arrival positions in the order of the window. ``most``: how many rows are read.
    """
    count = len(pos)
    head = count if count <= most else most - most // 2
    at = np.concatenate([np.arange(head), np.arange(count - (0 if head == count else most // 2), count)])
    table, places = read_at(source, pos[at])
    return InputRows(pos, table, tuple(places), at)


def read_at(source: Source, pos: Ints) -> tuple[pa.Table, list[str]]:
    """Return the rows at arrival positions, in that order, and file and line of each."""
    names = list(source.schema.names)
    found: dict[int, tuple[pa.Table, str]] = {}
    for part, wanted in _by_part(source, np.unique(pos)):
        batch = source.read(part, names)
        places = np.searchsorted(batch.pos, wanted)
        lines = source.line_numbers(part, wanted)
        file = _name(source, part)
        for at, place, line in zip(wanted.tolist(), places.tolist(), lines.tolist(), strict=True):
            found[at] = (batch.rows.slice(place, 1), f"{file}:{line}")
    rows = [found[each] for each in pos.tolist()]
    empty = pa.schema([source.schema.field(name) for name in names]).empty_table()
    return pa.concat_tables([empty, *(row for row, _ in rows)]), [place for _, place in rows]


def _name(source: Source, part: Split) -> str:
    """Return the name of a file, or its path where several have this name."""
    name = source.file_name(part)
    files = {split.file: split for split in source.splits}
    alike = sum(source.file_name(split) == name for split in files.values())
    return name if alike < 2 else source.files[part.file].path


def _by_part(source: Source, pos: Ints) -> Iterator[tuple[Split, Ints]]:
    """Yield the smallest parts of files that hold rows, each with the positions of these. ``pos``: ascending."""
    for split, within in _shared(source.splits, pos):
        yield from _shared(source.parts_of(split), within)


def _shared(splits: Sequence[Split], pos: Ints) -> Iterator[tuple[Split, Ints]]:
    bases = [split.base for split in splits]
    at = np.array([bisect_right(bases, each) - 1 for each in pos.tolist()], np.int64)
    for each in np.unique(at).tolist():
        yield splits[each], pos[at == each]
