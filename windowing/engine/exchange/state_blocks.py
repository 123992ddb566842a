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
from ...columns.sort_keys import latest
from ...planning.plan import Plan
from ...scan.scan import Bounds, Scanned
from ...scan.signals import Signals
from ...sequences.sequence import Sequences
from ...state.state_tables import key_table, read_carry, row_schema, row_table
from ...state.window_state import Carry, Past, concatenated, joined, merged, part_of
from ..tasks.snapshot import NOTHING_LEFT, CarryPart, Left, still_of_use
from ..tasks.task import Work
from .block_transport import Fill
from .blocks import HEAD
from .range_cuts import Cuts, slice_bounds, slices_of


def read_part(work: Work, part: CarryPart) -> Carry:
    """Read what one task of the run before has left."""
    assert work.start is not None
    files, plan = work.start.files, work.plan
    keys = files.read_part(part.keys)
    rows = row_schema(keys, work.source.schema, plan.key, plan.values).empty_table()
    if part.rows is not None:
        rows = files.read_part(part.rows)
    return read_carry(keys, rows, plan.key, plan.sort, plan.values)


def sampled_keys(work: Work, part: CarryPart, share: float) -> tuple[pa.Table, Ints]:
    """Return the keys of a part and how much each weighs: ``share`` for each of its rows, if all had as many."""
    assert work.start is not None
    keys = work.start.files.read_part(part.keys).select(list(work.plan.key))
    rows = part.rows.rows if part.rows is not None else 0
    return keys, np.full(keys.num_rows, share * rows / max(1, keys.num_rows))


def carried(work: Work) -> Carry | None:
    """Read all that the run before has left; None where there is nothing."""
    parts = [] if work.start is None else [read_part(work, part) for part in work.start.parts]
    return concatenated(parts) if parts else None


def carry_blobs_of(work: Work, cuts: Cuts | None, part: CarryPart) -> Iterator[tuple[int, Fill]]:
    """Yield (slice, what writes its blob) for each slice that has keys of a part."""
    carry = read_part(work, part)
    keys = carry.sequences.keys
    bounds = [0, len(carry.registers.rows)]
    if keys is not None and cuts is not None and cuts.keys is not None:
        bounds = slice_bounds(keys, cuts.keys).tolist()
    for i in range(slices_of(cuts)):
        if bounds[i] < bounds[i + 1]:
            yield i, partial(_write, part.index, part_of(carry, bounds[i], bounds[i + 1]))


def is_carry(data: pa.Buffer) -> bool:
    """Whether a blob holds a carry, and not the rows of a chunk."""
    return "carry" in _head(data)


def decoded(work: Work, blobs: Sequence[pa.Buffer]) -> Carry | None:
    """Read the carry of a slice from its blobs, which come in any order."""
    found = sorted(((_head(data)["carry"], data) for data in blobs), key=lambda pair: int(pair[0]))
    plan = work.plan
    carries = []
    for _, data in found:
        stream = pa.BufferReader(data)
        keys, rows = (pa.ipc.open_stream(stream).read_all() for _ in range(2))
        carries.append(read_carry(keys.replace_schema_metadata(), rows, plan.key, plan.sort, plan.values))
    return concatenated(carries) if carries else None


def with_carry(
    plan: Plan,
    carry: Carry | None,
    new: Sequences,
    signals: Signals,
    before: Watermarks | None,
    since: int | float | None,
) -> tuple[Sequences, Past | None, Carry | None]:
    """Put new rows behind those carried; also return the carry of keys that have no rows at all.

    ``before``: the advances among ``signals`` that come from the run before.
    """
    if carry is None:
        return new, None, None
    sequences, past, idle = joined(plan.spec, carry, new)
    seen = 0
    if signals.watermarks is not None and before is not None:
        seen = int(np.count_nonzero(np.isin(signals.marks.pos, before.marks.pos)))
    past = Past(past.held, past.registers, past.flags, seen, since)
    return sequences, past, idle


def left_behind(
    work: Work,
    index: int,
    sequences: Sequences,
    scanned: Scanned,
    idle: Carry | None,
    signals: Signals,
    bounds: Bounds,
) -> Left:
    """Write what slice ``index`` leaves for the next run; return what the driver has to know of it."""
    if work.carry is None or scanned.carry is None:
        return NOTHING_LEFT
    plan = work.plan
    carry = scanned.carry if idle is None else merged(scanned.carry, idle)
    rows = row_table(carry)
    parts = []
    if carry.registers.rows.size:
        parts.append(work.carry.write_keys(index, key_table(carry)))
    if rows.num_rows:
        parts.append(work.carry.write_rows(index, rows))
    first = [*plan.order.columns[:1], *([plan.options.event_time] if plan.options.event_time else [])][:1]
    oldest = [pc.min(combined(rows.column(name))).as_py() for name in first]
    return Left(
        int(np.count_nonzero(np.diff(carry.sequences.bounds))),
        scanned.open,
        oldest[0] if oldest else None,
        _position(plan, sequences),
        bounds.clock,
        still_of_use(signals.watermarks, bounds.dead) if signals.watermarks is not None and index == 0 else None,
        tuple(parts),
    )


def _position(plan: Plan, sequences: Sequences) -> pa.Table | None:
    """The largest order values of some rows; None where nothing orders them, or there is none."""
    names = list(plan.order.columns)
    return latest(pa.Table.from_batches([sequences.rows.select(names)])) if names else None


def _write(index: int, carry: Carry, sink: pa.NativeFile) -> None:
    head = {HEAD: json.dumps({"carry": index}).encode()}
    for table in (key_table(carry).replace_schema_metadata(head), row_table(carry)):
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)


def _head(data: pa.Buffer) -> dict[str, Any]:
    return dict(json.loads(pa.ipc.open_stream(pa.BufferReader(data)).schema.metadata[HEAD]))
