"""What the engine asks of readers and writers: they are handed in, never imported.

The plain values below are all that passes between them, so a reader knows nothing of windows and the
engine nothing of file formats. Everything here is pickled into Spark tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class InputFile:
    """One input file as the plan saw it.

    ``path`` as the user would write it, ``size`` in bytes, ``mtime`` as ISO 8601 in UTC or None.
    """

    path: str
    size: int
    mtime: str | None


@dataclass(frozen=True, slots=True)
class Split:
    """A piece of one file that is read in one go.

    ``index``: its place in arrival order, from 0. ``file``: index into ``Source.files``.
    ``base``: arrival position of its first row; ``rows``: how many positions it covers, rows that the
    reader itself rejects included, so the next split starts at ``base + rows``.
    ``nbytes``: bytes of all its columns in memory, an estimate. ``ends_file``: the file has no later split.
    ``place``: the format's own address (row groups, or a byte range).
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
    """What one split holds.

    ``rows``: a table of exactly the columns asked for, in that order and in the source schema's types.
    ``pos``: int64, the arrival position of each row, ascending.
    ``rejects``: the rows that could not be read at all, as a table of `REJECT_FIELDS`, or None. ``elsewhere``: how many
    of the split's positions are none of this input's, but of another run's.
    """

    rows: pa.Table
    pos: npt.NDArray[np.int64]
    rejects: pa.Table | None = None
    elsewhere: int = 0


REJECT_FIELDS: tuple[pa.Field, ...] = (
    pa.field("_reason", pa.string()),
    pa.field("_file", pa.string()),
    pa.field("_row", pa.int64()),  # 1-based: the line of a text file, the row of a Parquet file
    pa.field("_detail", pa.string()),  # the column and the value at fault, or null
    pa.field("_text", pa.string()),  # the raw line where a line could not be read, else null
)
"""What a rejected row carries besides the columns of the input (semantics section 8)."""


