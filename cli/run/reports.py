"""Messages at the end of a run: what it noticed, the counts of its stages, and the closing summary."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ...conf.job import Job, recorded
from ...readers.joined import left_files
from ...windowing.columns.arrays import is_instant
from ...windowing.emit.result_tables import rows_out
from ...windowing.engine.rejects import epoch_seconds, value_of_reading
from ...windowing.engine.strategy import LargestWindow
from ...windowing.engine.task import FILES, NONE, STREAM
from ...windowing.errors import DataError, few
from ...windowing.language.tokens import column_text
from ...windowing.planning.plan import Plan
from ...windowing.ports import Counts
from ...windowing.support.amounts import count_of, reason_counts, size
from ...writers.output.manifest import build_manifest, stage_entry
from ...writers.output.output import Output
from ..console.messages import Messages
from ..console.row_account import WORDS
from .context import ExpectationOutcome, RunContext, StageRun
from .job_plan import JobPlan, number_schema, table_files
from .request import stage_prefix, with_stage_keys
from .stage_plans import StagePlan


def report_outcome(
    job: Job, runs: Sequence[StageRun], seconds: float, messages: Messages, cut_at: int | None = None
) -> None:
    """Write what the run noticed, the counts of each stage where there are several, and the closing summary.

    The summary has the rows that the first stage read, the windows of the last stage, and all other counts summed over
    all stages. ``seconds``: the time of the whole run. ``cut_at``: how many rows were read, where the input has more
    than the limit; else None.
    """
    for each in runs:
        outcome, which = each.outcome, stage_prefix(job, each.stage.name)
        strategy = outcome.strategy
        messages.detail(f"{which}{strategy.name}: {strategy.reason}", strategy=strategy.name)
        phases = ", ".join(f"{phase} {spent:.1f} s" for phase, spent in outcome.seconds.items())
        messages.detail(
            f"{which}{len(strategy.sample.chunks)} chunks, {outcome.slices} slices; {phases}", phases=outcome.seconds
        )
        if outcome.falls:
            messages.note(
                f"{which}the window's attribute goes down {count_of(outcome.falls, 'time')} in arrival order; "
                + with_stage_keys(job, "if that is not meant, say --order-by COLUMN"),
                falls=outcome.falls,
            )
    if len(runs) > 1:
        for each in runs:
            _report_stage(job, each, messages)
    rows, windows = runs[0].outcome.counts.rows_in, runs[-1].outcome.windows
    counts = sum((each.outcome.counts for each in runs), Counts())
    see = "" if len(runs) > 1 else "see _rejected" if job.places.stdout is None else "which a folder as OUT would keep"
    cut = [] if cut_at is None else [f"the input was cut at {count_of(cut_at, 'row')} (--limit)"]
    words = [
        *_account(rows, windows, counts, see),
        *cut,
        f"{seconds:.1f} s",
        f"{count_of(round(rows / seconds), 'row')}/s",
    ]
    output = job.shown_output if job.places.stdout is None else "stdout"
    messages.summary(
        f"{', '.join(words)} -> {output}",
        **_fields(rows, windows, counts),
        **({} if cut_at is None else {"cut_at": cut_at}),
        seconds=round(seconds, 3),
        output=output,
    )


def _report_stage(job: Job, run: StageRun, messages: Messages) -> None:
    counts, windows, shown = run.outcome.counts, run.outcome.windows, run.stage_output.output.place.shown
    shown = "stdout" if shown == job.places.stdout else shown
    see = "which a folder as OUT would keep" if shown == "stdout" else f"see {shown}/{run.stage_output.sink.rejects_in}"
    text = stage_prefix(job, run.stage.name) + ", ".join(_account(counts.rows_in, windows, counts, see))
    output = shown if run.stage_output.is_own else None
    fields = _fields(counts.rows_in, windows, counts)
    messages.note(text + (f" -> {output}" if output else ""), stage=run.stage.name, **fields, output=output)


def _account(rows: int, windows: int, counts: Counts, see: str) -> list[str]:
    """Return the words for row counts; ``rows`` came in, ``windows`` came out, ``see`` says where the rejects are."""
    rejected = sum(counts.rejected.values())
    words = [f"{count_of(rows, 'row')} in", f"{count_of(windows - counts.panes_hidden, 'window')} out"]
    words += [f"{counts.panes_hidden:,} hidden"] if counts.panes_hidden else []
    words += [f"{rejected:,} {WORDS['rejected']}" + (f" ({reason_counts(counts.rejected)})" if rejected else "")]
    words += [see] if rejected and see else []
    filtered = WORDS["filtered"] + (f" ({count_of(counts.duplicates, 'duplicate')})" if counts.duplicates else "")
    rest = {filtered: counts.filtered, WORDS["dropped_at_end"]: counts.dropped_at_end, WORDS["held"]: counts.held}
    return words + [f"{count:,} {word}" for word, count in rest.items() if count]


def _fields(rows: int, windows: int, counts: Counts) -> dict[str, Any]:
    return {
        "rows_in": rows,
        "windows_out": windows,
        "rejected": counts.rejected,
        "filtered": counts.filtered,
        "dropped_at_end": counts.dropped_at_end,
        "held": counts.held,
        "panes_hidden": counts.panes_hidden,
        **({} if counts.duplicates is None else {"duplicates": counts.duplicates}),
    }


def note_late_windows(job: Job, runs: Sequence[StageRun], label: str, messages: Messages) -> None:
    """Write a note on windows that tables have brought, or changed, after they had begun. ``label``: the unit."""
    for each in runs:
        if late := each.outcome.windows_late:
            spec, which = each.stage.plan.spec, stage_prefix(job, each.stage.name)
            what = f"{label}{which}{spec} passes over {count_of(late, 'window')} of its table, new or changed: "
            what += "the clock had passed the start; --redo from the unit in which one begins brings it in"
            messages.note(what, windows_late=late)


# Messages at the beginning of a run: the choices made for it, and the files that it passes over.


_UTC = frozenset({"UTC", "Etc/UTC"})
_WHERE = {FILES: "the end of each file", NONE: "nowhere", STREAM: "the result that is read"}


def announce(plan: JobPlan, with_choices: bool, messages: Messages) -> None:
    """Write notes on how the rows of each stage are ordered, where marks come from, and how many rows will come out.

    Then one on the files of the input that were passed over because they cannot be read; only this one unless
    ``with_choices``: units of a range choose the same.
    """
    if with_choices:
        for stage in plan.stages:
            which, own = stage_prefix(plan.job, stage.name), stage.plan
            if own.pos is not None and not own.order.columns:
                read = "result that is read" if stage is plan.stages[0] else "stage before"
                messages.note(f"{which}rows stand in the order in which the {read} was emitted", order=own.sort)
            else:
                messages.note(f"{which}rows are ordered by {own.order}: {own.order.why}", order=own.order.columns)
            _report_zone(own, which, messages)
            if own.takes_marks:
                where = place_of_marks(stage, stage is plan.stages[0])
                messages.note(f"{which}window marks come from {where}", marks=stage.marks)
        first, rows = plan.stages[0].plan, sum(split.rows for split in plan.source.splits)
        found = rows_out(first, rows)
        if found is not None and found > rows:
            messages.note(f"{first.spec} with --emit rows makes {found:,} rows of {rows:,}", rows_out=found)
    if skipped := plan.source.skipped:
        messages.note(f"passed over: {few(skipped)}", skipped=len(skipped))


def place_of_marks(stage: StagePlan, is_first: bool) -> str:
    """Return where the window marks of a stage come from, in words."""
    if stage.marks == STREAM and not is_first:
        return "the stage before"
    return _WHERE.get(stage.marks, stage.marks.replace(":", " "))


def _report_zone(plan: Plan, which: str, messages: Messages) -> None:
    zones = [zone for zone in plan.kind.needs.zones if zone not in _UTC]
    kind = plan.projection.schema.field(plan.clock).type if zones and plan.clock is not None else pa.null()
    if not is_instant(kind) or (pa.types.is_timestamp(kind) and kind.tz is not None):
        return
    messages.note(
        f"{which}{plan.clock} has no zone and is read as UTC; where it is local time of {zones[0]} already, leave the "
        f'zone out of the window; where it is UTC, --let "at=CAST({column_text(str(plan.clock))} AS TIMESTAMPTZ)" and '
        "--order-by at say so",
        column=plan.clock,
    )


# Whether a unit is as its job demands, before anything is committed (semantics section 14).


def check_expectations(
    plan: JobPlan, stage_runs: Sequence[StageRun], messages: Messages, label: str
) -> tuple[ExpectationOutcome, ...]:
    """Return what has become of each expectation, with a note for each that only warns and does not hold.

    ``label``: the unit, before notes. Raises `DataError` with all others that do not hold.
    """
    outcomes = tuple(_outcomes(plan, stage_runs))
    failed = [each for each in outcomes if not each.holds and each.on_fail == "fail"]
    if failed:
        words = "; ".join(_words(each) for each in failed)
        raise DataError(f"{words}; nothing was committed", "mend the data, or change --expect")
    for each in outcomes:
        if not each.holds:
            messages.note(f"{label}{_words(each)}", expect=each.expect, saw=each.saw)
    return outcomes


def numbers_of(stage_runs: Sequence[StageRun], now: float) -> pa.Table:
    """Return the numbers of a unit as a table of one row. ``now``: the time, in seconds since the epoch.

    As in the closing summary, rows are those that the first stage read, windows those of the last stage that are
    written, and all other counts are sums over all stages.
    """
    first, last = stage_runs[0].outcome, stage_runs[-1].outcome
    counts = sum((each.outcome.counts for each in stage_runs), Counts())
    rejected, late, rows = sum(counts.rejected.values()), counts.rejected.get("late", 0), first.counts.rows_in
    schema = number_schema(stage_runs[0].stage)
    low, high = first.span or (None, None)
    values = {
        "rows_in": rows,
        "rows_filtered": counts.filtered,
        "rows_rejected": rejected,
        "late": late,
        "windows": last.windows - last.counts.panes_hidden,
        "panes_hidden": counts.panes_hidden,
        "held": counts.held,
        "first_at": None if low is None else value_of_reading(low, schema.field("first_at").type),
        "last_at": None if high is None else value_of_reading(high, schema.field("last_at").type),
        "seconds_since_last": None if high is None else now - epoch_seconds(high, schema.field("last_at").type),
        "rejected_share": rejected / rows if rows else 0.0,
        "late_share": late / rows if rows else 0.0,
    }
    arrays = [value if isinstance(value, pa.Array) else pa.array([value]) for value in values.values()]
    return pa.Table.from_arrays(
        [array.cast(field.type) for array, field in zip(arrays, schema, strict=True)], schema=schema
    )


def _outcomes(plan: JobPlan, stage_runs: Sequence[StageRun]) -> Iterator[ExpectationOutcome]:
    checks = iter(stage_runs[-1].outcome.checks)
    numbers = numbers_of(stage_runs, time.time()) if plan.expectations else None
    for bound in plan.expectations:
        saw = dict[str, Any]()
        if bound.expectation.scope == "numbers":
            assert numbers is not None
            evaluated = bound.condition.evaluate(numbers)
            for name in bound.condition.columns:
                value = numbers[name][0]  # times are texts, as in JSON
                is_time = value.is_valid and pa.types.is_temporal(value.type)
                saw[name] = str(value) if is_time else value.as_py()
            shown = {name: f"{each:,}" if isinstance(each, int) else str(each) for name, each in saw.items()}
            words = ", ".join(f"{name} is {'null' if saw[name] is None else text}" for name, text in shown.items())
            if evaluated.failures is not None:
                words = ", ".join(filter(None, [words, f"it fails: {evaluated.details[0].as_py()}"]))
            holds = evaluated.values[0].as_py() is True
        else:
            check = next(checks)
            saw, failing = {"rows": check.rows, "true": check.true}, check.rows - check.true
            if bound.expectation.scope == "all":
                holds, verb = failing == 0, "is" if failing == 1 else "are"
                words = f"{failing:,} of {count_of(check.rows, 'row')} {verb} not so"
                words += f", the first: {check.example}" if check.example else ""
            else:
                holds, words = check.true > 0, f"none of {count_of(check.rows, 'row')} is so"
        yield ExpectationOutcome(str(bound.expectation), bound.expectation.on_fail, holds, saw, words)


def _words(outcome: ExpectationOutcome) -> str:
    return f"the expectation {outcome.expect} does not hold: {outcome.words}"


# The note on a window that needs more memory than the size of slices grants a task.


def announce_window(context: RunContext, found: LargestWindow) -> None:
    """Write the note, once in a command."""
    if context.is_first("largest window"):
        context.messages.note(window_words(found), rows=found.rows, bytes=found.nbytes)


def window_words(found: LargestWindow) -> str:
    """Return a window and the memory that it takes in words."""
    first, *others = found.calls
    calls = first if not others else f"{', '.join(found.calls[:-1])} and {found.calls[-1]}"
    need = "need" if others else "needs"
    about = f"about {count_of(found.rows, 'row')} and take about {size(found.nbytes)} of memory in one task"
    return f"{calls} {need} all rows of a window at once: the largest may have {about}"


# The manifests of a job's results: one for each stage that has an output.


def manifests_of(
    plan: JobPlan,
    stage_runs: Sequence[StageRun],
    seconds: Mapping[str, float],
    expectations: Sequence[ExpectationOutcome] = (),
) -> list[tuple[Output, dict[str, Any]]]:
    """Return each output with its manifest, in the order of the stages: the output of the job itself comes last.

    ``seconds``: phase to the seconds of the whole job; a manifest has them after those of its stage. ``expectations``:
    what has become of those of the job.
    """
    return [
        (stage.stage_output.output, _manifest(plan, stage_runs[: at + 1], seconds, expectations))
        for at, stage in enumerate(stage_runs)
        if stage.stage_output.is_own
    ]


def _manifest(
    plan: JobPlan,
    stage_runs: Sequence[StageRun],
    seconds: Mapping[str, float],
    expectations: Sequence[ExpectationOutcome],
) -> dict[str, Any]:
    *before, last = stage_runs
    stage, outcome = last.stage, last.outcome
    return build_manifest(
        job=recorded(plan.job),
        spec=str(stage.plan.spec),
        schema=(last.stage_output.copy or last.stage_output.sink).result,
        order=stage.plan.order.columns,
        order_why=stage.plan.order.why,
        inputs=left_files(plan.source),
        skipped=len(plan.source.skipped),
        cut_at=plan.cut_at,
        tables=table_files(plan),
        counts=outcome.counts,
        parts=last.parts,
        rejects=[
            part
            for each in stage_runs
            if each.stage_output.output is last.stage_output.output
            for part in each.outcome.rejects
        ],
        seconds={**outcome.seconds, **seconds},
        stream=stage.stream,
        stages=[
            stage_entry(
                name=each.stage.name,
                spec=str(each.stage.plan.spec),
                order=each.stage.plan.order.columns,
                order_why=each.stage.plan.order.why,
                counts=each.outcome.counts,
                output=each.stage_output.output.place.shown if each.stage_output.is_own else None,
            )
            for each in before
        ],
        expectations=[each.as_json() for each in expectations],
        ahead=outcome.ahead,
        windows_late=outcome.windows_late,
    )
