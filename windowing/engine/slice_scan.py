"""The reduce side: merge the blocks of a slice into sequences, scan them, write a part of the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, chain

import numpy as np
import pyarrow as pa

from ..clock.watermark import Watermarks, after, highest
from ..columns.arrays import ClockValue, Ints, combined, latest_clock
from ..kinds.context import Signals, watermark_signals, window_marks
from ..kinds.evictions import Evictions
from ..kinds.table import with_table_keys
from ..local_executor import LocalExecutor
from ..planning.plan import panes_only
from ..ports import ChunkAccount, Counts, Executor, Part
from ..rows.marks import Marks, all_marks, in_order, no_marks
from ..rows.merge import merge
from ..rows.panes import ScanRejects
from ..rows.sequence import group_codes, one_batch, order_of, places_among
from ..scan.continue_scan import End, continue_scan, restore_rows
from ..scan.lag_rows import with_lag_columns
from ..scan.operator_scan import ScanResult
from ..scan.row_validation import (
    assess,
    event_times,
    is_ordered_by_time,
    is_read_in_order,
    lateness_of,
    merged_watermarks,
    no_watermarks,
)
from ..scan.rows_ahead import RowsAhead, cut_of, latest_rows, merge_latest
from ..scan.scan import empty_mark_rows, falls_of
from ..state.carry import Carry
from ..state.window_state import WindowState
from .blocks import ShuffleBlock, load_window_state, part_of, read_slice, snapshot_slice
from .map_side import (
    chunk_course,
    chunk_latest,
    chunk_reading,
    no_rows,
    no_sequences,
    read_chunk,
    read_columns,
    read_rows,
    sequences_of,
    walk_chunks,
)
from .range_cuts import SliceBounds, slice_bounds
from .rejects import CheckedTables, StoredRejects, store_rejects, write_stored_rejects
from .segments import FIRST, LAST, WHOLE, SummarisedSegment, part_number, whole_key_rows, write_segment, write_signals
from .snapshot import Snapshot
from .task import Chunk, Reached, TaskContext

# The global pass: one ordered pass over a few columns of all keys, in one task, for what couples keys.
#
# Its decisions are broadcast to all tasks that read or scan, so that everything else stays keyed and parallel.


@dataclass(frozen=True, slots=True)
class GlobalDecisions:
    """What the global pass decides for all keys together.

    ``late``: int64, ascending, the arrival positions of rows too late for any pane; None: not event time.
    ``watermarks``: all watermark advances; None: not event time.
    ``evictions``: partition evictions; None: none in the spec.
    ``reached``: how far all rows come.
    """

    late: Ints | None = None
    watermarks: Watermarks | None = None
    evictions: Evictions | None = None
    reached: Reached = Reached()  # noqa: RUF009 - frozen


def with_cut(work: TaskContext, chunks: Sequence[Chunk], executor: Executor) -> TaskContext:
    """Find the rows that are ahead of their time in the order of the window; return the context that rejects them."""
    plan = work.plan
    if plan.options.max_ahead is None or not plan.order.columns:
        return work
    latest = merge_latest(executor.map("latest rows", partial(chunk_latest, work), chunks))
    cut = cut_of(plan, work.before.position, latest)
    ahead = latest.take(0 if cut is None else sum(value > cut for value in latest.values)).ahead
    return replace(work, reached=replace(work.reached, cut=cut, ahead=ahead))


def run_global_pass(
    work: TaskContext, chunks: Sequence[Chunk], executor: Executor
) -> tuple[TaskContext, Sequence[Chunk]]:
    """Decide what couples keys; return the context and the chunks that carry the decisions."""
    plan = work.plan
    # A window that couples its keys needs all rows in order, in one task.
    if plan.kind.needs.watermark:
        is_coupled = not is_read_in_order(plan) and not is_ordered_by_time(plan)
    else:
        is_coupled = plan.kind.needs.eviction is not None
    if is_coupled:
        (decisions,) = executor.map("ordered pass", partial(_decide, work), [chunks])
        reached = replace(decisions.reached, cut=work.reached.cut, ahead=work.reached.ahead + decisions.reached.ahead)
        return replace(work, decisions=executor.broadcast(decisions), reached=reached), chunks
    if plan.kind.needs.watermark and not is_ordered_by_time(plan):
        if plan.lets_vote:
            return _believe(work, chunks, executor)
        found = executor.map("watermark", partial(chunk_reading, work), chunks)
        readings = [*accumulate([work.before.watermark, *(reading for reading, _ in found)], after)]
        with_watermarks = [replace(chunk, announced=reading) for chunk, reading in zip(chunks, readings, strict=False)]
        reached = Reached(readings[-1], latest=merge_latest(each for _, each in found))
        return replace(work, reached=reached), with_watermarks
    return work, chunks


def _believe(work: TaskContext, chunks: Sequence[Chunk], executor: Executor) -> tuple[TaskContext, Sequence[Chunk]]:
    """Let all rows vote, where some may be ahead of their time; arguments and result as of `run_global_pass`.

    Where no row of a chunk is ahead, its largest event time is all that counts. The others are looked at one after the
    other, neighbours in one task.
    """
    plan, before = work.plan, work.before
    lateness = lateness_of(plan, work.source.schema.empty_table())
    beliefs = [before.belief or lateness.belief_at(before.watermark)]
    courses, ahead = executor.map("watermark", partial(chunk_course, work, beliefs[0]), chunks), RowsAhead()
    while (at := len(beliefs) - 1) < len(chunks):
        if (own := courses[at].told) is not None:
            told = [own]
        elif (plain := courses[at].after(beliefs[-1], lateness.farthest)) is not None:
            told = [(plain, RowsAhead())]
        else:
            stop = next((i for i in range(at + 1, len(chunks)) if courses[i].is_plain), len(chunks))
            (told,) = executor.map("watermark", partial(walk_chunks, work), [(beliefs[-1], chunks[at:stop])])
        beliefs += [belief for belief, _ in told]
        ahead = sum((each for _, each in told), ahead)
    latest = [np.array([] if each.latest is None else [each.latest]) for each in beliefs[1:]]
    readings = [*accumulate([before.watermark, *(highest(lateness.readings(each)) for each in latest)], after)]
    announced = [
        replace(chunk, announced=reading, belief=belief)
        for chunk, reading, belief in zip(chunks, readings, beliefs, strict=False)
    ]
    return replace(work, reached=Reached(readings[-1], beliefs[-1], ahead=ahead)), announced


def _decide(work: TaskContext, chunks: Sequence[Chunk]) -> GlobalDecisions:
    plan = work.plan
    if plan.kind.needs.eviction is not None:
        needed = plan if plan.lag_columns else panes_only(plan)  # any column with lag may reject rows
        return GlobalDecisions(evictions=_evictions(replace(work, plan=needed), chunks))
    watermark, belief = work.before.watermark, work.before.belief
    reads = [read_columns(work, chunk, [*plan.sort, str(plan.options.event_time)]) for chunk in chunks]
    if not reads:
        nothing = np.empty(0, np.int64), no_watermarks(no_rows(work), plan.sort)
        return GlobalDecisions(*nothing, reached=Reached(watermark, belief))
    rows = one_batch(pa.Table.from_batches([rows for rows, _ in reads]))
    pos = np.concatenate([pos for _, pos in reads])
    if plan.sort:
        ascending = order_of([rows.column(name) for name in plan.sort])
        rows, pos = rows.take(pa.array(ascending)), pos[ascending]
    lateness = assess(plan, watermark, rows, pos, belief)
    values, places = event_times(plan, rows)
    reached = Reached(
        lateness.watermark, lateness.belief, ahead=lateness.ahead, latest=latest_rows(values, pos[places])
    )
    return GlobalDecisions(np.sort(pos[lateness.late]), lateness.watermarks, reached=reached)


def _evictions(work: TaskContext, chunks: Sequence[Chunk]) -> Evictions:
    reads = [read_rows(work, chunk) for chunk in chunks]
    sequences_by_chunk = [sequences_of(work, read.rows, read.pos, read.reasons) for read in reads]
    marks = in_order(all_marks([read.marks for read in reads])) if reads else no_marks(no_rows(work), work.plan.sort)
    state, since = load_window_state(work), work.before.clock
    new = with_lag_columns(work.plan, merge([no_sequences(work), *sequences_by_chunk]), state).sequences
    sequences, restored, _ = restore_rows(work.plan, new, window_marks(marks), Carry(work.before, state))
    context = replace(work.plan.context, clock=since, since=since, restored=restored)
    return work.plan.kind.evictions(sequences, marks, context)


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What a scan task reports to the driver; its size does not grow with the rows, only with the marks.

    ``parts``: the files written; none where nothing came out.
    ``counts``: row accounting of what it scanned and of the chunks that it accounts for.
    ``rejects``: files of rejected rows of these chunks.
    ``windows``: number of panes that came out.
    ``falls``: how often the watched attribute is smaller than in the row before of its key.
    ``occupied``: one bit for each mark, set where a pane came out at it; for `empty_marks_of`.
    ``marks``: the marks themselves, from slice 0 only, where several slices share them.
    ``snapshot``: the window state written for the next run.
    ``reached``: how far all rows come.
    ``segments``: segments of keys that are cut, stored and yet to be scanned.
    ``clock``: the largest clock value of the chunks it saw, or None.
    ``span``: the smallest and the largest order value of these chunks, where the run asks for them.
    ``stored_rejects``: rows that the scan has rejected, counted and yet to be written.
    """

    parts: tuple[Part, ...]
    counts: Counts
    rejects: tuple[Part, ...]
    windows: int
    falls: int
    occupied: bytes = b""
    marks: Marks | None = None
    snapshot: Snapshot = Snapshot()  # noqa: RUF009 - frozen
    reached: Reached = Reached()  # noqa: RUF009 - frozen
    segments: tuple[SummarisedSegment, ...] = ()
    clock: ClockValue | None = None
    span: tuple[float, float] | None = None
    stored_rejects: StoredRejects | None = None


