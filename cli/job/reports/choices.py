"""Messages at the beginning of a run: the choices made for it, and the files that it passes over."""

from __future__ import annotations

import pyarrow as pa

from ....windowing.columns.numeric import is_instant
from ....windowing.emit.row_counts import rows_out
from ....windowing.engine.tasks.task import FILES, NONE, STREAM
from ....windowing.language.canonical import column_text
from ....windowing.support.suggest import few
from ...console.messages import Messages
from ...planning.job_plan import JobPlan
from ...planning.stage_plans import StagePlan
from ...request.stage_names import stage_prefix

_UTC = frozenset({"UTC", "Etc/UTC"})
_WHERE = {FILES: "the end of each file", NONE: "nowhere", STREAM: "the result that is read"}


def announce(plan: JobPlan, with_choices: bool, messages: Messages) -> None:
    """Write notes on how the rows of each stage are ordered, where marks come from, and how many rows will come out.

    Then one on the files of the input that were passed over because they cannot be read; only this one unless
    ``with_choices``: units of a range choose the same.
    """
    if with_choices:
        _report_choices(plan, messages)
    if skipped := plan.source.skipped:
        messages.note(f"passed over: {few(skipped)}", skipped=len(skipped))


def _report_choices(plan: JobPlan, messages: Messages) -> None:
    for stage in plan.stages:
        which = stage_prefix(plan.request, stage.name)
        _report_order(stage, which, stage is plan.stages[0], messages)
        _report_zone(stage, which, messages)
        if stage.plan.takes_marks:
            _report_marks(stage, which, stage is plan.stages[0], messages)
    _report_rows_out(plan, messages)


def _report_order(stage: StagePlan, which: str, is_first: bool, messages: Messages) -> None:
    plan = stage.plan
    if plan.pos is not None and not plan.order.columns:
        read = "result that is read" if is_first else "stage before"
        messages.note(f"{which}rows stand in the order in which the {read} was emitted", order=plan.sort)
    else:
        messages.note(f"{which}rows are ordered by {plan.order}: {plan.order.why}", order=plan.order.columns)


def _report_zone(stage: StagePlan, which: str, messages: Messages) -> None:
    """Write a note where windows follow the local time of a zone, and the clock has no zone."""
    plan = stage.plan
    zones = [zone for zone in plan.kind.zones if zone not in _UTC]
    kind = plan.projection.schema.field(plan.clock).type if zones and plan.clock is not None else pa.null()
    if not is_instant(kind) or (pa.types.is_timestamp(kind) and kind.tz is not None):
        return
    messages.note(
        f"{which}{plan.clock} has no zone and is read as UTC; where it is local time of {zones[0]} already, leave the "
        f'zone out of the window; where it is UTC, --let "at=CAST({column_text(str(plan.clock))} AS TIMESTAMPTZ)" and '
        "--order-by at say so",
        column=plan.clock,
    )


def _report_marks(stage: StagePlan, which: str, is_first: bool, messages: Messages) -> None:
    from_input = _WHERE.get(stage.marks, stage.marks.replace(":", " "))
    where = "the stage before" if stage.marks == STREAM and not is_first else from_input
    messages.note(f"{which}window marks come from {where}", marks=stage.marks)


def _report_rows_out(plan: JobPlan, messages: Messages) -> None:
    """Write a note on how many rows a window will write, if rows are in several panes and the number is known."""
    stage, rows = plan.stages[0], sum(split.rows for split in plan.source.splits)
    found = rows_out(stage.plan, rows)
    if found is not None and found > rows:
        messages.note(f"{stage.plan.spec} with --emit rows makes {found:,} rows of {rows:,}", rows_out=found)
