"""The contract of a file format: how it divides files into splits, what to read from one, its rows and rejects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...windowing.ports import REJECT_FIELDS, Condition, Executor, Split
from ...windowing.support.value_table import SharedValues, ValueTable, value_table
from ..files.file import Located
from ..files.walk import ListedFile
from ..options import ReadOptions
from ..values.casts import convert
from ..values.types import ColumnType, Int64s

_LONGEST = 80


@dataclass(frozen=True, slots=True)
class Reject:
    """A row that could not be read.

    ``offset``: its 0-based offset in the split.
    ``line``: its 1-based line (text formats) or row (Parquet) in the file.
    ``detail``: why it could not be read.
    ``text``: its text in the file; None for Parquet.
    """

    offset: int
    line: int
    detail: str
    text: str | None


@dataclass(frozen=True, slots=True)
class SplitRows:
    """The rows of a split.

    ``table``: the N rows that could be read.
    ``offsets``: int64 (N,), the 0-based offset of each of these rows in the split, ascending.
    ``rejects``: the other rows.
    """

    table: pa.Table
    offsets: Int64s
    rejects: tuple[Reject, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """What to read of a split.

    ``names``: all columns of the file, in its order.
    ``types``: the types of the columns to read, by column.
    ``dictionary``: the text columns that are to be dictionary encoded.
    """

    names: tuple[str, ...]
    types: Mapping[str, ColumnType]
    dictionary: tuple[str, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(name, kind.type) for name, kind in self.types.items()])


class FormatReader(Protocol):
    """The reader of one file format. An implementation must pickle.

    ``columnar``: whether a few columns of a split can be read without going through all of its bytes. Such a reader
        decides itself which of the ``dictionary`` columns of a request are worth encoding.
    """

    columnar: ClassVar[bool]

    def read(self, place: Located, split: Split, request: ReadRequest) -> SplitRows:
        """Read the columns of ``request``, in that order; a row with a value that does not convert becomes a reject.

        Raises `InputError` where the file cannot be read.
        """

    def lines(self, place: Located, split: Split, offsets: Int64s) -> Int64s:  # noqa: ARG002
        """Return the 1-based lines (text) or rows in the file of rows of a split.

        ``offsets``: the offsets of the rows in the split, int64 (N,), ascending. The result has the same shape.
        """
        return offsets + split.place[0] + 1

    def parts_of(self, place: Located, split: Split) -> Sequence[Split]:  # noqa: ARG002
        """Return the smallest splits that a split can be read in, in order; at least one."""
        return [split]

    def pieces_of(self, place: Located, split: Split, nbytes: int) -> Iterable[Split]:  # noqa: ARG002
        """Return splits that a split is made of, in order: text in about ``nbytes`` bytes, else as `parts_of`."""
        return self.parts_of(place, split)

    def looks_of(self, place: Located, split: Split) -> Sequence[Split]:
        """Return small parts that stand for a split, in order; of text their positions are estimates."""
        parts = self.parts_of(place, split)
        return [parts[len(parts) // 2]]

    def parts_with(
        self,
        place: Located,  # noqa: ARG002
        split: Split,
        condition: Condition,  # noqa: ARG002
        types: Mapping[str, pa.DataType],  # noqa: ARG002
    ) -> Sequence[Split]:
        """Return the parts of a split without those of which the file says that a condition is true for no row.

        ``types``: the types in which the columns of the condition are read.
        """
        return [split]


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """The splits and schemas of an input.

    ``text_at``: the index of the first split whose values made the type of a column string, by column.
    ``is_cut``: whether the input has more rows; then ``schemas`` may end before its files do.
    ``whole``: the last split as its reader knows it, where only its first rows are read; else None.
    """

    splits: ValueTable[Split]
    schemas: SharedValues
    text_at: dict[str, int] = field(default_factory=dict)
    is_cut: bool = False
    whole: Split | None = None


def cut_plan(plan: SplitPlan, rows: int, *, ends_file: bool) -> SplitPlan:
    """Return a plan of an input that is cut behind its first ``rows`` rows, of which the last are in its last split.

    ``ends_file``: whether the last of these rows is the last of its file, too.
    """
    *others, last = plan.splits
    kept = rows - last.base
    nbytes = last.nbytes * kept // max(1, last.rows)
    cut = replace(last, rows=kept, nbytes=nbytes, ends_file=ends_file)
    whole = last if kept < last.rows else None
    return replace(plan, splits=value_table(Split, [*others, cut]), is_cut=True, whole=whole)


PlanInput: TypeAlias = Callable[
    [Sequence[ListedFile], ReadOptions, Mapping[str, ColumnType], Executor], tuple[FormatReader, SplitPlan]
]
"""The entry point of a file format, ``plan_input`` of its module: divides files into splits and finds their types.

It takes the declared types by column, and what scans parts of a large input, perhaps in tasks. Raises `InputError`
naming a file that cannot be read.
"""


def converted(
    raw: Mapping[str, pa.ChunkedArray] | pa.Table, types: Mapping[str, ColumnType]
) -> tuple[pa.Table, dict[int, str]]:
    """Return columns in the wanted types, null where a value does not fit; and, by row, what its first misfit is."""
    columns: dict[str, pa.ChunkedArray] = {}
    details: dict[int, str] = {}
    for name, kind in types.items():
        columns[name], bad = convert(raw[name], kind)
        for row in () if bad is None else np.flatnonzero(bad).tolist():
            if row not in details:
                details[row] = f"column {name}: {_short_text(raw[name][row])} is not {kind.words}"
    return pa.table(columns), details


def _short_text(value: pa.Scalar) -> str:
    if not pa.types.is_temporal(value.type):
        text = repr(value.as_py())
    else:  # Python has no such value for each of these
        text = str(value.value)
        with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):  # an unknown time zone, or an interval
            text = str(pc.cast(value, pa.string()))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def without_rows(table: pa.Table, offsets: Int64s, bad: Collection[int]) -> tuple[pa.Table, Int64s]:
    """Return a table and its offsets without the rows of some indices."""
    if not bad:
        return table, offsets
    good = np.ones(len(offsets), np.bool_)
    good[list(bad)] = False
    return table.filter(pa.array(good)), offsets[good]


def rejects_table(file: str, rejects: Sequence[Reject]) -> pa.Table | None:
    """Return rejects as a table of `REJECT_FIELDS`, sorted by offset; None where there are none."""
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
