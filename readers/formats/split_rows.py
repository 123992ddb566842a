"""What a format reads from one split, before it is put into the shape of the whole input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...windowing.ports import REJECT_FIELDS, Split
from ..files.file import Located
from ..schema.types import ColumnType, Int64s, Mask
from ..text.records import Records

_LONGEST = 80


@dataclass(frozen=True, slots=True)
class Reject:
    """A row that could not be read: its offset in the split, its 1-based line or row, why, and its raw line."""

    offset: int
    line: int
    detail: str
    text: str | None


@dataclass(frozen=True, slots=True)
class TypeErrors:
    """The rows of a column whose value is not of its type: ``mask`` over the rows of ``column`` as it was read."""

    name: str
    want: ColumnType
    column: pa.ChunkedArray
    mask: Mask

    def detail(self, row: int) -> str:
        """Say what is wrong with the value of one row."""
        text = _shown(self.column[row])
        short = text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
        return f"column {self.name}: {short} is not {self.want.words}"


def _shown(value: pa.Scalar) -> str:
    """Return a value as a message shows it; a time beyond what Python's own types hold has a text all the same."""
    if not pa.types.is_temporal(value.type):
        return repr(value.as_py())
    try:
        return str(pc.cast(value, pa.string()))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # a zone that this machine does not know, an interval
        return str(value.value)


@dataclass(frozen=True, slots=True)
class SplitRows:
    """The good rows of a split, with the offset of each in the split, and the rejected ones."""

    table: pa.Table
    offsets: Int64s
    rejects: tuple[Reject, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """What to read of a file whose columns are ``names``: the types by column, and those to be dictionary encoded."""

    names: tuple[str, ...]
    types: Mapping[str, ColumnType]
    dictionary: tuple[str, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        """The columns asked for."""
        return pa.schema([(name, kind.type) for name, kind in self.types.items()])


class FormatReader(Protocol):
    """What a file format is to the rest. Must pickle."""

    def read(self, place: Located, split: Split, request: ReadRequest) -> SplitRows:
        """Read the columns asked for, in that order."""
        ...

    def lines(self, place: Located, split: Split, offsets: Int64s) -> Int64s:
        """Return the 1-based lines or rows in the file of rows at ``offsets``, ascending, of a split."""
        ...


def drop_type_errors(table: pa.Table, misfits: Sequence[TypeErrors]) -> tuple[pa.Table, Mask | None]:
    """Return the rows of ``table`` without misfits, and the mask of the rows that have one, None if there is none."""
    if not misfits:
        return table, None
    bad: Mask = np.logical_or.reduce([m.mask for m in misfits])
    return table.filter(pa.array(~bad)), bad


def first_detail(misfits: Sequence[TypeErrors], row: int) -> str:
    """Return what is wrong with the first column of ``row`` that is."""
    return next(m.detail(row) for m in misfits if m.mask[row])


def text_rejects(data: bytes, records: Records, line: int, details: Mapping[int, str]) -> tuple[Reject, ...]:
    """Return the rejects of a piece of text whose first line is ``line``, by row what is wrong with it."""
    return tuple(
        Reject(row, line + int(records.lines[row]), detail, records.text(data, row)) for row, detail in details.items()
    )


def rejects_table(file: str, rejects: Sequence[Reject]) -> pa.Table | None:
    """Return rejects as a table of `REJECT_FIELDS`, in order of their offset, None where there are none."""
    if not rejects:
        return None
    rows = sorted(rejects, key=lambda r: r.offset)
    columns = (
        ["unparsable"] * len(rows),
        [file] * len(rows),
        [r.line for r in rows],
        [r.detail for r in rows],
        [r.text for r in rows],
    )
    return pa.table(
        [pa.array(c, f.type) for c, f in zip(columns, REJECT_FIELDS, strict=True)], pa.schema(REJECT_FIELDS)
    )


def concatenate_splits(buffers: Sequence[tuple[int, SplitRows]], empty: pa.Schema) -> SplitRows:
    """Put buffers behind one another, each with the offset of its first row."""
    tables = [p.table for _, p in buffers] or [empty.empty_table()]
    offsets = [p.offsets + base for base, p in buffers] or [np.empty(0, np.int64)]
    rejects = tuple(Reject(r.offset + base, r.line, r.detail, r.text) for base, p in buffers for r in p.rejects)
    return SplitRows(pa.concat_tables(tables), np.concatenate(offsets), rejects)
