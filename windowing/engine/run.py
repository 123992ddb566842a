"""One window over one input, distributed: sample, choose a strategy, run it, sum up what its tasks report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..emit.row_counts import check_rows, check_written
from ..errors import InputError
from ..ports import CheckedPart, Counts, Executor, Part, RowCheck, joined_span
from .run_strategy import StrategyRun, run_strategy
from .scan.slice_scan import TaskReport, empty_marks_of
from .strategy import Direct, Sample, Strategy, choose_strategy, take_sample, without_order
from .tasks.sizing import Sizes
from .tasks.snapshot import RunSnapshot, write_snapshot
from .tasks.task import TaskContext, with_projection
from .window_memory import LargestWindow, largest_window


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run.

    ``parts``: files of the result, in the order of keys and rows.
    ``rejects``: files of rejected rows.
    ``counts``: the row accounting of the whole run.
    ``windows``: number of panes that came out.
    ``falls``: how often the watched attribute is smaller than in the row before.
    ``strategy``: what was chosen and run, with its chunks, the inputs of map tasks.
    ``slices``: number of slices, the inputs of scan tasks.
    ``seconds``: wall-clock seconds by phase.
    ``snapshot``: the state for the next run; None without a state.
    ``span``: the smallest and the largest order value of the rows read, where the run asks for them.
    ``checks``: what each condition over rows of the result has come to.
    """

    parts: tuple[Part, ...]
    rejects: tuple[Part, ...]
    counts: Counts
    windows: int
    falls: int
    strategy: Strategy
    slices: int
    seconds: dict[str, float] = field(default_factory=dict)
    snapshot: RunSnapshot | None = None
    span: tuple[float, float] | None = None
    checks: tuple[RowCheck, ...] = ()

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return len(self.strategy.chunks)


def run_window(
    work: TaskContext, executor: Executor, sizes: Sizes, announce: Callable[[LargestWindow], None] | None = None
) -> Outcome:
    """Compute one window over one source and write its parts into the sink.

    ``executor`` may wait until tasks can run; it is not used before they are needed. Raises what the tasks raise:
    `InputError`, `DataError`, `OutputError`, or `SparkError`. ``announce``: is told of a window that needs more memory
    than other tasks, before any task begins.
    """
    stopwatch = _Stopwatch()
    work, sample, strategy = prepare_window(work, executor, sizes)
    if announce is not None and (largest := largest_window(work, sample)) is not None:
        announce(largest)
    if isinstance(strategy, Direct):
        run = run_strategy(work, strategy, executor, ())
    else:
        stopwatch.lap("sample")
        run = _run_in_tasks(work, sample, strategy, executor, stopwatch)
    assert run is not None
    return outcome_of(run, stopwatch.lap("scan"))


def prepare_window(work: TaskContext, executor: Executor, sizes: Sizes) -> tuple[TaskContext, Sample, Strategy]:
    """Return the context of the tasks, a sample of the input, and the strategy that it suggests; nothing is computed.

    Raises `DataError` where the result would have more rows than the job allows.
    """
    work = with_projection(work)
    if work.source.stream is None:  # a stream counts mark-only rows among its rows, too
        check_rows(work.plan, sum(split.rows for split in work.source.splits))
    sample = take_sample(work, executor, sizes)
    return work, sample, choose_strategy(work, sample)


class _Stopwatch:
    """Wall-clock seconds of consecutive phases."""

    def __init__(self) -> None:
        self._laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, phase: str) -> dict[str, float]:
        """End a phase; return the seconds of all phases so far."""
        now = time.perf_counter()
        self._laps[phase], self._last = now - self._last, now
        return dict(self._laps)


def _run_in_tasks(
    work: TaskContext, sample: Sample, strategy: Strategy, executor: Executor, stopwatch: _Stopwatch
) -> StrategyRun | None:
    with executor.shared_folders() as folders:  # waits until tasks can run
        stopwatch.lap("Spark")
        run = run_strategy(work, strategy, executor, folders)
        if run is not None:
            return run
        exchange = choose_strategy(work, without_order(work, executor, sample))
        return run_strategy(work, exchange, executor, folders)


def outcome_of(run: StrategyRun, seconds: dict[str, float]) -> Outcome:
    """Sum up the reports of all tasks, and write what concerns all of them. Raises where rows are not accounted for."""
    work, reports, slices = run.work, run.reports, run.slices
    parts = sorted((part for report in reports for part in report.parts), key=lambda part: part.rank)
    if slices > 1 and work.plan.takes_marks and not work.plan.options.plain:
        rows = empty_marks_of(work, reports)
        parts += work.sink.write_parts(3 * slices, [rows]) if rows.num_rows else ()
    if not parts:
        parts += work.sink.write_parts(0, [])
    check_written(work.plan, sum(part.rows for part in parts))
    counts = sum((report.counts for report in reports), Counts())
    if not counts.balanced:
        raise InputError(f"the row accounting does not balance: {counts}", "report this: nothing was written")
    windows, falls = sum(report.windows for report in reports), sum(report.falls for report in reports)
    rejects = tuple(sorted((part for report in reports for part in report.rejects), key=lambda part: part.name))
    return Outcome(
        tuple(parts),
        rejects,
        counts,
        windows,
        falls,
        run.strategy,
        slices,
        seconds,
        _snapshot(work, reports),
        joined_span([report.span for report in reports if report.span is not None]),
        _checks(work, parts),
    )


def _checks(work: TaskContext, parts: Sequence[Part]) -> tuple[RowCheck, ...]:
    """Sum up what conditions have come to in all parts; one with mark-only rows alone has none."""
    found = [part.checks for part in parts if isinstance(part, CheckedPart)]
    return tuple(sum((checks[at] for checks in found), RowCheck()) for at in range(len(work.conditions)))


def _snapshot(work: TaskContext, reports: Sequence[TaskReport]) -> RunSnapshot | None:
    if work.state_files is None:
        return None
    watermark = next((report.watermark for report in reports if report.watermark is not None), work.watermark)
    return write_snapshot(work.state_files, work.restore_point, [report.snapshot for report in reports], watermark)
