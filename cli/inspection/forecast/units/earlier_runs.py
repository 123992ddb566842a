"""How long a run may take, from what earlier runs of the same job took for inputs of other sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from .....conf.ranges.units import Unit
from .....conf.recorded_job import recorded
from .....writers.state.unit_record import UnitRecord
from ....planning.fingerprint import same_job
from ....planning.request import JobRequest
from ....run.plain_backfill import read_result
from ....run.rerun import differences_of
from ....run.unit_paths import InputPaths, outputs_of
from ..forecast import ExpectedTime, UnitForecast

_MOST_RUNS = 50  # the newest: machines and versions change
_FAR = 4
_APART = 1.5  # sizes within this ratio say nothing of how time grows with size


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """A run that is done: ``nbytes`` of its input, and the ``seconds`` that it took."""

    nbytes: int
    seconds: float


def runs_on_state(request: JobRequest, records: Sequence[UnitRecord]) -> list[EarlierRun]:
    """Return the runs of this job that a state has records of."""
    job = recorded(request.job)
    found = [record for record in records[-_MOST_RUNS:] if not differences_of(record, job)]
    return _runs((sum(file.size for file in record.inputs), record.seconds) for record in found)


def runs_of_range(request: JobRequest, input_paths: InputPaths, units: Iterable[Unit]) -> list[EarlierRun]:
    """Return the runs of units of a range that left a result, without a state."""
    return _of_results(request, (outputs_of(request, input_paths, unit)[-1] for unit in list(units)[-_MOST_RUNS:]))


def run_of_output(request: JobRequest) -> list[EarlierRun]:
    """Return the run of this job that left the result in its output, if there is one."""
    return [] if request.is_piped else _of_results(request, [request.job.output])


def _of_results(request: JobRequest, outputs: Iterable[str]) -> list[EarlierRun]:
    job, found = recorded(request.job), []
    for output in outputs:
        manifest = read_result(output)
        if manifest is not None and same_job(manifest["job"], job):
            found.append((sum(file["size"] for file in manifest["inputs"]), manifest["seconds"]))
    return _runs(found)


def _runs(found: Iterable[tuple[int, Mapping[str, Any]]]) -> list[EarlierRun]:
    return [EarlierRun(nbytes, float(seconds["total"])) for nbytes, seconds in found if "total" in seconds]


def expect_seconds(runs: Sequence[EarlierRun], units: Sequence[UnitForecast]) -> ExpectedTime | None:
    """Return the seconds that the units may take; None without an earlier run, or where nothing runs.

    Runs of one size do not say how long units take that are far larger: that is None, too.
    """
    sure = [unit.nbytes for unit in units if unit.action == "run"]
    maybe = [unit.nbytes for unit in units if unit.action == "may run"]
    if not runs or not (sure or maybe):
        return None
    is_far = max([*sure, *maybe]) > _FAR * max(run.nbytes for run in runs)
    if is_far and _are_alike(runs):
        return None
    fixed, rate = line_of(runs)
    seconds, more = (sum(fixed + rate * nbytes for nbytes in lot) for lot in (sure, maybe))
    return ExpectedTime(seconds, seconds + more, len(runs), is_far)


def line_of(runs: Sequence[EarlierRun]) -> tuple[float, float]:
    """Return the seconds that every run takes, and those for each byte: both at least 0.

    The line of least squares, or where that falls, or starts below 0, the next best that does not. Where all runs had
    inputs of about one size, time is taken to grow with size.
    """
    sizes, seconds = [run.nbytes for run in runs], [run.seconds for run in runs]
    if _are_alike(runs):
        return 0.0, median(seconds) / max(median(sizes), 1)
    mean_size, mean_seconds = sum(sizes) / len(runs), sum(seconds) / len(runs)
    spread = sum((size - mean_size) ** 2 for size in sizes)
    slope = sum((size - mean_size) * (each - mean_seconds) for size, each in zip(sizes, seconds, strict=True)) / spread
    if slope <= 0:
        return mean_seconds, 0.0
    fixed = mean_seconds - slope * mean_size
    if fixed >= 0:
        return fixed, slope
    return 0.0, sum(size * each for size, each in zip(sizes, seconds, strict=True)) / sum(size**2 for size in sizes)


def _are_alike(runs: Sequence[EarlierRun]) -> bool:
    """Whether all runs had inputs of about one size."""
    sizes = [run.nbytes for run in runs]
    return max(sizes) < _APART * max(min(sizes), 1)
