"""The immutable context that is shipped to every task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import pyarrow as pa

from ..clock.watermark import Belief
from ..columns.arrays import ClockValue
from ..enrichment.window_table import in_force
from ..expressions.binding import BoundExpression
from ..language.joins import SIDE
from ..planning.plan import Plan
from ..planning.result_schema import MARK
from ..ports import Broadcast, Sink, Source, Split, StateFiles
from ..rows.projection import Project, stored_condition
from ..scan.rows_ahead import LatestRows, RowsAhead
from ..state.carry import Registers
from .snapshot import RestorePoint

FILES = "files"
NONE = "none"
STREAM = "stream"
"""Sources of marks other than a boolean column: ends of files, no marks, the marks of the stage before."""


@dataclass(frozen=True, slots=True)
class Reached:
    """How far the rows of a run come over all keys, as the passes before its scan have found.

    ``watermark``: the watermark after all rows, as a reading; None: no row yet, or not event time.
    ``belief``: what is believed after all rows; None without ``--max-ahead``, or where rows have an order.
    ``cut``: the clock behind which rows are ahead of their time, in measures; None: no row is.
    ``ahead``: the rows ahead of their time.
    ``latest``: the rows with the latest event times; none where nothing looked for them.
    """

    watermark: ClockValue | None = None
    belief: Belief | None = None
    cut: ClockValue | None = None
    ahead: RowsAhead = RowsAhead()  # noqa: RUF009 - frozen
    latest: LatestRows = LatestRows()  # noqa: RUF009 - frozen


@dataclass(frozen=True, slots=True)
class TaskContext:
    """The immutable context that is shipped to every task.

    ``marks``: `FILES`, `NONE`, `STREAM`, or ``column:NAME`` of a boolean column.
    ``decisions``: the result of the global pass; None where none was needed.
    ``restore_point``: the state of the run before; None without a state.
    ``state_files``: where tasks write the state for the next run; None without a state.
    ``reached``: how far all rows come.
    ``scan_plan``: the plan of the scan tasks, where map tasks aggregate partially; None: ``plan``.
    ``conditions``: what the rows of the result are checked for as they are written.
    ``asks_span``: whether the first and the last order value of the rows are wanted.
    """

    plan: Plan
    source: Source
    sink: Sink
    marks: str
    decisions: Broadcast | None = None
    restore_point: RestorePoint | None = None
    state_files: StateFiles | None = None
    reached: Reached = Reached()
    scan_plan: Plan | None = None
    conditions: tuple[BoundExpression, ...] = ()
    asks_span: bool = False

    @property
    def for_scan(self) -> TaskContext:
        return self if self.scan_plan is None else replace(self, plan=self.scan_plan, scan_plan=None)

    @property
    def before(self) -> Registers:
        """What the runs before leave of all keys."""
        return Registers() if self.restore_point is None else self.restore_point.registers

    @property
    def mark_column(self) -> str | None:
        if self.marks == STREAM:
            return MARK
        return self.marks.removeprefix("column:") if self.marks.startswith("column:") else None

    @property
    def columns(self) -> tuple[str, ...]:
        extra = [self.mark_column] if self.mark_column and self.plan.takes_marks else []
        join = self.plan.options.join
        extra += [SIDE] if join is not None and join.path is not None and self.marks == FILES else []
        stream = [MARK] if self.source.stream else []
        return tuple(dict.fromkeys([*self.plan.columns, *stream, *extra]))

    @property
    def encoded(self) -> list[str]:
        """Text columns that are keys and nothing else: read as dictionaries, so that each text is handled once."""
        keys = [name for name in self.plan.key if name not in self.plan.read_values]
        return [name for name in keys if pa.types.is_string(self.source.schema.field(name).type)]

    @property
    def in_codes(self) -> list[str]:
        """Text columns that rows of the result show, and nothing else reads: the same; a state has them plain."""
        if not self.source.columnar or self.restore_point is not None or self.state_files is not None:
            return []
        return [name for name in self.plan.only_shown if pa.types.is_string(self.source.schema.field(name).type)]


def with_projection(work: TaskContext) -> TaskContext:
    """Return a context whose source has the columns and rows that the window sees of its input."""
    projection = work.plan.projection
    if projection.is_trivial:
        return work
    computed = {each.name for each in projection.computed}
    wanted = [*work.plan.columns, *([work.mark_column] if work.mark_column else [])]
    used = tuple(name for name in wanted if name in computed)
    needs_all_rows = work.plan.takes_marks and work.marks != NONE  # a row that is left out may have a mark
    condition = None if needs_all_rows else stored_condition(projection)
    steps = (*work.source.steps, Project(projection, used, condition))
    return replace(work, source=work.source.with_steps(steps))


def with_windows(work: TaskContext) -> TaskContext:
    """Return a context with the windows of a table that are in force: also those that the run before has fixed."""
    if work.plan.windows is None:
        return work
    windows = in_force(work.plan.windows, work.before.windows, work.before.clock)
    return replace(work, plan=replace(work.plan, windows=windows))


# Sizes of work: chunks of the input for map tasks, slices of the total order for scan tasks.
#
# A *chunk* is a group of neighbouring splits that are read and sorted together. A *slice* is a contiguous range of
# the total order (key, order, arrival) of bounded size. Sizes bound what a task holds in memory; they never change a
# result.


_CELL = 8  # bytes of one value of a result row
MOST_SPLITS = 512
"""Of a chunk."""
_LEAST_TEXT = 16  # offsets and a short text


_FEW = 12
_WORTH_A_TASK = 32 << 20


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bounds on the input of a task, in bytes of the columns it needs. A task needs about four times as much memory.

    ``small``: an input up to this size is one task, without sample and exchange.
    ``chunk``: the input of a map task.
    ``slice``: the input of a scan task.
    ``block``: a block is to be no smaller, if need be by map tasks that merge several chunks.
    """

    small: int = 16 << 20
    chunk: int = 96 << 20
    slice: int = 192 << 20
    block: int = 128 << 10


