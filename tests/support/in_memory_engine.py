"""A source, a sink and state files in memory, and the engine over a local executor, with cuts that tests choose."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import pairwise
from typing import Self, TypeAlias
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wincli.windowing.emit.aggregate_rows import merging_plan
from wincli.windowing.engine.presorted import scan_in_one_pass
from wincli.windowing.engine.range_cuts import PLACE, Samples, SliceBounds, slices_of
from wincli.windowing.engine.rejects import reject_schema
from wincli.windowing.engine.run import exchange_and_scan, outcome_of
from wincli.windowing.engine.slice_scan import TaskReport, run_global_pass, scan_directly, with_cut
from wincli.windowing.engine.snapshot import RestorePoint, Snapshot
from wincli.windowing.engine.strategy import Sample, Strategy
from wincli.windowing.engine.task import FILES, Chunk, Sizes, TaskContext, with_projection, with_windows
from wincli.windowing.local_executor import LocalExecutor
from wincli.windowing.planning.plan import Plan
from wincli.windowing.ports import Batch, Condition, Counts, InputFile, Part, Split, Step, StreamInfo


@dataclass
class MemorySource:
    """Tables as files, each cut into splits at the given places; ``first``: the arrival position of the first row.

    ``in_rows``: whether the rows of a split can be read alone; else it is sampled as it is.
    """

    tables: Sequence[pa.Table]
    cuts: Sequence[Sequence[int]]
    stream: StreamInfo | None = None
    columnar: bool = True
    first: int = 0
    shift: int = 0
    steps: tuple[Step, ...] = ()
    in_rows: bool = True
    splits: list[Split] = field(init=False)

    def __post_init__(self) -> None:
        self.files = [InputFile(f"file-{i}", 0, None) for i in range(len(self.tables))]
        self.splits, base = [], self.first + self.shift
        for f, (table, inner) in enumerate(zip(self.tables, self.cuts, strict=True)):
            edges = sorted({0, table.num_rows, *(c for c in inner if c < table.num_rows)})
            for low, high in pairwise(edges if table.num_rows else [0, 0]):
                ends = high == table.num_rows
                self.splits.append(Split(len(self.splits), f, base, high - low, 0, ends, (low, high)))
                base += high - low

    @property
    def schema(self) -> pa.Schema:
        return reduce(lambda before, step: step.schema_after(before), self.steps, self.tables[0].schema)

    def with_steps(self, steps: Iterable[Step]) -> Self:
        return replace(self, steps=tuple(steps))

    def moved(self, by: int) -> Self:
        return replace(self, shift=self.shift + by)

    def check_unchanged(self) -> None:
        """Nobody changes it."""

    def read(self, split: Split, columns: Sequence[str], dictionary: Sequence[str] = ()) -> Batch:
        if self.steps:
            *before, last = self.steps
            return last.read(self.with_steps(before), split, columns, dictionary)
        low, high = split.place
        rows = self.tables[split.file].slice(low, high - low).select(list(columns))
        for name in dictionary:
            rows = rows.set_column(rows.column_names.index(name), name, rows.column(name).dictionary_encode())
        return Batch(rows, np.arange(split.base, split.base + split.rows))

    def parts_of(self, split: Split) -> list[Split]:
        if not self.in_rows:
            return [split]
        low, high = split.place
        return [
            replace(
                split, base=split.base + i - low, rows=1, ends_file=split.ends_file and i == high - 1, place=(i, i + 1)
            )
            for i in range(low, high)
        ] or [split]

    def looks_of(self, split: Split) -> list[Split]:
        parts = self.parts_of(split)
        return [parts[len(parts) // 2]]

    def is_local(self, split: Split) -> bool:
        return True

    def parts_with(self, split: Split, condition: Condition) -> list[Split]:
        return [split]

    def file_name(self, split: Split) -> str:
        return self.files[split.file].path

    def explain_type(self, column: str) -> str | None:
        return None

    def line_numbers(self, split: Split, pos: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return pos - split.base + split.place[0] + 1


def decoded(table: pa.Table) -> pa.Table:
    """A table without dictionary columns."""
    types = [f.type.value_type if pa.types.is_dictionary(f.type) else f.type for f in table.schema]
    return table.cast(pa.schema([f.with_type(t) for f, t in zip(table.schema, types, strict=True)]))


_LIVE: WeakValueDictionary[int, ByReference] = WeakValueDictionary()


class ByReference:
    """Pickles as a reference, so that what a task writes is there afterwards, as it is in a folder."""

    def __reduce__(self) -> tuple[Callable[[int], ByReference], tuple[int]]:
        _LIVE[id(self)] = self
        return _live, (id(self),)


def _live(number: int) -> ByReference:
    return _LIVE[number]


def written(table: pa.Table) -> pa.Table:
    """A copy, as a file is one: blocks are freed when a task has written its part."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


@dataclass
class MemorySink(ByReference):
    parts: dict[int, pa.Table] = field(default_factory=dict)
    rejects: dict[int, pa.Table] = field(default_factory=dict)
    pieces: dict[str, pa.RecordBatch] = field(default_factory=dict)
    discarded: int = 0

    def write_parts(self, index: int, tables: Iterable[pa.Table]) -> tuple[Part, ...]:
        plain = [written(decoded(table)) for table in tables]
        self.parts[index] = pa.concat_tables(plain) if plain else pa.table({})
        return (Part(f"part-{index:05d}", self.parts[index].num_rows, 0),)

    def discard(self) -> None:
        self.discarded += len(self.parts)
        self.parts.clear()

    def write_rejects(self, index: int, rows: pa.Table) -> Part:
        self.rejects[index] = written(rows)
        return Part(f"_rejected/rejects-{index:05d}.ndjson", rows.num_rows, 0)

    def write_scratch(self, name: str, rows: pa.RecordBatch) -> None:
        (self.pieces[name],) = written(pa.Table.from_batches([rows])).to_batches() or [rows]

    def read_scratch(self, name: str) -> pa.RecordBatch:
        return self.pieces[name]

    def drop_scratch(self) -> None:
        self.pieces.clear()


