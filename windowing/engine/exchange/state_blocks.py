"""The carry in tasks: read from the files of the run before, sent to the slices, and written for the run after."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...clock.watermark import Watermarks
from ...columns.arrays import Ints, combined
from ...columns.sort_keys import last_in_order
from ...planning.plan import Plan
from ...scan.scan import RunExtent, ScanResult
from ...scan.signals import Signals
from ...sequences.sequence import Sequences
from ...state.state_tables import key_table, read_state, row_schema, row_table
from ...state.window_state import RestoredState, WindowState, concatenate, merge, part_of, restore
from ..tasks.snapshot import EMPTY_SNAPSHOT, StatePart, TaskSnapshot, relevant_advances
from ..tasks.task import TaskContext
from .block_transport import Fill
from .blocks import HEAD
from .range_cuts import SliceBounds, slice_bounds, slices_of


def read_part(work: TaskContext, part: StatePart) -> WindowState:
    """Read what one task of the run before has left."""
    assert work.restore_point is not None
    files, plan = work.restore_point.files, work.plan
    keys = files.read_part(part.keys)
    rows = row_schema(keys, work.source.schema, plan.key, plan.values).empty_table()
    if part.rows is not None:
        rows = files.read_part(part.rows)
    return read_state(keys, rows, plan.key, plan.sort, plan.values)


def sampled_keys(work: TaskContext, part: StatePart, share: float) -> tuple[pa.Table, Ints]:
    """Return the keys of a part and how much each weighs: ``share`` for each of its rows, if all had as many."""
    assert work.restore_point is not None
    keys = work.restore_point.files.read_part(part.keys).select(list(work.plan.key))
    rows = part.rows.rows if part.rows is not None else 0
    return keys, np.full(keys.num_rows, share * rows / max(1, keys.num_rows))


def load_window_state(work: TaskContext) -> WindowState | None:
    """Read all that the run before has left; None where there is nothing."""
    parts = [] if work.restore_point is None else [read_part(work, part) for part in work.restore_point.parts]
    return concatenate(parts) if parts else None


def state_blocks(work: TaskContext, cuts: SliceBounds | None, part: StatePart) -> Iterator[tuple[int, Fill]]:
    """Yield (slice, what writes its blob) for each slice that has keys of a part."""
    carry = read_part(work, part)
    keys = carry.sequences.keys
    bounds = [0, len(carry.key_state.rows)]
    if keys is not None and cuts is not None and cuts.keys is not None:
        bounds = slice_bounds(keys, cuts.keys).tolist()
    for i in range(slices_of(cuts)):
        if bounds[i] < bounds[i + 1]:
            yield i, partial(_write, part.index, part_of(carry, bounds[i], bounds[i + 1]))


def is_state(data: pa.Buffer) -> bool:
    """Whether a blob holds a carry, and not the rows of a chunk."""
    return "carry" in _head(data)


def decode_state(work: TaskContext, blobs: Sequence[pa.Buffer]) -> WindowState | None:
    """Read the carry of a slice from its blobs, which come in any order."""
    found = sorted(((_head(data)["carry"], data) for data in blobs), key=lambda pair: int(pair[0]))
    plan = work.plan
    carries = []
    for _, data in found:
        stream = pa.BufferReader(data)
        keys, rows = (pa.ipc.open_stream(stream).read_all() for _ in range(2))
        carries.append(read_state(keys.replace_schema_metadata(), rows, plan.key, plan.sort, plan.values))
    return concatenate(carries) if carries else None


def restore_rows(
    plan: Plan,
    carry: WindowState | None,
    new: Sequences,
    signals: Signals,
    before: Watermarks | None,
    since: int | float | None,
) -> tuple[Sequences, RestoredState | None, WindowState | None]:
    """Put new rows behind those carried; also return the carry of keys that have no rows at all.

    ``before``: the advances among ``signals`` that come from the run before.
    """
    if carry is None:
        return new, None, None
    sequences, past, idle = restore(plan.spec, carry, new)
    seen = 0
    if signals.watermarks is not None and before is not None:
        seen = int(np.count_nonzero(np.isin(signals.marks.pos, before.marks.pos)))
    past = RestoredState(past.restored_rows, past.key_state, past.row_state, seen, since)
    return sequences, past, idle


def snapshot_slice(
    work: TaskContext,
    index: int,
    sequences: Sequences,
    scanned: ScanResult,
    idle: WindowState | None,
    signals: Signals,
    bounds: RunExtent,
) -> TaskSnapshot:
    """Write what slice ``index`` leaves for the next run; return what the driver has to know of it."""
    if work.state_files is None or scanned.state is None:
        return EMPTY_SNAPSHOT
    plan = work.plan
    carry = scanned.state if idle is None else merge(scanned.state, idle)
    rows = row_table(carry)
    parts = []
    if carry.key_state.rows.size:
        parts.append(work.state_files.write_keys(index, key_table(carry)))
    if rows.num_rows:
        parts.append(work.state_files.write_rows(index, rows))
    first = [*plan.order.columns[:1], *([plan.options.event_time] if plan.options.event_time else [])][:1]
    oldest = [pc.min(combined(rows.column(name))).as_py() for name in first]
    return TaskSnapshot(
        int(np.count_nonzero(np.diff(carry.sequences.bounds))),
        scanned.open,
        oldest[0] if oldest else None,
        _position(plan, sequences),
        bounds.clock,
        relevant_advances(signals.watermarks, bounds.last_closed)
        if signals.watermarks is not None and index == 0
        else None,
        tuple(parts),
    )


def _position(plan: Plan, sequences: Sequences) -> pa.Table | None:
    """The largest order values of some rows; None where nothing orders them, or there is none."""
    names = list(plan.order.columns)
    return last_in_order(pa.Table.from_batches([sequences.rows.select(names)])) if names else None


def _write(index: int, carry: WindowState, sink: pa.NativeFile) -> None:
    head = {HEAD: json.dumps({"carry": index}).encode()}
    for table in (key_table(carry).replace_schema_metadata(head), row_table(carry)):
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)


def _head(data: pa.Buffer) -> dict[str, Any]:
    return dict(json.loads(pa.ipc.open_stream(pa.BufferReader(data)).schema.metadata[HEAD]))
