"""The format of a block: one Arrow message for each (chunk, slice) pair.

A block holds the rows of one chunk that fall into one slice, sorted; its keys once each, with their row counts; all
marks of the chunk; and facts about the whole chunk: the largest value of the clock, and its row accounting. So marks
and the clock reach every slice without a pass of their own.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import Ints, combined
from ..columns.sort_keys import last_in_order
from ..ports import ChunkAccount, Counts, Part
from ..rows.marks import Marks
from ..rows.sequence import Sequences, one_batch
from ..scan.operator_scan import ScanResult
from ..state.carry import Carry
from ..state.state_tables import key_table, read_state, row_schema, row_table
from ..state.window_state import WindowState, concatenate, take_keys
from .range_cuts import SliceBounds, slice_bounds, slices_of
from .rejects import order_column
from .snapshot import Snapshot, StatePart
from .task import TaskContext

HEAD = b"head"
"""Metadata key of the first table of a block; its value says what the block holds."""


@dataclass(frozen=True, slots=True)
class ShuffleBlock:
    """Sorted rows of one chunk, or of neighbours merged: all of them, or those for one slice.

    ``marks``: window marks, or watermark advances, of the whole chunk.
    ``level``: int64 (marks,), the level that each watermark advance reaches; 0 for window marks.
    ``clock``: the largest measure of the clock in the chunk, or None.
    ``account``: row accounting of the whole chunk; of the blocks for slices only one has it, the others None.
    """

    chunk: int
    sequences: Sequences
    marks: Marks
    level: Ints
    clock: int | float | None
    account: ChunkAccount | None


def write(block: ShuffleBlock, base: int, sink: pa.NativeFile) -> None:
    """Write a block; arrival positions are stored as 32 bit offsets from ``base``."""
    head = {
        "chunk": block.chunk,
        "base": base,
        "clock": block.clock,
        "account": None if block.account is None else asdict(block.account),
        "order": block.sequences.order,
        "keyed": block.sequences.keys is not None,
    }
    rows, keys, sizes = block.sequences.rows, block.sequences.keys, np.diff(block.sequences.bounds)
    counts = sizes.astype(np.min_scalar_type(sizes.max(initial=0)))  # narrow: there may be nearly as many keys as rows
    no_key = pa.RecordBatch.from_arrays([], names=[])
    of_keys = with_last(no_key if keys is None else one_batch(keys), counts)
    write_message(of_keys.replace_schema_metadata({HEAD: json.dumps(head).encode()}), sink)
    write_message(with_last(rows, (block.sequences.pos - base).astype(np.int32)), sink)
    write_message(with_last(block.marks.rows, block.marks.pos, block.marks.file, block.level), sink)


def read(data: pa.Buffer) -> ShuffleBlock:
    """Read a block; its arrays are views of ``data``."""
    stream = pa.BufferReader(data)
    keys, rows, marks = (_read(stream) for _ in range(3))
    head = json.loads(keys.schema.metadata[HEAD])
    key_columns, (counts,) = without_last(keys, 1)
    row_columns, (offsets,) = without_last(rows, 1)
    mark_columns, (mark_pos, file, level) = without_last(marks, 3)
    bounds = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    distinct = pa.Table.from_batches([key_columns]).replace_schema_metadata() if head["keyed"] else None
    sequences = Sequences(distinct, bounds, row_columns, offsets + np.int64(head["base"]), tuple(head["order"]))
    account = None
    if (told := head["account"]) is not None:
        rejects = tuple(Part(**part) for part in told["rejects"])
        span = None if told["span"] is None else (told["span"][0], told["span"][1])
        account = ChunkAccount(Counts(**told["counts"]), rejects, span)
    return ShuffleBlock(head["chunk"], sequences, Marks(mark_columns, mark_pos, file), level, head["clock"], account)


def part_of(sequences: Sequences, low: int, high: int) -> Sequences:
    """Return the sequences of the rows ``[low, high)`` without copying. Keys at both ends may lose rows."""
    keys, bounds = sequences.keys, np.array([0, high - low], np.int64)
    if keys is not None:
        first = int(np.searchsorted(sequences.bounds, low, side="right")) - 1 if low < high else 0
        stop = int(np.searchsorted(sequences.bounds, high)) if low < high else 0
        keys = keys.slice(first, stop - first)
        bounds = np.clip(sequences.bounds[first : stop + 1], low, high) - low
    return Sequences(keys, bounds, sequences.rows.slice(low, high - low), sequences.pos[low:high], sequences.order)


def with_last(batch: pa.RecordBatch, *more: Any) -> pa.RecordBatch:
    """Return a batch with more columns behind its own, which `without_last` takes off again."""
    arrays = [*batch.columns, *(pa.array(values) for values in more)]
    return pa.RecordBatch.from_arrays(arrays, names=[*batch.schema.names, *(f"__{i}" for i in range(len(more)))])


def without_last(batch: pa.RecordBatch, count: int) -> tuple[pa.RecordBatch, list[Any]]:
    """Return a batch without its last columns, and these as numpy. By place: users name columns as they like."""
    first = batch.num_columns - count
    return batch.select(list(range(first))), [batch.column(i).to_numpy() for i in range(first, batch.num_columns)]


def write_message(rows: pa.RecordBatch | pa.Table, sink: pa.NativeFile) -> None:
    """Write rows, which begin with their schema."""
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write(rows)


def _read(stream: pa.BufferReader) -> pa.RecordBatch:
    with pa.ipc.open_stream(stream) as reader:
        (batch,) = list(reader)
    return batch


# Transport of blocks from the map tasks that write them to the scan tasks that read them.
#
# Blocks go through Spark's shuffle; or, where all tasks run on one machine, through files that map tasks write and
# scan tasks map into memory. Then Spark moves only the location of each block. Through Spark a block is copied eight
# times: framed, sent to Java, written to a file, and all that back. A run over 100 M rows, 2 GB of blocks, takes 53
# to 58 s of processor time through Spark's shuffle, and 39 to 41 s through files.


Fill: TypeAlias = Callable[[pa.NativeFile], None]
"""A function that writes a block into a file."""


@dataclass(frozen=True, slots=True)
class BlockLocation:
    """The location of a block: the bytes ``[begin, begin + size)`` of a file."""

    path: str
    begin: int
    size: int


BlockRef: TypeAlias = pa.Buffer | BlockLocation
"""A block, or its location."""

Transport: TypeAlias = Callable[[Iterable[tuple[int, Fill]]], Iterator[tuple[int, BlockRef]]]
"""A function that turns pairs of a slice and what writes a block into pairs of that slice and a reference."""


def through_shuffle(blocks: Iterable[tuple[int, Fill]]) -> Iterator[tuple[int, BlockRef]]:
    """Yield (slice, block) pairs, for Spark to move."""
    for index, fill in blocks:
        sink = pa.BufferOutputStream()
        fill(sink)
        yield index, sink.getvalue()


def through_files(folders: Sequence[str], blocks: Iterable[tuple[int, Fill]]) -> Iterator[tuple[int, BlockRef]]:
    """Write blocks into one new file in any of ``folders``; yield (slice, location) pairs.

    The file is complete when the iterator is exhausted.
    """
    name = uuid.uuid4()  # a task that is tried again writes another file
    path = f"{folders[name.int % len(folders)]}/{name.hex}"
    with pa.OSFile(path, "wb") as file:
        for index, fill in blocks:
            file.write(bytes(-file.tell() % mmap.PAGESIZE))  # no two blocks share a page: see `release`
            begin = file.tell()
            fill(file)
            yield index, BlockLocation(path, begin, file.tell() - begin)


def open_blocks(refs: Iterable[BlockRef]) -> Sequence[pa.Buffer]:
    """Return the bytes of blocks, whichever way they came. Blocks in files are mapped, not read."""
    found = []
    for ref in refs:
        if isinstance(ref, pa.Buffer):
            found.append(ref)
        else:
            # close each file: its mapping stays, and there may be more blocks than a process may open files
            with pa.memory_map(ref.path) as file:
                file.seek(ref.begin)
                found.append(file.read_buffer(ref.size))
    return found


def release(refs: Iterable[BlockRef]) -> None:
    """Free the disk space and the memory of blocks in files. Whoever reads such a block afterwards crashes.

    So the blocks of a slice go while its result is written, and the two take little room together; pages that were
    not yet written to the disk never will be. Where the system cannot punch holes into files, blocks stay until all
    slices have been scanned.
    """
    for ref in refs:
        if isinstance(ref, BlockLocation) and hasattr(mmap, "MADV_REMOVE"):
            with (
                contextlib.suppress(OSError),
                Path(ref.path).open("r+b") as file,
                mmap.mmap(file.fileno(), 0) as pages,
            ):
                pages.madvise(mmap.MADV_REMOVE, ref.begin, ref.size)


# The window state in tasks: read from files of the run before, sent to slices, written for the next run.


def read_part(work: TaskContext, part: StatePart) -> WindowState:
    """Read one part of the window state."""
    assert work.restore_point is not None
    files, types, plan = work.restore_point.files, work.restore_point.types, work.plan
    keys = files.read_part(part.keys)
    keys = keys if types is None else types.retyped(keys)
    rows = row_schema(keys, work.source.schema, plan.key, plan.values).empty_table()
    if part.rows is not None:
        rows = files.read_part(part.rows)
        rows = rows if types is None else types.with_all(types.retyped(rows), plan.values)
    return read_state(keys, rows, plan.key, plan.sort, plan.values)


def sampled_keys(work: TaskContext, part: StatePart, row_weight: float) -> tuple[pa.Table, Ints]:
    """Return the keys of a part and their weights, float64 (keys,): ``row_weight`` for each row, rows spread evenly."""
    assert work.restore_point is not None
    types, key = work.restore_point.types, list(work.plan.key)
    keys = work.restore_point.files.read_part(part.keys).select(key)
    keys = keys if types is None else types.retyped(keys)
    rows = part.rows.rows if part.rows is not None else 0
    return keys, np.full(keys.num_rows, row_weight * rows / max(1, keys.num_rows))


def load_window_state(work: TaskContext) -> WindowState | None:
    """Read the whole window state; None where there is none."""
    parts = [] if work.restore_point is None else [read_part(work, part) for part in work.restore_point.parts]
    return concatenate(parts) if parts else None


def state_blocks(work: TaskContext, cuts: SliceBounds | None, part: StatePart) -> Iterator[tuple[int, Fill]]:
    """Yield (slice, function that writes its block) for each slice that has keys of a part."""
    state = read_part(work, part)
    keys = state.sequences.keys
    bounds = [0, len(state.key_state.rows)]
    if keys is not None and cuts is not None and cuts.keys is not None:
        bounds = slice_bounds(keys, cuts.keys).tolist()
    for i in range(slices_of(cuts)):
        if bounds[i] < bounds[i + 1]:
            yield i, partial(_write_state, part.index, take_keys(state, np.arange(bounds[i], bounds[i + 1])))


def read_slice(work: TaskContext, blocks: Sequence[pa.Buffer]) -> tuple[list[ShuffleBlock], WindowState | None]:
    """Return the rows of a slice, by chunk, and its window state, from its blocks in any order."""
    plan, chunks, parts = work.plan, list[ShuffleBlock](), dict[int, pa.Buffer]()
    for data in blocks:
        head = json.loads(pa.ipc.open_stream(pa.BufferReader(data)).schema.metadata[HEAD])
        if "state" in head:
            parts[head["state"]] = data
        else:
            chunks.append(read(data))
    states = []
    for _, data in sorted(parts.items()):
        stream = pa.BufferReader(data)
        keys, rows = (pa.ipc.open_stream(stream).read_all() for _ in range(2))
        states.append(read_state(keys.replace_schema_metadata(), rows, plan.key, plan.sort, plan.values))
    return sorted(chunks, key=lambda block: block.chunk), concatenate(states) if states else None


def snapshot_slice(work: TaskContext, index: int, new: Sequences, scanned: ScanResult, carry: Carry) -> Snapshot:
    """Write the window state of slice ``index`` for the next run; return what the driver needs of it.

    ``new``: the rows of the run, those that were rejected among them.
    """
    if work.state_files is None or carry.state is None:
        return Snapshot()
    plan, state, registers = work.plan, carry.state, carry.registers
    rows = row_table(state)
    parts = []
    if state.key_state.rows.size:
        parts.append(work.state_files.write_keys(index, key_table(state)))
    if rows.num_rows:
        parts.append(work.state_files.write_rows(index, rows))
    first, oldest = order_column(plan), None
    if first is not None:
        column = combined(rows.column(first))
        if pa.types.is_duration(column.type):  # Arrow has no minimum of durations
            oldest = pc.min(column.cast(pa.int64())).cast(column.type).as_py()
        else:
            oldest = pc.min(column).as_py()
    position = last_in_order(pa.Table.from_batches([new.rows.select(list(plan.order.columns))]))
    return Snapshot(
        int(np.count_nonzero(np.diff(state.sequences.bounds))),
        scanned.open,
        oldest,
        replace(registers, position=position, advances=registers.advances if index == 0 else None),
        tuple(parts),
    )


def _write_state(index: int, state: WindowState, sink: pa.NativeFile) -> None:
    head = {HEAD: json.dumps({"state": index}).encode()}
    for table in (key_table(state).replace_schema_metadata(head), row_table(state)):
        write_message(table, sink)
