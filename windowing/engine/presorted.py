"""The single-pass scan with look-back: presorted chunks on one machine, each read once.

Tasks read chunks in parallel and pass on the position of the window at the end of each, in order. That takes little
time, so no task waits long. It needs one machine, where tasks can wait for each other. Only the end shows whether all
rows were in order; where they were not, the results are discarded.
"""

from __future__ import annotations

import contextlib
import fcntl
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

import pyarrow as pa

from ..columns.arrays import combined
from ..columns.sort_keys import sorts_before
from ..errors import DataError
from ..kinds.segment_summary import SegmentSummary, WindowPosition
from ..ports import Executor
from ..rows.sequence import Sequences, one_batch, order_of
from ..scan.segment_scan import sends_partials
from .blocks import part_of
from .map_side import no_signals, read_chunk
from .prefix_scan import keep_open, scan_from_entry
from .range_cuts import PLACE, Samples
from .segments import FIRST, Segment, SegmentTask, read_rows, tumbling
from .slice_scan import TaskReport, with_rejects
from .task import Chunk, TaskContext

# Presorted inputs: their chunks are the slices, and no row is moved.


KEYED = "the rows have a key"
OUT_OF_ORDER = "the rows are not in order"
"""Why chunks cannot be scanned as they are: with a key, and where the sample or a scan shows it."""


def obstacle_of(work: TaskContext, samples: Samples, executor: Executor, may_cut_keys: bool) -> str | None:
    """Return why chunks cannot be scanned as they are, in words; None where the sampled rows are in order.

    ``may_cut_keys``: whether the window can be scanned in segments.
    """
    plan = work.plan
    if plan.key:
        return KEYED
    if not may_cut_keys:
        return "the window cannot be scanned in segments"
    if plan.takes_marks or plan.kind.needs.overlaps or plan.options.join is not None:
        return "windows end at marks" if plan.takes_marks else "windows may show rows of several chunks"
    rows = samples.rows
    if not rows.num_rows:
        return OUT_OF_ORDER
    ascending = order_of([combined(rows.column(name)) for name in (*plan.sort, PLACE)])
    if not (ascending[1:] > ascending[:-1]).all():
        return OUT_OF_ORDER
    with executor.shared_folders() as folders:
        return None if folders else "tasks on several machines cannot wait for each other"


# Turns of tasks on one machine: each task takes the next turn, and receives a message from the turn before.
#
# Running tasks take turns in order, in whatever order Spark starts them. So no task waits for one that is still
# waiting for a core. A task waits at the lock of a file, which the system releases even where the process that holds
# it dies.


@dataclass(frozen=True, slots=True)
class RelayTurn:
    """A turn that a task has taken."""

    index: int
    _folder: Path
    _handoff: IO[bytes]

    def receive(self) -> bytes | None:
        """Wait for the message of the turn before; None where it sends none. Empty for the first turn."""
        if self.index == 0:
            return b""
        with _file(self._folder, self.index - 1).open("rb") as before:
            fcntl.flock(before, fcntl.LOCK_SH)
            return before.read() or None

    def pass_on(self, message: bytes) -> None:
        self._handoff.write(message)
        self._handoff.close()


@contextlib.contextmanager
def take_turn(folder: str) -> Iterator[RelayTurn | None]:
    """Take the next turn in a folder; None where an earlier turn gave up.

    A turn gives up for all that follow where this context ends with an exception, or without a message sent.
    """
    given_up = Path(folder, "given-up")
    turn, has_failed = None, True
    if not given_up.exists():
        with Path(folder, "turns").open("ab") as turns:
            fcntl.flock(turns, fcntl.LOCK_EX)
            index = turns.seek(0, 2)
            own = _file(Path(folder), index).open("wb")
            fcntl.flock(own, fcntl.LOCK_EX)
            turns.write(b".")
        turn = RelayTurn(index, Path(folder), own)
    try:
        yield turn
        has_failed = False
    finally:
        if turn is not None:
            has_passed_on = turn._handoff.closed
            turn._handoff.close()  # so that the next turn stops waiting
            if has_failed or not has_passed_on:
                given_up.touch()