def scan_slice(work: TaskContext, index: int, cuts: SliceBounds | None, blocks: Sequence[pa.Buffer]) -> TaskReport:
    """Scan the whole keys of slice ``index``, and store its segments of keys that are cut.

    ``blocks``: all blocks for the slice, in any order.
    """
    chunks, state = read_slice(work, blocks)
    if not chunks and state is None:
        return TaskReport((), Counts(), (), 0, 0)
    return _scan(work, index, cuts, chunks, state)


def scan_directly(work: TaskContext, chunks: Sequence[Chunk]) -> TaskReport:
    """Read, merge and scan a small input in one task."""
    state, work = load_window_state(work), with_cut(work, chunks, LocalExecutor())
    if work.plan.kind.needs.watermark:
        work, chunks = run_global_pass(work, chunks, LocalExecutor())
    report = _scan(work, 0, None, [read_chunk(work, chunk) for chunk in chunks], state)
    return with_rejects(work, chunks, [report], LocalExecutor())[0]


def with_rejects(
    work: TaskContext, chunks: Sequence[Chunk], reports: Sequence[TaskReport], executor: Executor
) -> list[TaskReport]:
    """Return the reports of all scan tasks once the rows that they have rejected are written, too."""
    stored = [report.stored_rejects for report in reports if report.stored_rejects is not None]
    if not stored:
        return [*reports]
    first, *others = (replace(report, stored_rejects=None) for report in reports)
    parts = write_stored_rejects(work, chunks, stored, executor)
    work.sink.drop_scratch()
    return [replace(first, rejects=(*first.rejects, *parts)), *others]


