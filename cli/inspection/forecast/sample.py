"""How the first stage of a job will be computed, by the sample of its input that a run takes, too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ....windowing.engine.enrich import SMALL_TABLE, load_tables
from ....windowing.engine.range_cuts import slices_of
from ....windowing.engine.run import prepare_window
from ....windowing.engine.strategy import Exchange, largest_window
from ....windowing.enrichment.source import EnrichedSource
from ....writers.state.stage_files import ParquetStateFiles
from ...planning.open_input import AnySource
from ...run.pipeline import sizes_of, task_of
from ...run.reports import window_words
from .forecast import StrategyForecast
from .stages import DriverExecutor, MemoryTables, OpenJob, driver_of


def sample_job(job: OpenJob) -> tuple[AnySource | None, StrategyForecast | None]:
    """Read the enrich tables of a job and a sample of its rows, and choose a strategy as a run does.

    Returns the input with its tables, and how the first stage will be computed; None for both where the tables are too
    large for this process. Raises `DataError` where the result would have more rows than the job allows, and what
    reading raises.
    """
    options = job.plan.request.job
    driver = driver_of(options.master, options.spark_conf)
    source: AnySource = job.plan.source
    if isinstance(source, EnrichedSource):
        if sum(split.nbytes for table in source.tables for split in table.splits) > SMALL_TABLE:
            return None, None
        sink: Any = MemoryTables()
        source = load_tables(source, sink, driver, None, options.slice_size).source
    return source, _strategy(job, source, driver)


def _strategy(job: OpenJob, source: AnySource, driver: DriverExecutor) -> StrategyForecast:
    plan, mode = replace(job.plan, source=source), job.mode
    stage = plan.stages[0]
    work = task_of(plan, stage, source, plan.stage_outputs[0])
    if mode is not None:
        folder = f"{mode.state.storage.path_of(mode.unit.label)}/{stage.name}"
        work = mode.restore(stage, work, ParquetStateFiles(folder, f"{mode.state.shown}/{mode.unit.label}"))
    work, sample, strategy = prepare_window(work, driver, sizes_of(plan.request.job))
    slices: int | None = None
    if isinstance(strategy, Exchange) and driver.is_known:
        slices = slices_of(strategy.bounds(work.plan, driver.parallelism))
    largest = largest_window(work, sample)
    memory = None if largest is None else window_words(largest)
    return StrategyForecast(strategy.name, strategy.reason, len(strategy.chunks), slices, memory)