@dataclass(frozen=True, slots=True)
class Chunk:
    """Neighbouring splits.

    ``index``: place among the chunks, in arrival order.
    ``base``: arrival position of the first row.
    ``announced``: for event-time panes, the watermark before the chunk as a reading of
        `windowing.clock.watermark.Lateness`; None: no row has come before.
    ``belief``: what is believed there, as in `Registers`.
    """

    index: int
    base: int
    splits: Sequence[Split]
    announced: ClockValue | None = None
    belief: Belief | None = None

    @property
    def rows(self) -> int:
        return sum(split.rows for split in self.splits)


def row_width(schema: pa.Schema, splits: Sequence[Split], columns: Sequence[str]) -> int:
    """Estimate the bytes that a row of these columns takes in memory, with its arrival position.

    Columns of variable width share evenly the bytes of the input that columns of fixed width do not take.
    """
    widths = {field.name: _width(field.type) for field in schema}
    variable = sum(width is None for width in widths.values())
    fixed = sum(width or 0 for width in widths.values())
    row_bytes = sum(split.nbytes for split in splits) // max(1, sum(split.rows for split in splits))
    text = max(_LEAST_TEXT, (row_bytes - fixed) // max(1, variable))
    return 8 + sum(text if (width := widths[name]) is None else width for name in columns)


def result_size(plan: Plan, rows: int) -> int:
    """Estimate the bytes that the result of so many rows adds to the size of a scan task's input.

    A task is granted four times the memory of its rows, and holds about one copy of its result: hence the quarter.
    """
    return int(plan.rows_out_per_row * rows) * _CELL * len(plan.schema) // 4


def pack(splits: Sequence[Split], width: int, chunk_bytes: int) -> list[Chunk]:
    """Group neighbouring splits into chunks of at most ``chunk_bytes``, or of one split that is larger.

    A chunk has `MOST_SPLITS` at most: many small files are work for several tasks, since opening them takes long.
    Splits whose positions do not follow each other belong to different units; they never share a chunk.
    """
    edges: list[int] = []
    room = next_base = 0
    for at, split in enumerate(splits):
        size = split.rows * width
        if not edges or size > room or split.base != next_base or at - edges[-1] >= MOST_SPLITS:
            edges.append(at)
            room = chunk_bytes
        room -= size
        next_base = split.base + split.rows
    groups = [splits[low:high] for low, high in pairwise([*edges, len(splits)])]
    return [Chunk(i, own[0].base, own) for i, own in enumerate(groups)]


def group(chunks: Sequence[Chunk], nbytes: int, slices: int, tasks: int, sizes: Sizes) -> list[tuple[Chunk, ...]]:
    """Group neighbouring chunks whose rows one map task merges before it cuts them into a block for each slice.

    Each block costs the same however few rows it has, and there are as many as groups times slices. So where they would
    be smaller than ``sizes.block``, a group has what half a task's memory holds once it is sorted, and ``tasks`` at a
    time do the groups in whole turns. Else a chunk is a group, and a task begins sooner with the next one; so it is for
    a single slice, too, which has one block of each chunk anyway.

    ``nbytes``: estimate of the bytes of all chunks for the scan tasks. ``slices``: their number.
    """
    each = max(1, nbytes // max(1, len(chunks)))
    most = 2 * sizes.slice // each
    if most < 2 or slices < 2 or each >= sizes.block * slices:
        return [(chunk,) for chunk in chunks]
    count = min(len(chunks), tasks * -(-len(chunks) // (tasks * most)))
    evenly = [chunks[len(chunks) * i // count : len(chunks) * (i + 1) // count] for i in range(count)]
    return [together for neighbours in evenly for together in _without_gaps(neighbours)]


def _without_gaps(chunks: Sequence[Chunk]) -> list[tuple[Chunk, ...]]:
    """Divide chunks where positions do not follow each other: a block stores positions as offsets of 32 bits."""
    groups: list[list[Chunk]] = []
    for chunk in chunks:
        if not groups or groups[-1][-1].base + groups[-1][-1].rows != chunk.base:
            groups.append([])
        groups[-1].append(chunk)
    return [tuple(together) for together in groups]


def slice_count(total_bytes: int, slice_bytes: int, tasks: int) -> int:
    """Return a number of slices that keeps each small enough: a multiple of ``tasks``, at least twice as many.

    Few tasks get more: up to twelve slices, where these hold 32 MiB or more. A worker then uses the memory of one slice
    again for the next, and the system has less memory to clear (decision 068).
    """
    few = min(_FEW, total_bytes // _WORTH_A_TASK)
    rounds = max(-(-total_bytes // (slice_bytes * tasks)), -(-few // tasks))
    return tasks * max(2, rounds)


def _width(dtype: pa.DataType) -> int | None:
    """Return the bytes of a value, or None where the type has no fixed width."""
    try:
        return int(max(1, dtype.bit_width // 8))
    except ValueError:
        return None