def empty_marks_of(work: TaskContext, reports: Sequence[TaskReport]) -> pa.Table:
    """Return mark-only rows for the marks at which no slice had a pane."""
    marks = next(report.marks for report in reports if report.marks is not None)
    occupied = np.zeros(-(-len(marks) // 8), np.uint8)
    for report in reports:
        bits = np.frombuffer(report.occupied, np.uint8)  # a segment sees only the marks before the next segment
        occupied[: len(bits)] |= bits
    return empty_mark_rows(work.plan, marks, np.flatnonzero(np.unpackbits(occupied)))


def _scan(
    work: TaskContext, index: int, cuts: SliceBounds | None, blocks: Sequence[ShuffleBlock], state: WindowState | None
) -> TaskReport:
    """Scan the whole keys of slice ``index`` and write its part; store its segments.

    ``blocks``: in the order of chunks. ``state``: what earlier runs have left of the window.
    """
    plan, signals = work.plan, signals_of(work, blocks)
    account = sum((block.account for block in blocks if block.account), ChunkAccount())
    clock = latest_clock(block.clock for block in blocks)
    new = merge([block.sequences for block in blocks]) if blocks else no_sequences(work)
    low, high = whole_key_rows(new, cuts, index)
    sides = {FIRST: part_of(new, 0, low), LAST: part_of(new, high, len(new))}
    segments = [write_segment(work, index, side, segment, signals) for side, segment in sides.items() if len(segment)]
    if segments:
        new = part_of(new, low, high)
        if plan.takes_marks or signals.watermarks is not None:
            write_signals(work, signals)
    number, is_only_slice = part_number(cuts, index, WHOLE), cuts is None
    end = End(
        latest_clock([clock, work.before.clock]),
        watermark=work.reached.watermark,
        is_continued=work.state_files is not None,
        of_all_keys=is_only_slice,
    )
    ordered = with_lag_columns(plan, new, state)
    if plan.windows is not None:
        ordered = replace(ordered, sequences=with_table_keys(plan.windows, ordered.sequences, _keys_of(cuts, index)))
    going = continue_scan(plan, ordered, signals, Carry(work.before, state), end)
    parts = write_parts(work, number, going.tables)
    scanned, carry = going.settle()
    rejects = ordered.rejects + scanned.rejects
    snapshot = snapshot_slice(work, index, new, scanned, carry)
    carried = 0 if state is None else int(np.count_nonzero(~state.row_state.shown))
    shares_marks = plan.takes_marks and not is_only_slice
    return TaskReport(
        parts,
        account.counts + counts_of(scanned, rejects, carried, ordered.duplicates),
        account.rejects,
        scanned.windows,
        falls_of(plan, going.sequences),
        mark_bits(scanned.by_mark, len(signals.marks)) if shares_marks else b"",
        signals.marks if shares_marks and index == 0 else None,
        snapshot,
        work.reached,
        tuple(segments),
        clock,
        account.span,
        store_rejects(work, number, rejects),
    )


def _keys_of(cuts: SliceBounds | None, index: int) -> Callable[[pa.Table], pa.Table]:
    """Return what picks, of ascending keys, those that are whole in slice ``index``, with rows or without."""

    def own(keys: pa.Table) -> pa.Table:
        if cuts is None or cuts.keys is None:
            return keys
        bounds = slice_bounds(keys, cuts.keys)
        keys = keys.slice(int(bounds[index]), int(bounds[index + 1] - bounds[index]))
        return keys.filter(pa.array(places_among(_distinct(cuts.keys.filter(pa.array(cuts.inside))), keys) < 0))

    return own


def _distinct(keys: pa.Table) -> pa.Table:
    return group_codes([combined(column) for column in keys.columns])[1].rename_columns(keys.column_names)


def counts_of(scanned: ScanResult, rejects: ScanRejects, carried: int = 0, duplicates: int | None = None) -> Counts:
    """Return the account of the rows of a scan.

    ``carried``: those that it began with and no pane had shown. ``duplicates``: as in `OrderedRows`.
    """
    return Counts(
        windowed=scanned.windowed,
        filtered=scanned.filtered + (duplicates or 0),
        dropped_at_end=scanned.dropped,
        held=scanned.held,
        carried=carried,
        panes_hidden=scanned.hidden.count,
        rejected=rejects.by_reason,
        duplicates=duplicates,
    )


def write_parts(work: TaskContext, index: int, tables: Iterable[pa.Table]) -> tuple[Part, ...]:
    """Write a part from its tables as they come; write no file where there is no row."""
    filled = (table for table in tables if table.num_rows)
    first = next(filled, None)
    if first is None:
        return ()
    if not work.conditions:
        return work.sink.write_parts(index, chain([first], filled))
    checked = CheckedTables(work.plan, work.conditions, chain([first], filled))
    return checked.on(work.sink.write_parts(index, checked))


def signals_of(work: TaskContext, chunks: Sequence[ShuffleBlock]) -> Signals:
    """Return the signals of all chunks, or those that the global pass decided; every slice has the same."""
    plan = work.plan
    if plan.kind.needs.watermark:
        earlier_advances = [] if work.before.advances is None else [work.before.advances]
        if work.decisions is not None:
            return watermark_signals(merged_watermarks(plan, [*earlier_advances, work.decisions.value.watermarks]))
        advances = [*earlier_advances, *(Watermarks(part.marks, part.level) for part in chunks)]
        return watermark_signals(
            merged_watermarks(plan, advances) if advances else no_watermarks(no_rows(work), plan.sort)
        )
    evictions = None if work.decisions is None else work.decisions.value.evictions
    marks = in_order(all_marks([part.marks for part in chunks])) if chunks else no_marks(no_rows(work), plan.sort)
    return window_marks(marks, evictions)


def mark_bits(by_mark: Ints, marks: int) -> bytes:
    """Pack into bits at which of ``marks`` marks a pane came out."""
    flags = np.zeros(marks, np.bool_)
    flags[by_mark] = True
    return np.packbits(flags).tobytes()
