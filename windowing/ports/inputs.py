"""The port of readers: a source, its files and splits, and what reading one gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

OWN = ("window", "window_start", "window_end", "closed_by", "_at", "_pos", "_mark")
"""The columns that a stage adds in every result; the default for results that do not list them."""


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """The columns that put the rows of a result into emission order when it is read back.

    ``order``: the columns to sort by, nulls last: ``_at`` (``_at_2``, .. for more order columns), ``_pos``,
        ``window``, the keys and the groups of the stage that wrote the result.
    ``at``: the leading columns of ``order`` that are order values.
    ``own``: the columns that the stage added: none of its rows, keys or aggregates.
    """

    order: tuple[str, ...]
    at: tuple[str, ...]
    own: tuple[str, ...] = OWN


@dataclass(frozen=True, slots=True)
class InputFile:
    """One input file as the driver listed it.

    ``path``: the path as the user would write it.
    ``size``: bytes.
    ``mtime``: time of the last change, ISO 8601 in UTC, or None.
    """

    path: str
    size: int
    mtime: str | None


@dataclass(frozen=True, slots=True)
class Split:
    """The part of one file that a reader reads in one go.

    ``index``: its number in arrival order, from 0.
    ``file``: index into ``Source.files``.
    ``base``: arrival position of its first row.
    ``rows``: how many positions it covers, including rejected rows; the next split starts at ``base + rows``.
    ``nbytes``: bytes of all its columns in memory, an estimate.
    ``ends_file``: whether it is the last split of its file.
    ``place``: the address in the file's format: row groups, or a byte range.
    """

    index: int
    file: int
    base: int
    rows: int
    nbytes: int
    ends_file: bool
    place: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows of one split.

    ``rows``: a table of exactly the requested columns, in that order and in the source schema's types.
    ``pos``: int64 (n,), the arrival position of each row, ascending.
    ``rejects``: the rows that could not be read, as a table of `REJECT_FIELDS`, or None.
    ``elsewhere``: how many of the split's positions belong to the input of another run.
    ``kept``: bool (n,), for which rows the condition of the run is true; None: for all. Marks of the others count.
    ``failures``: the rows for which an expression failed, none of them kept; None: no row.
    ``skipped``: how many rows were not read, because statistics say that the condition is true for none of them.
    """

    rows: pa.Table
    pos: npt.NDArray[np.int64]
    rejects: pa.Table | None = None
    elsewhere: int = 0
    kept: npt.NDArray[np.bool_] | None = None
    failures: Failures | None = None
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Failures:
    """Rows for which an expression failed.

    ``row``: int64 (k,), their indices, ascending and without repeats.
    ``detail``: string (k,), for each of them the expression that failed first, and why.
    """

    row: npt.NDArray[np.int64]
    detail: pa.Array


REJECT_FIELDS: tuple[pa.Field, ...] = (
    pa.field("_reason", pa.string()),
    pa.field("_file", pa.string()),
    pa.field("_row", pa.int64()),  # 1-based: the line of a text file, the row of a Parquet file
    pa.field("_detail", pa.string()),  # the column and the value at fault, or null
    pa.field("_text", pa.string()),  # the raw line where a line could not be read, else null
)
"""The columns of a rejected row besides the columns of the input (semantics section 8)."""


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """What a file says of the values of a column in a part of it; the values are of the column's Arrow type.

    ``low``: no value is below it; None: unknown.
    ``high``: no value is above it; None: unknown.
    ``nulls``: the number of nulls; None: unknown.
    ``rows``: the number of rows.
    """

    low: Any
    high: Any
    nulls: int | None
    rows: int


class Condition(Protocol):
    """A condition of rows, for readers that can leave out parts of files."""

    @property
    def columns(self) -> Sequence[str]:
        """The columns of the input that it depends on."""
        ...

    def is_never_true(self, ranges: Mapping[str, ColumnRange]) -> bool:
        """Return whether it is true for no row with such values; False where that is unknown."""
        ...


class Source(Protocol):
    """An input with its files and schema, to be read split by split in any process. Implementations must pickle."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of all files together."""
        ...

    @property
    def files(self) -> Sequence[InputFile]:
        """The files, in arrival order."""
        ...

    @property
    def splits(self) -> Sequence[Split]:
        """The splits of all files, in arrival order."""
        ...

    @property
    def columnar(self) -> bool:
        """Whether a few columns of a split can be read without reading all of its bytes."""
        ...

    @property
    def stream(self) -> StreamInfo | None:
        """How to read the input as a stream, where it is a result of wincli; else None."""
        ...

    def read(self, split: Split, columns: Sequence[str], dictionary: Sequence[str] = ()) -> Batch:
        """Read ``columns`` of one split; text columns in ``dictionary`` may be dictionary arrays, where values repeat.

        Raises `InputError` with the name of the file where that fails.
        """
        ...

    def parts_of(self, split: Split) -> Sequence[Split]:
        """Return the smallest splits into which a split can be divided, in order."""
        ...

    def looks_of(self, split: Split) -> Sequence[Split]:
        """Return small parts that stand for a split, in order; none where it has none. For samples.

        Their arrival positions ascend, but of text they are estimates.
        """
        ...

    def is_local(self, split: Split) -> bool:
        """Whether the file of a split is on a local file system, where reads have little latency."""
        ...

    def parts_with(self, split: Split, condition: Condition) -> Sequence[Split]:
        """Return the parts of a split, in order, without those that a condition is true for no row of.

        What cannot be decided without reading rows is returned. All of it: the split itself.
        """
        ...

    def file_name(self, split: Split) -> str:
        """Return the name of the file of a split relative to the path that the user gave, with ``/``."""
        ...

    def explain_type(self, column: str) -> str | None:
        """Return which value made a column text, such as ``in/x.csv has '-' at line 17``, or None."""
        ...

    def line_numbers(self, split: Split, pos: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the 1-based line (text formats) or row (Parquet) in the file for arrival positions of a split."""
        ...
