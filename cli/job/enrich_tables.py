"""The tables of a job's enrichments: read before its windows run, gone when they have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ...windowing.engine.enrich import load_tables
from ...windowing.enrichment.source import EnrichedSource
from ...windowing.ports import Executor
from ..planning.job_plan import JobPlan
from .run_mode import OpenRun


@contextmanager
def loaded_tables(plan: JobPlan, run: OpenRun[Any], executor: Executor) -> Iterator[JobPlan]:
    """Read the enrich tables of a job; yield the plan whose source finds their values.

    The files through which tasks share them are deleted at the end. Raises what `load_tables` raises.
    """
    source = plan.source
    if not isinstance(source, EnrichedSource):
        yield plan
        return
    sink = plan.stage_outputs[-1].sink.for_tables()
    try:
        loaded = load_tables(source, sink, executor, run.tables(plan.stages[0]), plan.request.job.slice_size)
        yield replace(plan, source=loaded.source, table_parts=loaded.parts)
    finally:
        sink.drop_scratch()
