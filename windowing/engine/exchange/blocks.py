"""The format of a block: one Arrow message for each (chunk, slice) pair.

A block holds the rows of one chunk that fall into one slice, sorted; its keys once each, with their row counts; all
marks of the chunk; and facts about the whole chunk: the largest value of the clock, and its row accounting. So marks
and the clock reach every slice without a pass of their own.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ...columns.arrays import Ints
from ...ports import ChunkAccount, Counts, Part
from ...sequences.marks import Marks
from ...sequences.sequence import Sequences, one_batch

HEAD = b"head"
"""Metadata key of the first table of a block; its value says what the block holds."""
_OFFSET = "__offset"
_COUNT = "__count"
_POS = "__pos"
_FILE = "__file"
_LEVEL = "__level"


@dataclass(frozen=True, slots=True)
class ShuffleBlock:
    """The rows of one chunk for one slice, with the marks and the accounting of the chunk.

    ``chunk``: index of the chunk.
    ``sequences``: the rows.
    ``marks``: window marks, or watermark advances, of the whole chunk.
    ``level``: int64 (marks,), the level that each watermark advance reaches; 0 for window marks.
    ``clock``: the largest measure of the clock in the chunk, or None.
    ``account``: row accounting of the whole chunk, in exactly one block of each chunk; None in all others.
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
    _write(sink, _key_batch(block.sequences).replace_schema_metadata({HEAD: json.dumps(head).encode()}))
    _write(sink, _with(block.sequences.rows, **{_OFFSET: (block.sequences.pos - base).astype(np.int32)}))
    _write(sink, _with(block.marks.rows, **{_POS: block.marks.pos, _FILE: block.marks.file, _LEVEL: block.level}))


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
    chunk_marks = Marks(mark_columns, mark_pos, file)
    return ShuffleBlock(head["chunk"], sequences, chunk_marks, level, head["clock"], _account(head["account"]))


def _account(fields: dict[str, Any] | None) -> ChunkAccount | None:
    if fields is None:
        return None
    span = None if fields["span"] is None else (fields["span"][0], fields["span"][1])
    return ChunkAccount(Counts(**fields["counts"]), tuple(Part(**part) for part in fields["rejects"]), span)


def part_of(sequences: Sequences, low: int, high: int) -> Sequences:
    """Return the sequences of the rows ``[low, high)`` without copying. Keys at both ends may lose rows."""
    keys, bounds = sequences.keys, np.array([0, high - low], np.int64)
    if keys is not None:
        first = int(np.searchsorted(sequences.bounds, low, side="right")) - 1 if low < high else 0
        stop = int(np.searchsorted(sequences.bounds, high)) if low < high else 0
        keys = keys.slice(first, stop - first)
        bounds = np.clip(sequences.bounds[first : stop + 1], low, high) - low
    return Sequences(keys, bounds, sequences.rows.slice(low, high - low), sequences.pos[low:high], sequences.order)


def _key_batch(sequences: Sequences) -> pa.RecordBatch:
    sizes = np.diff(sequences.bounds)
    counts = pa.array(
        sizes.astype(np.min_scalar_type(sizes.max(initial=0)))
    )  # narrow: there may be nearly as many keys as rows
    if sequences.keys is None:
        return pa.RecordBatch.from_arrays([counts], names=[_COUNT])
    return _with(one_batch(sequences.keys), **{_COUNT: counts})


def _with(batch: pa.RecordBatch, **extra: Any) -> pa.RecordBatch:
    arrays = [*batch.columns, *(pa.array(values) for values in extra.values())]
    return pa.RecordBatch.from_arrays(arrays, names=[*batch.schema.names, *extra])


def without_last(batch: pa.RecordBatch, count: int) -> tuple[pa.RecordBatch, list[Any]]:
    """Return a batch without its last columns, and these as numpy. By place: users name columns as they like."""
    first = batch.num_columns - count
    return batch.select(list(range(first))), [batch.column(i).to_numpy() for i in range(first, batch.num_columns)]


def _write(sink: pa.NativeFile, batch: pa.RecordBatch) -> None:
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)


def _read(stream: pa.BufferReader) -> pa.RecordBatch:
    """Read one batch, and leave ``stream`` at the beginning of the next."""
    with pa.ipc.open_stream(stream) as reader:
        (batch,) = list(reader)
    return batch
