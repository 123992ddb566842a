"""What travels from the map side to the scan: one Arrow blob per (chunk, slice).

A blob holds rows of one chunk that fall into one slice, sorted; its keys once each, with their row counts; all marks
of the chunk; and what the scan must know of the chunk as a whole: the largest value of the clock, the account of its
rows. So marks and the clock reach every slice without a pass of their own.
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
"""Metadata of the first table of a blob: what sort of blob it is."""
_OFFSET = "__offset"
_COUNT = "__count"
_POS = "__pos"
_FILE = "__file"
_LEVEL = "__level"


@dataclass(frozen=True, slots=True)
class ShuffleBlock:
    """``chunk``: its index. ``marks``: window marks, or advances of the watermark with the ``level`` that they reach
    (else 0). ``clock``: the largest measure of the clock in the chunk, or None. ``account``: of the whole chunk, in
    exactly one blob of each chunk, else None."""

    chunk: int
    sequences: Sequences
    marks: Marks
    level: Ints
    clock: int | float | None
    account: ChunkAccount | None


def write(blob: ShuffleBlock, base: int, sink: pa.NativeFile) -> None:
    """Write a blob; arrival positions go as 32 bit offsets from ``base``."""
    head = {
        "chunk": blob.chunk,
        "base": base,
        "clock": blob.clock,
        "account": None if blob.account is None else asdict(blob.account),
        "order": blob.sequences.order,
        "keyed": blob.sequences.keys is not None,
    }
    _write(sink, _key_batch(blob.sequences).replace_schema_metadata({HEAD: json.dumps(head).encode()}))
    _write(sink, _with(blob.sequences.rows, **{_OFFSET: (blob.sequences.pos - base).astype(np.int32)}))
    _write(sink, _with(blob.marks.rows, **{_POS: blob.marks.pos, _FILE: blob.marks.file, _LEVEL: blob.level}))


def read(data: pa.Buffer) -> ShuffleBlock:
    """Read a blob; its arrays are views of ``data``."""
    stream = pa.BufferReader(data)
    keys, rows, marks = (_read(stream) for _ in range(3))
    head = json.loads(keys.schema.metadata[HEAD])
    own_keys, (counts,) = _without(keys, 1)
    own_rows, (offsets,) = _without(rows, 1)
    own_marks, (mark_pos, file, level) = _without(marks, 3)
    bounds = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    distinct = pa.Table.from_batches([own_keys]).replace_schema_metadata() if head["keyed"] else None
    sequences = Sequences(distinct, bounds, own_rows, offsets + np.int64(head["base"]), tuple(head["order"]))
    stood = Marks(own_marks, mark_pos, file)
    return ShuffleBlock(head["chunk"], sequences, stood, level, head["clock"], _account(head["account"]))


def _account(told: dict[str, Any] | None) -> ChunkAccount | None:
    if told is None:
        return None
    return ChunkAccount(Counts(**told["counts"]), tuple(Part(**part) for part in told["rejects"]))


def part_of(sequences: Sequences, low: int, high: int) -> Sequences:
    """The sequences of the rows ``[low, high)``, without copying: of their keys, some of whose rows may lie outside."""
    keys, bounds = sequences.keys, np.array([0, high - low], np.int64)
    if keys is not None:
        first = int(np.searchsorted(sequences.bounds, low, side="right")) - 1 if low < high else 0
        stop = int(np.searchsorted(sequences.bounds, high)) if low < high else 0
        keys = keys.slice(first, stop - first)
        bounds = np.clip(sequences.bounds[first : stop + 1], low, high) - low
    return Sequences(keys, bounds, sequences.rows.slice(low, high - low), sequences.pos[low:high], sequences.order)


def _key_batch(sequences: Sequences) -> pa.RecordBatch:
    sizes = np.diff(sequences.bounds)
    counts = pa.array(sizes.astype(np.min_scalar_type(sizes.max(initial=0))))  # keys may be nearly as many as rows
    if sequences.keys is None:
        return pa.RecordBatch.from_arrays([counts], names=[_COUNT])
    return _with(one_batch(sequences.keys), **{_COUNT: counts})


def _with(batch: pa.RecordBatch, **extra: Any) -> pa.RecordBatch:
    arrays = [*batch.columns, *(pa.array(values) for values in extra.values())]
    return pa.RecordBatch.from_arrays(arrays, names=[*batch.schema.names, *extra])


def _without(batch: pa.RecordBatch, count: int) -> tuple[pa.RecordBatch, list[Any]]:
    """A batch without its last columns, and those as numpy: by place, for a user's column may have any name."""
    first = batch.num_columns - count
    return batch.select(list(range(first))), [batch.column(i).to_numpy() for i in range(first, batch.num_columns)]


def _write(sink: pa.NativeFile, batch: pa.RecordBatch) -> None:
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)


def _read(stream: pa.BufferReader) -> pa.RecordBatch:
    """Read one batch and leave ``stream`` where the next one begins."""
    with pa.ipc.open_stream(stream) as reader:
        (batch,) = list(reader)
    return batch