def batch_sizes(turns: int, cores: int) -> list[int]:
    """Return how many turns each task takes, where ``cores`` tasks run at a time: at least 1 each.

    Each task takes its share of a quarter of what is left: many turns first, since starting a task takes time, then
    fewer, so that all tasks end at about the same time.
    """
    sizes: list[int] = []
    while turns:
        sizes.append(-(-turns // (4 * cores)))
        turns -= sizes[-1]
    return sizes


def _file(folder: Path, index: int) -> Path:
    return folder / str(index)


def scan_in_one_pass(
    work: TaskContext, chunks: Sequence[Chunk], executor: Executor, folder: str
) -> list[TaskReport] | None:
    """Scan presorted chunks, each from the entry state that the one before passes on; None where rows are not in order.

    ``folder``: an empty folder that all tasks see and can lock files in.
    """
    counts = batch_sizes(len(chunks), executor.parallelism)
    batches = executor.map("scan", partial(_scan_some, work, tuple(chunks), folder), counts)
    reports = [report for batch in batches for report in batch]
    is_whole = len(reports) == len(chunks)
    if is_whole:
        reports = with_rejects(work, chunks, reports, executor)
    else:
        work.sink.discard()
    work.sink.drop_scratch()
    return reports if is_whole else None


@dataclass(frozen=True, slots=True)
class Handoff:
    """What a turn of a relay hands on to the next.

    ``ends``: the order values of the first and of the last row of the segment before; None: no rows yet.
    """

    position: WindowPosition
    ends: pa.Table | None = None


def scan_in_turn(work: TaskContext, chunk: Chunk, relay: RelayTurn, is_last: bool) -> TaskReport | None:
    """Compose the entry state of one chunk from the turn before, hand the position on, and scan the chunk.

    None where the rows of the chunks are not in order, or a turn before gave up.
    """
    read, signals = read_chunk(work, chunk), no_signals(work)
    rows, context = read.sequences, work.plan.context
    if not rows.arrived_in_order:
        return None
    summary = SegmentSummary(None)
    if len(rows):
        summary = tumbling(work.plan).summarise(rows, signals, context)
    message = relay.receive()
    if message is None:
        return None
    before: Handoff = pickle.loads(message) if message else Handoff(WindowPosition())
    after = _handoff_after(work, rows, relay.index, before, summary)
    if after is None:
        return None
    relay.pass_on(pickle.dumps(after))
    kind = tumbling(work.plan)
    entry = kind.entry_state(before.position, relay.index, summary, after.position, is_last, context)
    earlier = tuple((relay_segment(index), first) for index, first in entry.before)
    has_parts = sends_partials(work.plan, work.source.schema)
    task = SegmentTask(relay.index, relay_segment(relay.index), is_last, entry, earlier, has_parts)
    # an earlier turn has stored the rows of the window that was open at its end, and no others
    return scan_from_entry(work, task, rows, signals, lambda one, _: read_rows(work, one.name), read.account)


def relay_segment(index: int) -> Segment:
    """Return a segment of a relay by its number."""
    return Segment(index, FIRST, f"open-{index:05d}", None)


def _handoff_after(
    work: TaskContext, rows: Sequences, index: int, before: Handoff, summary: SegmentSummary
) -> Handoff | None:
    """Return what a turn hands on; its rows of the window that is open then are stored first.

    None where the rows do not sort after those of the turns before.
    """
    after, plan = before, work.plan
    if len(rows):
        ends = pa.Table.from_batches([rows.rows.select(list(plan.sort)).take(pa.array([0, len(rows) - 1]))])
        if before.ends is not None and sorts_before(one_batch(ends.slice(0, 1)), before.ends.slice(1, 1)).any():
            return None
        kind, through = tumbling(plan), None
        if kind.needs.run_through:
            through = kind.pass_through(rows, before.position.through.value, plan.context)
        position = kind.advance(before.position, index, summary, through, plan.context)
        after = Handoff(position, ends)
    if after.position.open_at is not None and not after.position.through.closed:
        segment, first = after.position.open_at
        kept = part_of(rows, first if segment == index else 0, len(rows))
        keep_open(work, relay_segment(index).name, kept, after.position.windows)
    return after


def _scan_some(work: TaskContext, chunks: Sequence[Chunk], folder: str, count: int) -> list[TaskReport]:
    """Scan the next chunks; fewer than ``count`` where rows are not in order or data fails: then all are given up."""
    reports: list[TaskReport] = []
    while len(reports) < count:
        try:
            with take_turn(folder) as turn:
                if turn is None or turn.index >= len(chunks):  # the chunk of a task that runs again is lost
                    break
                report = scan_in_turn(work, chunks[turn.index], turn, turn.index == len(chunks) - 1)
        except DataError:
            # These may be no rows of one window at all, so the exchange, which sorts them, shall raise the error.
            break
        if report is None:
            break
        reports.append(report)
    return reports
