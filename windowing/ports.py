"""The port of readers: a source, its files and splits, and what reading one gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import Any, ClassVar, Literal, Protocol, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .tables.statistics import FileStatistics

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


Looks: TypeAlias = Literal["all", "columnar", "none"]


class Step(Protocol):
    """What the rows of an input go through between their files and the windows; a `Source` has a tuple of them.

    Each sees the source as the steps before it leave it, and counts on what that says of positions and rejects.
    Implementations pickle.

    ``skips``: whether parts of files may be left out before it. Not where it counts each row, or may reject it.
    ``looks``: of which inputs small parts stand for a split: of all; of columnar ones, where it needs the exact
        positions of rows; or of none, where it keeps few of them.
    """

    skips: ClassVar[bool]
    looks: ClassVar[Looks]

    def schema_after(self, before: pa.Schema) -> pa.Schema:
        """Return the columns behind it."""
        ...

    def read(self, before: Source, split: Split, columns: Sequence[str], dictionary: Sequence[str]) -> Batch:
        """Read ``columns`` of one split of the source before it, as `Source.read` does."""
        ...


class Source(Protocol):
    """An input: its files, and the steps that their rows go through. It is read split by split in any process.

    Implementations must pickle.

    ``schema``: the columns behind all steps.
    ``files``: the files, in arrival order.
    ``splits``: the splits of all files, in arrival order; each counts all of its rows, whatever steps leave out.
    ``columnar``: whether a few columns of a split can be read without reading all of its bytes.
    ``stream``: how to read the input as a stream, where it is a result of wincli; else None.
    ``shift``: how far arrival positions are from those that the files alone have: `moved` adds to it.
    ``steps``: the steps, first to last.
    """

    @property
    def schema(self) -> pa.Schema: ...
    @property
    def files(self) -> Sequence[InputFile]: ...
    @property
    def splits(self) -> Sequence[Split]: ...
    @property
    def columnar(self) -> bool: ...
    @property
    def stream(self) -> StreamInfo | None: ...
    @property
    def shift(self) -> int: ...
    @property
    def steps(self) -> tuple[Step, ...]: ...

    def with_steps(self, steps: Iterable[Step]) -> Self:
        """Return the same files with other steps."""
        ...

    def moved(self, by: int) -> Self:
        """Return the same rows with a number added to all arrival positions."""
        ...

    def read(self, split: Split, columns: Sequence[str], dictionary: Sequence[str] = ()) -> Batch:
        """Read ``columns`` of one split; text columns in ``dictionary`` may be dictionary arrays, where values repeat.

        Raises `InputError` with the name of the file where that fails.
        """
        ...

    def check_unchanged(self) -> None:
        """Raise `InputError` naming a file that has changed since it was listed."""
        ...

    def parts_of(self, split: Split) -> Sequence[Split]:
        """Return the smallest splits into which a split can be divided, in order."""
        ...

    def looks_of(self, split: Split) -> Sequence[Split]:
        """Return small parts that stand for a split, in order; the split where it has none. For samples.

        Their arrival positions ascend, but of text they are estimates.
        """
        ...

    def parts_with(self, split: Split, condition: Condition) -> Sequence[Split]:
        """Return the parts of a split, in order, without those that a condition is true for no row of.

        What cannot be decided without reading rows is returned. All of it: the split itself.
        """
        ...

    def is_local(self, split: Split) -> bool:
        """Whether the file of a split is on a local file system, where reads have little latency."""
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


# The ports of writers: where tasks write parts of a result, and what a run leaves for the next.


@dataclass(frozen=True, slots=True)
class Part:
    """A file that a task has written.

    ``name``: its name in the output folder.
    ``rows``: how many rows it holds.
    ``nbytes``: its size.
    ``checksum``: of its bytes, as `windowing.support.checksum` computes it; None where there is none.
    ``digest``: of its rows, as `windowing.columns.row_hashes` computes it; None where there is none.
    """

    name: str
    rows: int
    nbytes: int
    checksum: str | None = None
    digest: str | None = None

    @property
    def rank(self) -> tuple[int, str, str]:
        """The place of a part of a result among the others: by its number, then by its folder."""
        file = self.name.rpartition("/")[2]
        return len(file), file, self.name


@dataclass(frozen=True, slots=True)
class RowCheck:
    """What a condition over rows of the result has come to.

    ``rows``: how many rows were looked at.
    ``true``: for how many of them the condition is true.
    ``example``: the first row for which it is not, as text; None where there is none.
    """

    rows: int = 0
    true: int = 0
    example: str | None = None

    def __add__(self, other: RowCheck) -> RowCheck:
        return RowCheck(self.rows + other.rows, self.true + other.true, self.example or other.example)


@dataclass(frozen=True, slots=True)
class ResultPart(Part):
    """A file of the result.

    ``statistics``: what a table by version has to know of its columns; None for results in folders.
    ``tail``: the checksum of its last bytes, as `windowing.support.checksum.LAST` has it; None where there is none.
    """

    statistics: FileStatistics | None = None
    tail: str | None = None


@dataclass(frozen=True, slots=True)
class CheckedPart(ResultPart):
    """A file of the result whose rows were checked.

    ``checks``: what each condition of the run has come to, in their order.
    """

    checks: tuple[RowCheck, ...] = ()


class Sink(Protocol):
    """Where tasks write parts: a staging folder that no reader sees before the commit. Implementations must pickle."""

    def write_parts(self, index: int, tables: Iterable[pa.Table]) -> tuple[Part, ...]:
        """Write part ``index`` of the result table by table: one file, or one in each folder that its rows belong to.

        A second call with the same rows replaces the files (a retried task).
        """
        ...

    def discard(self) -> None:
        """Delete all parts of the result."""
        ...

    def write_rejects(self, index: int, rows: pa.Table) -> Part:
        """Write the rejected rows of task ``index``."""
        ...

    def write_scratch(self, name: str, rows: pa.RecordBatch) -> None:
        """Store rows for other tasks, until `drop_scratch`. A second call replaces them (a retried task)."""
        ...

    def read_scratch(self, name: str) -> pa.RecordBatch:
        """Return the rows stored under a name; on one machine they stay on disk until they are read."""
        ...

    def drop_scratch(self) -> None:
        """Delete all scratch rows."""
        ...


class StateFiles(Protocol):
    """Where a stage stores its window state: rows and keys by task, and a few small tables. Must pickle."""

    def write_rows(self, index: int, table: pa.Table) -> Part:
        """Write the rows of task ``index``. A second call replaces them (a retried task)."""
        ...

    def write_keys(self, index: int, table: pa.Table) -> Part:
        """Write the keys of task ``index``."""
        ...

    def write_table(self, name: str, table: pa.Table) -> Part:
        """Write a table of the whole stage."""
        ...

    def read_table(self, name: str) -> pa.Table | None:
        """Return the table that `write_table` wrote, None where there is none."""
        ...

    def tables(self, beginning: str) -> Sequence[Part]:
        """Return the tables whose names begin so, by name."""
        ...

    def parts(self, kind: Literal["rows", "keys"]) -> Sequence[Part]:
        """Return the parts of rows or of keys, by task."""
        ...

    def read_part(self, part: Part) -> pa.Table:
        """Return the rows or the keys of one part."""
        ...


# The port of what runs tasks.


T = TypeVar("T")
R = TypeVar("R")


class Executor(Protocol):
    """What runs tasks: Spark (`windowing.spark.session`) or this process (`windowing.local_executor`).

    Functions and items are pickled and sent to tasks. A `WincliError` that a task raises is raised on the driver with
    its type and message.
    """

    @property
    def parallelism(self) -> int:
        """How many tasks run at the same time."""
        ...

    def map(self, label: str, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Run a function over items, in tasks; return its results in the order of the items."""
        ...

    def shuffle(
        self,
        label: str,
        send: Callable[[Iterator[T]], Iterator[tuple[int, Any]]],
        receive: Callable[[int, Iterator[tuple[int, Any]]], Iterator[R]],
        items: Sequence[T],
        partitions: int,
    ) -> list[R]:
        """Run ``send`` over the items, exchange its pairs ``(partition, value)``, run ``receive`` over each partition.

        Partitions are ``[0, partitions)``; pairs come in no particular order. Returns all results, by partition.
        """
        ...

    def broadcast(self, value: Any) -> Broadcast:
        """Send a value to all tasks once."""
        ...

    def shared_folders(self) -> AbstractContextManager[tuple[str, ...]]:
        """Create folders that all tasks see and remove them at the end; none where tasks run on several machines."""
        ...


