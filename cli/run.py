"""``wincli run``: one window over one input, from the options to the closing summary."""

from __future__ import annotations

import datetime as dt
import os
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from cli.messages import Messages
from cli.progress import show_progress
from conf.job import Job, make_job, origin_seconds, pairs
from conf.spark import spark_settings
from readers.open import open_source
from readers.options import ReadOptions, parse_schema
from windowing.engine.exchange import FILES, NONE, STREAM, Work, reject_schema
from windowing.engine.ports import Source
from windowing.engine.run import Outcome, run_window
from windowing.engine.session import Boot, Progress, boot
from windowing.engine.slices import Sizes
from windowing.engine.warm import warm
from windowing.errors import ConfigError, DataError
from windowing.names import did_you_mean
from windowing.parse import parse_aggregate, parse_window
from windowing.plan import Plan, make_plan, stream_of
from windowing.spec import AggregateCall, WindowSpec
from writers.lock import Owner
from writers.manifest import build_manifest
from writers.output import Output, open_output


@dataclass(frozen=True, slots=True)
class Asked:
    """A job, read: what can be known to be right before any input is opened."""

    job: Job
    spec: WindowSpec
    calls: tuple[AggregateCall, ...]
    options: ReadOptions


def run_command(options: Mapping[str, Any], messages: Messages) -> None:
    """Run the job that the options describe. Raises a `WincliError` for everything that a user can cause."""
    started = time.perf_counter()
    _look_for_user_functions_here()
    asked = _read_job(options)
    job = asked.job
    with open_output(job.output, job.mode, job.input, _owner()) as output, _boot(job, messages) as spark:
        with show_progress(job.progress, messages) as progress:
            work = _prepare(asked, output, spark, messages)
            outcome = _compute(job, work, spark, progress)
        _check_rejects(job, outcome)
        seconds = {**outcome.seconds, "total": time.perf_counter() - started}
        output.commit(_manifest(asked, work, outcome, seconds))
    _tell(job, outcome, time.perf_counter() - started, messages)


def _look_for_user_functions_here() -> None:
    """Let ``module:name`` be a file of the working folder: last, or it could take the place of a module of ours."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)


def _read_job(options: Mapping[str, Any]) -> Asked:
    given = dict(options)
    given["input"] = (given["input"],)
    given["spark_conf"] = pairs(given.get("spark_conf") or [])
    if not given.get("window"):
        raise ConfigError("no window is given", "say --window SPEC, for example --window 'delta(ts, 60)'")
    job = make_job(given)
    if job.at_end == "hold":
        raise ConfigError("--at-end hold keeps open windows in a state, and there is none", "say flush or drop")
    column_types = parse_schema(job.column_types) if job.column_types else ()
    options_read = ReadOptions(
        job.input_format, column_types, job.multiline, job.delimiter, job.file_order, job.split_size
    )
    return Asked(job, parse_window(job.window), tuple(parse_aggregate(text) for text in job.agg), options_read)


def _boot(job: Job, messages: Messages) -> Boot:
    verbose = messages.level >= 2
    return boot(job.master, job.spark_conf, spark_settings(job.master, job.spark_conf, verbose), verbose)


def _prepare(asked: Asked, output: Output, spark: Boot, messages: Messages) -> Work:
    """Open the input, bind the window to it, and compile: all that the driver can do while Java starts."""
    job = asked.job
    source = open_source(job.input, asked.options, lambda f, items: spark.session().each("read types", f, items))
    plan = _plan(asked, source)
    marks = _marks(job, source, plan)
    _tell_choices(plan, marks, messages)
    work = Work(plan, source, output.sink(job.output_format, plan.schema, reject_schema(source.schema)), marks)
    warm(work)
    return work


def _compute(job: Job, work: Work, spark: Boot, progress: Callable[[Progress], None]) -> Outcome:
    session = spark.session()
    session.on_progress = progress
    return run_window(work, session, Sizes(min(Sizes().small, job.slice_size), job.split_size, job.slice_size))


def _plan(asked: Asked, source: Source) -> Plan:
    job = asked.job
    order_by: Any = "arrival" if job.order_by == ("arrival",) else job.order_by
    return make_plan(
        asked.spec,
        source.schema,
        job.key,
        order_by,
        asked.calls,
        job.at_end,  # type: ignore[arg-type] # hold was refused
        job.empty,
        origin_seconds(job.origin),
        job.plain,
        source.stream,
        source.explain_type,
    )


def _marks(job: Job, source: Source, plan: Plan) -> str:
    """Where window marks come from (design section 1)."""
    if job.empty == "mark" and plan.key:
        raise ConfigError("--empty mark is for windows without a key", "say --empty row, or leave out --key")
    if job.marks == "auto":
        return STREAM if source.stream else FILES
    if job.marks in (FILES, NONE):
        return job.marks
    if job.marks not in source.schema.names:
        raise ConfigError(f"--marks: there is no column {job.marks!r}", did_you_mean(job.marks, source.schema.names))
    if not pa.types.is_boolean(source.schema.field(job.marks).type):
        found = source.schema.field(job.marks).type
        raise ConfigError(f"--marks needs a boolean column, and {job.marks!r} is {found}", "name another column")
    return f"column:{job.marks}"


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
        stream=None if plan.plain else stream_of(plan),
    )


def _tell_choices(plan: Plan, marks: str, messages: Messages) -> None:
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
            f"the window's attribute goes down {outcome.falls:,} times in arrival order; "
            "if that is not meant, say --order-by COLUMN",
            falls=outcome.falls,
        )
    lost = _by_reason(counts.rejected)
    words = [f"{counts.rows_in:,} rows in", f"{outcome.windows:,} windows out"]
    words += [f"{sum(counts.rejected.values()):,} rejected" + (f" ({lost}), see _rejected" if lost else "")]
    words += [f"{counts.dropped_at_end:,} dropped at the end"] if counts.dropped_at_end else []
    words += [f"{seconds:.1f} s", f"{counts.rows_in / seconds:,.0f} rows/s"]
    messages.summary(
        f"{', '.join(words)} -> {job.output}",
        rows_in=counts.rows_in,
        windows_out=outcome.windows,
        rejected=counts.rejected,
        dropped_at_end=counts.dropped_at_end,
        seconds=round(seconds, 3),
        output=job.output,
    )


def _by_reason(rejected: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {count:,}" for reason, count in sorted(rejected.items()))


def _owner() -> Owner:
    return Owner(os.getpid(), socket.gethostname(), dt.datetime.now(dt.UTC).isoformat(timespec="seconds"))
