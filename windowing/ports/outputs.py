"""The ports of writers: where tasks write parts of a result, and what a run leaves for the next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import pyarrow as pa

from ..tables.statistics import FileStatistics


@dataclass(frozen=True, slots=True)
class Part:
    """A file that a task has written.

    ``name``: its name in the output folder.
    ``rows``: how many rows it holds.
    ``nbytes``: its size.
    ``checksum``: of its bytes, as `windowing.support.checksum` computes it; None where there is none.
    """

    name: str
    rows: int
    nbytes: int
    checksum: str | None = None

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

    ``digest``: of its rows, as `windowing.columns.row_hashes` computes it; None where rows of these types have none.
    ``statistics``: what a table by version has to know of its columns; None for results in folders.
    ``tail``: the checksum of its last bytes, as `windowing.support.checksum.LAST` has it; None where there is none.
    """

    digest: str | None = None
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
