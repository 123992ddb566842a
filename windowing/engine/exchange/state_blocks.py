"""The window state in tasks: read from files of the run before, sent to slices, written for the next run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...columns.arrays import Ints, combined
from ...columns.sort_keys import last_in_order
from ...kinds.signals import Signals
from ...planning.plan import Plan
from ...scan.lateness import relevant_advances
from ...scan.scan import RunExtent, ScanResult
from ...sequences.sequence import Sequences
from ...state.state_tables import key_table, read_state, row_schema, row_table
from ...state.window_state import WindowState, concatenate, merge, part_of
from ..tasks.snapshot import EMPTY_SNAPSHOT, StatePart, TaskSnapshot
from ..tasks.task import TaskContext
from .block_transport import Fill
from .blocks import HEAD
from .range_cuts import SliceBounds, slice_bounds, slices_of


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
            yield i, partial(_write, part.index, part_of(state, bounds[i], bounds[i + 1]))


def is_state(data: pa.Buffer) -> bool:
    """Whether a block holds window state, and not rows of a chunk."""
    return "state" in _head(data)


def decode_state(work: TaskContext, blocks: Sequence[pa.Buffer]) -> WindowState | None:
    """Read the window state of a slice from its blocks, which may come in any order."""
    by_part = sorted(((_head(data)["state"], data) for data in blocks), key=lambda pair: int(pair[0]))
    plan = work.plan
    states = []
    for _, data in by_part:
        stream = pa.BufferReader(data)
        keys, rows = (pa.ipc.open_stream(stream).read_all() for _ in range(2))
        states.append(read_state(keys.replace_schema_metadata(), rows, plan.key, plan.sort, plan.values))
    return concatenate(states) if states else None


def snapshot_slice(
    work: TaskContext,
    index: int,
    seen: Sequence[Sequences],
    scanned: ScanResult,
    idle: WindowState | None,
    signals: Signals,
    bounds: RunExtent,
) -> TaskSnapshot:
    """Write the window state of slice ``index`` for the next run; return what the driver needs of it.

    ``seen``: the rows of the scan, those that were rejected among them.
    """
    if work.state_files is None or scanned.state is None:
        return EMPTY_SNAPSHOT
    plan = work.plan
    state = scanned.state if idle is None else merge(scanned.state, idle)
    rows = row_table(state)
    parts = []
    if state.key_state.rows.size:
        parts.append(work.state_files.write_keys(index, key_table(state)))
    if rows.num_rows:
        parts.append(work.state_files.write_rows(index, rows))
    first = [*plan.order.columns[:1], *([plan.options.event_time] if plan.options.event_time else [])][:1]
    oldest = [_least(combined(rows.column(name))) for name in first]
    return TaskSnapshot(
        int(np.count_nonzero(np.diff(state.sequences.bounds))),
        scanned.open,
        oldest[0] if oldest else None,
        _position(plan, seen),
        bounds.clock,
        relevant_advances(signals.watermarks, bounds.last_closed)
        if signals.watermarks is not None and index == 0
        else None,
        tuple(parts),
    )


def _least(column: pa.Array) -> Any:
    """Return the least value; None where there is none. Arrow has no minimum of durations."""
    if not pa.types.is_duration(column.type):
        return pc.min(column).as_py()
    return pc.min(column.cast(pa.int64())).cast(column.type).as_py()


def _position(plan: Plan, seen: Sequence[Sequences]) -> pa.Table | None:
    """Return one row with the largest order values; None without order columns or rows."""
    names = list(plan.order.columns)
    return last_in_order(pa.Table.from_batches([each.rows.select(names) for each in seen])) if names else None


def _write(index: int, state: WindowState, sink: pa.NativeFile) -> None:
    head = {HEAD: json.dumps({"state": index}).encode()}
    for table in (key_table(state).replace_schema_metadata(head), row_table(state)):
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)


def _head(data: pa.Buffer) -> dict[str, Any]:
    return dict(json.loads(pa.ipc.open_stream(pa.BufferReader(data)).schema.metadata[HEAD]))
