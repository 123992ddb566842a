"""From a job to its committed result: open, bind, compute, commit, tell."""

from __future__ import annotations

import datetime as dt
import os
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from cli.asked import Asked
from cli.messages import Messages
from cli.progress import show_progress
from conf.job import Job, Stage
from readers.open import open_source
from windowing.engine.ports import Source
from windowing.engine.rejects import reject_schema
from windowing.engine.run import Outcome, run_window
from windowing.engine.session import Boot, Progress, Session
from windowing.engine.slices import Sizes
from windowing.engine.warm import warm
from windowing.engine.work import FILES, NONE, STREAM, Work
from windowing.errors import ConfigError, DataError
from windowing.names import did_you_mean
from windowing.plan import Plan, make_plan, stream_of
from writers.lock import Owner
from writers.manifest import build_manifest
from writers.output import Output, open_output


def run_job(asked: Asked, spark: Boot, messages: Messages, started: float) -> None:
    """Run a job on a Spark that is starting, and end it before the output is let go.

    ``started``: when the command began, by `time.perf_counter`.
    """
    job = asked.job
    with open_output(job.output, job.mode, job.input, _owner()) as output, spark:
        with show_progress(job.progress, messages) as progress:
            work = _prepare(asked, output, spark, messages)
            outcome = _compute(job, work, spark, progress)
        _check_rejects(job, outcome)
        seconds = {**outcome.seconds, "total": time.perf_counter() - started}
        output.commit(_manifest(asked, work, outcome, seconds))
    _tell(job, outcome, time.perf_counter() - started, messages)


def _prepare(asked: Asked, output: Output, spark: Boot, messages: Messages) -> Work:
    """Open the input, bind the window to it, and compile: all that the driver can do while Java starts."""
    job = asked.job
    source = open_source(job.input, asked.reading, lambda f, items: spark.session().each("read types", f, items))
    plan = _plan(asked, source)
    stage = asked.stages[-1].stage
    marks = _marks(stage, source, plan)
    _tell_choices(plan, marks, messages)
    work = Work(plan, source, output.sink(stage.output_format, plan.schema, reject_schema(source.schema)), marks)
    warm(work)
    return work


def _compute(job: Job, work: Work, spark: Boot, progress: Callable[[Progress], None]) -> Outcome:
    def session() -> Session:
        started = spark.session()
        started.on_progress = progress
        return started

    return run_window(work, session, Sizes(min(Sizes().small, job.slice_size), job.split_size, job.slice_size))


def _plan(asked: Asked, source: Source) -> Plan:
    asked_stage = asked.stages[-1]
    stage = asked_stage.stage
    order_by: Any = "arrival" if stage.order_by == ("arrival",) else stage.order_by
    return make_plan(
        asked_stage.spec,
        source.schema,
        stage.key,
        order_by,
        asked_stage.calls,
        asked_stage.options,
        source.stream,
        source.explain_type,
    )


def _marks(stage: Stage, source: Source, plan: Plan) -> str:
    """Where window marks come from (design section 1)."""
    if stage.empty == "mark" and plan.key:
        raise ConfigError("--empty mark is for windows without a key", "say --empty row, or leave out --key")
    if stage.marks == "auto":
        return STREAM if source.stream else FILES
    if stage.marks in (FILES, NONE):
        return stage.marks
    if stage.marks not in source.schema.names:
        raise ConfigError(f"--marks: there is no column {stage.marks!r}", did_you_mean(stage.marks, source.schema.names))
    if not pa.types.is_boolean(source.schema.field(stage.marks).type):
        found = source.schema.field(stage.marks).type
        raise ConfigError(f"--marks needs a boolean column, and {stage.marks!r} is {found}", "name another column")
    return f"column:{stage.marks}"


def _check_rejects(job: Job, outcome: Outcome) -> None:
    rejected = outcome.counts.rejected
    total = sum(rejected.values())
    if job.max_rejects is not None and total > job.max_rejects:
        raise DataError(
            f"{total:,} rows were rejected ({_by_reason(rejected)}), more than the {job.max_rejects:,} allowed; "
            "nothing was written",
            "run without --max-rejects to see them in _rejected",
        )


def _manifest(asked: Asked, work: Work, outcome: Outcome, seconds: Mapping[str, float]) -> dict[str, Any]:
    plan = work.plan
    return build_manifest(
        job=asked.job.model_dump(mode="json", by_alias=True),
        spec=str(plan.spec),
        schema=plan.schema,
        order=plan.order.columns,
        order_why=plan.order.why,
        inputs=work.source.files,
        counts=outcome.counts,
        parts=outcome.parts,
        rejects=outcome.rejects,
        seconds=seconds,
        stream=None if plan.options.plain else stream_of(plan),
    )


def _tell_choices(plan: Plan, marks: str, messages: Messages) -> None:
    if plan.pos is not None and not plan.order.columns:
        messages.note("rows stand in the order in which the result that is read was emitted", order=plan.sort)
    else:
        messages.note(f"rows are ordered by {plan.order}: {plan.order.why}", order=plan.order.columns)
    if plan.takes_marks:
        where = {FILES: "the end of each file", NONE: "nowhere", STREAM: "the result that is read"}
        messages.note(f"window marks come from {where.get(marks, marks.replace(':', ' '))}", marks=marks)


def _tell(job: Job, outcome: Outcome, seconds: float, messages: Messages) -> None:
    """The closing summary, and what the run noticed."""
    counts = outcome.counts
    phases = ", ".join(f"{phase} {spent:.1f} s" for phase, spent in outcome.seconds.items())
    messages.detail(f"{outcome.chunks} chunks, {outcome.slices} slices; {phases}", phases=outcome.seconds)
    if outcome.falls:
        messages.note(
            f"the window's attribute goes down {_many(outcome.falls, 'time')} in arrival order; "
            "if that is not meant, say --order-by COLUMN",
            falls=outcome.falls,
        )
    lost = _by_reason(counts.rejected)
    words = [f"{_many(counts.rows_in, 'row')} in", f"{_many(outcome.windows, 'window')} out"]
    words += [f"{sum(counts.rejected.values()):,} rejected" + (f" ({lost}), see _rejected" if lost else "")]
    words += [f"{counts.filtered:,} in no window"] if counts.filtered else []
    words += [f"{counts.dropped_at_end:,} dropped at the end"] if counts.dropped_at_end else []
    words += [f"{seconds:.1f} s", f"{_many(round(counts.rows_in / seconds), 'row')}/s"]
    messages.summary(
        f"{', '.join(words)} -> {job.output}",
        rows_in=counts.rows_in,
        windows_out=outcome.windows,
        rejected=counts.rejected,
        filtered=counts.filtered,
        dropped_at_end=counts.dropped_at_end,
        seconds=round(seconds, 3),
        output=job.output,
    )


def _many(count: int, thing: str) -> str:
    return f"{count:,} {thing}" + ("" if count == 1 else "s")


def _by_reason(rejected: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {count:,}" for reason, count in sorted(rejected.items()))


def _owner() -> Owner:
    return Owner(os.getpid(), socket.gethostname(), dt.datetime.now(dt.UTC).isoformat(timespec="seconds"))