class Source(Protocol):
    """An input, listed and typed, ready to be read split by split from any process. Must pickle."""

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
        """What there is to read, in arrival order."""
        ...

    @property
    def columnar(self) -> bool:
        """Whether a few columns of a split can be read without going through all of its bytes."""
        ...

    @property
    def stream(self) -> StreamInfo | None:
        """How to read it as a stream, where it is a result of wincli."""
        ...

    def read(self, split: Split, columns: Sequence[str], dictionary: Sequence[str] = ()) -> Batch:
        """Read only ``columns`` of one split. Raises `InputError` naming the file where it cannot be read.

        Those text columns also named in ``dictionary`` may come as dictionary arrays, where values repeat.
        """
        ...

    def parts_of(self, split: Split) -> Sequence[Split]:
        """Return the smallest splits that a split can be read in, in order."""
        ...

    def explain_type(self, column: str) -> str | None:
        """Say which value made a column text, such as ``in/x.csv has '-' at line 17``, or None."""
        ...

    def line_numbers(self, split: Split, pos: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """1-based line (text formats) or row (Parquet) in its file of the given arrival positions of a split."""
        ...


@dataclass(frozen=True, slots=True)
class Part:
    """A file that a task has written: its ``name`` in the output folder, its ``rows`` and ``nbytes``.

    ``checksum``: of its bytes, as `windowing.support.checksum` has it; None where none was taken.
    """

    name: str
    rows: int
    nbytes: int
    checksum: str | None = None


class Sink(Protocol):
    """Where tasks write part files: a staging folder that nobody sees until it is committed. Must pickle."""

    def write_part(self, index: int, tables: Iterable[pa.Table]) -> Part:
        """Write part ``index`` of the result as its tables come. Writing it again replaces it (a retried task)."""
        ...

    def discard(self) -> None:
        """Delete all parts of the result that there are."""
        ...

    def write_rejects(self, index: int, rows: pa.Table) -> Part:
        """Write the rejected rows of task ``index``."""
        ...

    def write_scratch(self, name: str, rows: pa.RecordBatch) -> None:
        """Keep rows for other tasks of this run, until `forget`. Keeping them again replaces them (a retried task)."""
        ...

    def read_scratch(self, name: str) -> pa.RecordBatch:
        """Return the rows kept under a name; on one machine they stay on disk until they are looked at."""
        ...

    def drop_scratch(self) -> None:
        """Delete all that was kept."""
        ...


class StateFiles(Protocol):
    """Where a stage keeps what its windows hold: rows and keys by task, and a few small tables. Must pickle."""

    def write_rows(self, index: int, table: pa.Table) -> Part:
        """Write the rows of task ``index``. Writing them again replaces them (a retried task)."""
        ...

    def write_keys(self, index: int, table: pa.Table) -> Part:
        """Write the keys of task ``index``."""
        ...

    def write_table(self, name: str, table: pa.Table) -> Part:
        """Write a table that there is one of."""
        ...

    def read_table(self, name: str) -> pa.Table | None:
        """Return what `write_table` wrote, None where it wrote nothing."""
        ...

    def parts(self, kind: Literal["rows", "keys"]) -> Sequence[Part]:
        """Return the parts of rows or of keys, by task."""
        ...

    def read_part(self, part: Part) -> pa.Table:
        """Return the rows or the keys of one part."""
        ...


@dataclass(frozen=True, slots=True)
class Counts:
    """The account of section 8: ``rows_in + carried = windowed + filtered + sum(rejected) + dropped_at_end + held``.

    ``carried``: the rows that the run before held and no pane had shown; so it is ``held`` of that run.
    """

    rows_in: int = 0
    windowed: int = 0
    filtered: int = 0
    dropped_at_end: int = 0
    held: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    carried: int = 0

    def __add__(self, other: Counts) -> Counts:
        reasons = sorted({*self.rejected, *other.rejected})
        return Counts(
            self.rows_in + other.rows_in,
            self.windowed + other.windowed,
            self.filtered + other.filtered,
            self.dropped_at_end + other.dropped_at_end,
            self.held + other.held,
            {r: self.rejected.get(r, 0) + other.rejected.get(r, 0) for r in reasons},
            self.carried + other.carried,
        )

    @property
    def balanced(self) -> bool:
        """Whether every row is accounted for."""
        out = self.windowed + self.filtered + self.dropped_at_end + self.held
        return self.rows_in + self.carried == out + sum(self.rejected.values())


@dataclass(frozen=True, slots=True)
class ChunkAccount:
    """What the map side knows of the rows of a chunk: their ``counts`` and the parts that hold its ``rejects``."""

    counts: Counts = field(default_factory=Counts)
    rejects: tuple[Part, ...] = ()

    def __add__(self, other: ChunkAccount) -> ChunkAccount:
        return ChunkAccount(self.counts + other.counts, self.rejects + other.rejects)


OWN = ("window", "window_start", "window_end", "closed_by", "_at", "_pos", "_mark")
"""What is a stage's own in every result, and in those that do not say."""


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """How the rows of a result, read back, stand in emission order.

    Sorted by ``order`` (nulls last) they are in the order in which they were emitted: ``_at`` (and ``_at_2`` .. where
    the stage before was ordered by several columns), ``_pos``, ``window``, its keys, its groups. ``at``: the leading
    ones that are order values. ``own``: the columns that say what the stage did, and are none of its rows, keys or
    aggregates.
    """

    order: tuple[str, ...]
    at: tuple[str, ...]
    own: tuple[str, ...] = OWN


RunTasks: TypeAlias = Callable[[str, Callable[[Any], Any], Iterable[Any]], list[Any]]
"""`Executor.map`, for what needs no more of it: a label, a function over items, the items; what it gives, in order."""


class Executor(Protocol):
    """What runs tasks: Spark (`windowing.spark.session`). Functions and items are pickled on their way to tasks.

    What a task raises arrives on the driver as itself, where it is a `WincliError`.
    """

    @property
    def parallelism(self) -> int:
        """How many tasks run at a time."""
        ...

    def map(self, label: str, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Run a function over items, in tasks; return what it gives, in the order of the items."""
        ...

    def shuffle(
        self,
        label: str,
        send: Callable[[Iterator[T]], Iterator[tuple[int, Any]]],
        receive: Callable[[int, Iterator[tuple[int, Any]]], Iterator[R]],
        items: Sequence[T],
        partitions: int,
    ) -> list[R]:
        """Run ``send`` over each item; bring what it yields to its partition, and run ``receive`` over each of these.

        ``send`` yields pairs of a partition's number, ``[0, partitions)``, and what is for it; ``receive`` gets that
        number and its pairs, in no order. Returns what all of these yield, by partition.
        """
        ...

    def broadcast(self, value: Any) -> Broadcast:
        """Give a value to all tasks, once."""
        ...

    def shared_folders(self) -> AbstractContextManager[tuple[str, ...]]:
        """Make folders that all tasks see, and remove them at the end; none where tasks run on several machines."""
        ...


class Broadcast(Protocol):
    """Anything that has the value: a Spark broadcast variable is one."""

    @property
    def value(self) -> Any:
        """The value itself."""
        ...


@dataclass(frozen=True, slots=True)
class LocalBroadcast:
    """A value at hand."""

    value: Any