@dataclass(frozen=True)
class Result:
    table: pa.Table
    rejects: pa.Table
    counts: Counts
    snapshot: Snapshot | None = None
    falls: int = 0


@dataclass
class MemoryFiles(ByReference):
    """What a stage leaves for the next run, as `windowing.ports.StateFiles`."""

    tables: dict[str, pa.Table] = field(default_factory=dict)

    def write_rows(self, index: int, table: pa.Table) -> Part:
        return self.write_table(f"rows-{index:05d}", table)

    def write_keys(self, index: int, table: pa.Table) -> Part:
        return self.write_table(f"keys-{index:05d}", table)

    def write_table(self, name: str, table: pa.Table) -> Part:
        self.tables[name] = written(table)
        return Part(name, table.num_rows, table.nbytes)

    def read_table(self, name: str) -> pa.Table | None:
        return self.tables.get(name)

    def parts(self, kind: str) -> list[Part]:
        names = sorted(name for name in self.tables if name.startswith(f"{kind}-"))
        return [Part(name, self.tables[name].num_rows, self.tables[name].nbytes) for name in names]

    def read_part(self, part: Part) -> pa.Table:
        return self.tables[part.name]


def between_keys(keys: pa.Table) -> SliceBounds | None:
    """Cuts before keys, none inside one."""
    places = pa.table({PLACE: np.zeros(keys.num_rows, np.int64)})
    return SliceBounds(keys, places, np.zeros(keys.num_rows, np.bool_)) if keys.num_rows else None


InOrder: TypeAlias = Callable[[TaskContext, Sequence[Chunk]], list[TaskReport] | None]

STRICT = LocalExecutor(2, is_one_machine=False, pickles=True, seed=1)
"""As strict as Spark: all that travels is pickled, and values arrive in any order."""


def in_one_pass(
    work: TaskContext, chunks: Sequence[Chunk], executor: LocalExecutor = STRICT
) -> list[TaskReport] | None:
    """Scan chunks that stand in order in one pass, one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        return scan_in_one_pass(work, chunks, executor, folder)


def run_in_memory(
    plan: Plan,
    source: MemorySource,
    chunk_bounds: Sequence[int],
    cuts: pa.Table | SliceBounds | None,
    marks: str = FILES,
    start: RestorePoint | None = None,
    carry: MemoryFiles | None = None,
    in_order: InOrder | None = None,
    combine: bool = False,
    executor: LocalExecutor = STRICT,
) -> Result:
    """Run the engine with a strategy, chunks and slices that are given. ``chunk_bounds``: splits that begin a chunk.

    ``cuts``: the first keys of the slices after the first, or as `windowing.engine.range_cuts.choose_bounds`
    gives them; None for the short way of a single task. ``start``, ``carry``: what to go on from, and where to leave
    what is held. ``in_order``: how to scan the chunks of rows that stand in order, without an exchange. ``combine``:
    rows, for it.
    """
    sink = MemorySink()
    scan_plan = merging_plan(plan) if combine else None
    work = TaskContext(plan, source, sink, marks, None, start, carry, scan_plan=scan_plan)
    work = with_windows(with_projection(work))
    edges = sorted({0, len(source.splits), *(b for b in chunk_bounds if b < len(source.splits))})
    groups = [source.splits[low:high] for low, high in pairwise(edges)]
    chunks: Sequence[Chunk] = [Chunk(i, group[0].base, tuple(group)) for i, group in enumerate(groups)]
    slices, work = 1, with_cut(work, chunks, executor)
    if in_order is not None:
        scanned = in_order(work, chunks)
        assert scanned is not None
        reports = scanned
    elif cuts is None:
        reports = executor.map("scan", partial(scan_directly, work), [tuple(chunks)])
    else:
        cuts = cuts if isinstance(cuts, SliceBounds) else between_keys(cuts)
        slices = slices_of(cuts)
        work, chunks = run_global_pass(work, chunks, executor)
        with executor.shared_folders() as folders:
            two_by_two = [tuple(chunks[i : i + 2]) for i in range(0, len(chunks), 2)]  # map tasks merge each
            reports = exchange_and_scan(work, two_by_two, cuts, executor, folders)
    sample = Sample(Sizes(), tuple(chunks), 0, 0, Samples())
    outcome = outcome_of(work, Strategy("one task", "a test says so", sample), reports, slices, {})
    parts = [table.cast(plan.schema) for _, table in sorted(sink.parts.items()) if table.num_columns]
    visible = pa.schema([field for field in work.source.schema if field.name not in plan.projection.hidden])
    empty = reject_schema(visible).empty_table()
    rejects = pa.concat_tables([empty, *(sink.rejects[i] for i in sorted(sink.rejects))])
    table = pa.concat_tables([plan.schema.empty_table(), *parts])
    return Result(table, rejects, outcome.counts, outcome.snapshot, outcome.falls)