class Broadcast(Protocol):
    """A value that tasks share, such as a Spark broadcast variable."""

    @property
    def value(self) -> Any:
        """The value itself."""
        ...


# The row accounting: where every row of the input has gone (semantics section 8).


def sum_rejected(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Sum rejected rows by reason; the reasons are sorted."""
    return {reason: sum(each.get(reason, 0) for each in counts) for reason in sorted({*chain.from_iterable(counts)})}


@dataclass(frozen=True, slots=True)
class Counts:
    """Row accounting (section 8): ``rows_in + carried = windowed + filtered + sum(rejected) + dropped_at_end + held``.

    ``rows_in``: rows of the input.
    ``windowed``: rows that a pane has shown.
    ``filtered``: rows that belong to no window.
    ``dropped_at_end``: rows of windows that the end of the data dropped.
    ``held``: rows in the state that no pane has shown yet.
    ``rejected``: rejected rows by reason.
    ``carried``: rows taken over from the run before, which is ``held`` of that run.
    ``panes_hidden``: panes that came out and have no row in the result, because of ``--having``; not part of the sum.
    ``duplicates``: those of ``filtered`` that ``--distinct`` leaves out; None: the job does not say so.
    """

    rows_in: int = 0
    windowed: int = 0
    filtered: int = 0
    dropped_at_end: int = 0
    held: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    carried: int = 0
    panes_hidden: int = 0
    duplicates: int | None = None

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.rows_in + other.rows_in,
            self.windowed + other.windowed,
            self.filtered + other.filtered,
            self.dropped_at_end + other.dropped_at_end,
            self.held + other.held,
            sum_rejected((self.rejected, other.rejected)),
            self.carried + other.carried,
            self.panes_hidden + other.panes_hidden,
            sum(told) if (told := [each.duplicates for each in (self, other) if each.duplicates is not None]) else None,
        )

    def recorded(self) -> dict[str, Any]:
        """Return the counts as manifests and records hold them."""
        return {name: count for name, count in asdict(self).items() if name != "duplicates" or count is not None}

    @classmethod
    def of(cls, recorded: Mapping[str, Any]) -> Counts:
        """Return the counts that a record or a manifest holds, without ``panes_hidden``.

        wincli 0.2 and before wrote no ``carried``. Raises `KeyError` where another is missing.
        """
        names = ("rows_in", "windowed", "filtered", "dropped_at_end", "held", "rejected")
        return cls(**{name: recorded[name] for name in names}, carried=recorded.get("carried", 0))

    @property
    def balanced(self) -> bool:
        out = self.windowed + self.filtered + self.dropped_at_end + self.held
        return self.rows_in + self.carried == out + sum(self.rejected.values())


@dataclass(frozen=True, slots=True)
class ChunkAccount:
    """The row accounting of a chunk after the map side.

    ``counts``: its counts.
    ``rejects``: the parts that hold its rejects.
    ``span``: the smallest and the largest order value of its rows as numbers, both inclusive, where the run asks for
        them.
    """

    counts: Counts = field(default_factory=Counts)
    rejects: tuple[Part, ...] = ()
    span: tuple[float, float] | None = None

    def __add__(self, other: ChunkAccount) -> ChunkAccount:
        spans = [each for each in (self.span, other.span) if each is not None]
        return ChunkAccount(self.counts + other.counts, self.rejects + other.rejects, joined_span(spans))


def joined_span(spans: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Return the smallest span that holds some spans; None where there is none."""
    return (min(low for low, _ in spans), max(high for _, high in spans)) if spans else None
