"""Which numbers of a window state decide the results of a job: most jobs only write the numbers of windows down.

Where they do, a correction goes on for as long as they differ; where they do not, it ends with the last unit whose
windows it changes, and later units keep the numbers that they have (docs/decisions/074).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...conf.partition_columns import partition_column
from ...windowing.planning.plan import Plan
from ...windowing.planning.result_schema import numbered
from ...windowing.projection.lag_columns import inputs_of
from ...windowing.state.equality import DecidingNumbers
from ..planning.job_plan import JobPlan
from ..planning.stage_plans import StagePlan

WINDOW = "window"
_MOST = 2**62  # rows of a key


def deciding_numbers(plan: JobPlan) -> tuple[DecidingNumbers, ...]:
    """Return for each stage of a job which numbers of its window state decide what comes of it."""
    asked = [_asks_itself(stage, plan) for stage in plan.stages]
    carried: list[dict[str, int]] = [{}]
    for at, stage in enumerate(plan.stages):
        for name in _read(stage).intersection(carried[at]):
            asked[carried[at][name]] = True
        asked[at] |= _sort_keys(stage.plan, [each.plan for each in plan.stages[at + 1 :]])
        ties = {numbered("_tie", i): carried[at][name] for i, name in enumerate(stage.plan.ties) if name in carried[at]}
        carried.append({WINDOW: at, **ties})
    return tuple(
        _deciding(stage.plan, asked[at], frozenset(name for name, of in carried[at].items() if not asked[of]))
        for at, stage in enumerate(plan.stages)
    )


def _deciding(plan: Plan, windows: bool, carried: frozenset[str]) -> DecidingNumbers:
    every, held = (min(number, _MOST) for number in plan.kind.counted_rows)
    ranks = any(bound.call.function == "product" for bound in plan.aggregates)  # all others are exact, or know no ranks
    return DecidingNumbers(windows, ranks, every, held, carried)


def _asks_itself(stage: StagePlan, plan: JobPlan) -> bool:
    """Whether a stage asks for the numbers of its own windows, or what is demanded of its result does."""
    if stage.plan.options.operator is not None:
        return True
    named = set(stage.plan.having.value.columns) if stage.plan.having is not None else set()
    for entry in map(partition_column, stage.request.stage.partition_by):
        named.update((entry.name,) if entry.expression is None else entry.expression.columns)
    if stage is plan.stages[-1]:
        rows = [each for each in plan.expectations if each.expectation.scope != "numbers"]
        named.update(name for each in rows for name in each.condition.columns)
    return WINDOW in named


def _read(stage: StagePlan) -> frozenset[str]:
    """Return the columns of its input that a stage asks for; what only sorts rows as they were emitted is not asked."""
    plan, options = stage.plan, stage.plan.options
    names = [*plan.key, *plan.order.columns, *plan.kind.attributes, *options.group_by, *plan.rows, *plan.carried]
    names += [name for name in (options.event_time, plan.weight, stage.marks.removeprefix("column:")) if name]
    names += [key.name for key in plan.sort_rows] + [name for bound in plan.aggregates for name in bound.columns]
    names += [bound.filter for bound in plan.aggregates if bound.filter is not None]
    return plan.projection.closure([*names, *inputs_of(plan.lag_columns)])


def _sort_keys(plan: Plan, later: Sequence[Plan]) -> bool:
    """Whether the numbers of windows put rows of several keys in order that a later stage looks at together.

    Panes are emitted in the order of their causes, then of their numbers. One row causes panes of its own key alone.
    """
    together = plan.causes != "rows" or _joins_keys(plan)
    is_alone = not together and plan.options.at_end == "hold"
    apart = all(set(plan.key) <= set(each.key) and not _joins_keys(each) for each in later)
    return bool(plan.key) and not is_alone and not apart


def _joins_keys(plan: Plan) -> bool:
    """Whether rows of one key decide about windows of others: by marks, by a watermark, or by keys that are evicted."""
    return plan.takes_marks or plan.kind.has_watermark or plan.kind.eviction is not None
