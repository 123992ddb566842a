"""The metrics of a command: what its runs say of themselves when they are committed, summed up for Prometheus."""

from __future__ import annotations

import re
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from ...windowing.engine.rejects import epoch_seconds, order_column
from ...windowing.errors import shown
from ...windowing.ports import Counts
from ..run.context import ObservedRun, StagedJob

# The text form of Prometheus: families of samples, as the textfile collector of node_exporter reads them.


_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{.*\})? (\S+)")


Samples = Iterable[tuple[float, Mapping[str, str]]]
"""Values, each with its labels besides those that all samples of a file have."""
Gauge = tuple[str, str, Samples]
"""The samples of one name: the name, with the unit at the end; what it says; the samples."""


def text_of(gauges: Iterable[Gauge], labels: Mapping[str, str]) -> str:
    """Return gauges as text. ``labels``: those that all samples have."""
    lines = []
    for name_of_all, about, samples in gauges:
        if samples:
            lines += [f"# HELP {name_of_all} {_escaped(about)}", f"# TYPE {name_of_all} gauge"]
        for value, own in samples:
            texts = {name: _escaped(shown(text)).replace('"', '\\"') for name, text in {**labels, **own}.items()}
            pairs = ",".join(f'{name}="{text}"' for name, text in texts.items())
            # The value reads back as the same float; whole numbers have no point.
            is_whole = float(value).is_integer() and abs(value) < 1e15
            lines.append(f"{name_of_all}{{{pairs}}} {int(value) if is_whole else repr(float(value))}")
    return "".join(f"{line}\n" for line in lines)


def values_in(text: bytes) -> dict[str, float]:
    """Return the first value of each name in what `text_of` made; nothing where it is damaged."""
    try:
        found = [match for line in text.decode().split("\n") if (match := _SAMPLE.fullmatch(line))]
        return {match[1]: float(match[2]) for match in reversed(found)}
    except ValueError:
        return {}


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


NEWEST = "wincli_newest_row_timestamp_seconds"
LAST_SUCCESS = "wincli_last_success_timestamp_seconds"


class Metrics:
    """A `RunObserver` that sums up what the runs of a command commit: rows and windows, units or runs, and seconds.

    ``newest``: the largest order value of the rows read, in seconds since the epoch; None where rows have none.
    ``held``: rows that wait in the state after the newest unit.
    """

    def __init__(self) -> None:
        self.rows_in = self.windows = self.held = self.done = self.failed = self.skipped = self.gaps = 0
        self.counts = Counts()
        self.seconds: dict[tuple[str, str], float] = defaultdict(float)  # by stage and phase
        self.newest: float | None = None
        self._newest_unit = ""
        self._lock = threading.Lock()

    def begin(self, run: ObservedRun) -> None:
        """Count nothing yet."""

    def commit(self, run: ObservedRun, staged: StagedJob) -> None:
        with self._lock:
            runs = staged.stage_runs
            first, last = runs[0].outcome, runs[-1].outcome
            self.done += 1
            self.rows_in += first.counts.rows_in
            self.windows += last.windows - last.counts.panes_hidden
            self.counts = sum((each.outcome.counts for each in runs), self.counts)
            if run.unit >= self._newest_unit:
                self._newest_unit, self.held = run.unit, sum(each.outcome.counts.held for each in runs)
            for each in runs:
                for phase, seconds in each.outcome.seconds.items():
                    self.seconds[each.stage.name, phase.lower()] += seconds
            in_stages = sum(sum(each.outcome.seconds.values()) for each in runs)
            self.seconds["", "plan"] += max(staged.seconds["total"] - in_stages, 0.0)
            plan, span = runs[0].stage.plan, first.span
            if (name := order_column(plan)) is not None and span is not None:
                newest = epoch_seconds(span[1], plan.projection.schema.field(name).type)
                self.newest = _newest(newest, self.newest)

    def fail(self, run: ObservedRun, error: BaseException) -> None:  # noqa: ARG002 - as `RunObserver` has it
        with self._lock:
            self.failed += 1

    def pass_over(self, skipped: int, gaps: int) -> None:
        self.skipped, self.gaps = skipped, gaps

    def gauges(
        self, exit_code: int, is_success: bool, seconds: float, version: str, former: Mapping[str, float]
    ) -> Iterator[Gauge]:
        """Yield the gauges of a command that has ended.

        ``seconds``: how long it took. ``former``: the values of the command before, of which those that are still true
        go on: when the last success was, and how new the newest row is where no row was read now.
        """
        now, counts = time.time(), self.counts
        success = round(now, 3) if is_success else former.get(LAST_SUCCESS)
        by_result = {"done": self.done, "failed": self.failed, "skipped": self.skipped, "gap": self.gaps}
        units = tuple((number, {"result": result}) for result, number in by_result.items())
        reasons = tuple((rows, {"reason": reason}) for reason, rows in counts.rejected.items())
        phases = tuple(
            (round(spent, 3), {"stage": stage, "phase": phase}) for (stage, phase), spent in self.seconds.items()
        )
        newest = _newest(self.newest, former.get(NEWEST))
        age = None if newest is None else round(now - newest, 3)
        found: tuple[tuple[str, str, float | tuple[tuple[float, Mapping[str, str]], ...] | None], ...] = (
            ("wincli_info", "The version that ran.", ((1, {"version": version}),)),
            ("wincli_last_run_success", "Whether the last run succeeded: 1 or 0.", is_success),
            ("wincli_last_run_exit_code", "The exit code of the last run.", exit_code),
            ("wincli_last_run_timestamp_seconds", "When the last run ended.", round(now, 3)),
            ("wincli_last_run_duration_seconds", "How long the last run took.", round(seconds, 3)),
            (LAST_SUCCESS, "When the last run that succeeded ended.", success),
            ("wincli_units", "Units of the last run, or the run itself, by what became of them.", units),
            ("wincli_rows_in", "Rows read.", self.rows_in),
            ("wincli_windows_out", "Windows written.", self.windows),
            ("wincli_windows_hidden", "Windows that --having left out.", counts.panes_hidden),
            ("wincli_rows_windowed", "Rows that a window has shown.", counts.windowed),
            ("wincli_rows_filtered", "Rows that belong to no window.", counts.filtered),
            ("wincli_rows_dropped_at_end", "Rows of windows that the end of the data dropped.", counts.dropped_at_end),
            ("wincli_rows_held", "Rows that wait in the state after the newest unit.", self.held),
            ("wincli_rows_rejected", "Rows rejected, for any reason.", sum(counts.rejected.values())),
            ("wincli_rows_late", "Rows rejected because they came too late.", counts.rejected.get("late", 0)),
            ("wincli_rejects", "Rows rejected, by reason.", reasons),
            ("wincli_phase_seconds", "Seconds of the last run by stage and phase.", phases),
            (NEWEST, "The largest order value of all rows read so far.", newest),
            ("wincli_newest_row_age_seconds", "How old that was when the run ended.", age),
        )
        for name, text, value in found:
            if value is not None:
                yield name, text, value if isinstance(value, tuple) else ((value, {}),)


def _newest(now: float | None, before: float | None) -> float | None:
    return max((each for each in (now, before) if each is not None), default=None)
