"""Column lineage of a job: which columns of its input each column of a result comes from, and how.

The words are those of OpenLineage. A column of a result comes directly from columns that it is the value of
(``IDENTITY``), is computed from (``TRANSFORMATION``), or aggregates (``AGGREGATION``). Other columns only decide
which rows a result has, and which row of the input is in which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from ....windowing.language.spec import AggregateCall, AggregateExpression, Column
from ....windowing.planning.plan import Plan
from ....windowing.planning.result_schema import FIXED, MARK, POS, numbered
from ...planning.stage_plans import StagePlan

Direct = Literal["IDENTITY", "TRANSFORMATION", "AGGREGATION"]
Indirect = Literal["CONDITIONAL", "FILTER", "GROUP_BY", "JOIN", "SORT", "WINDOW"]

_STRENGTH: tuple[Direct, ...] = ("IDENTITY", "TRANSFORMATION", "AGGREGATION")
_COLUMN = "column:"

Origins = Mapping[str, Direct]
"""Column of the input to how a value comes from it."""


@dataclass(frozen=True, slots=True)
class ColumnLineage:
    """Where the columns of a result come from.

    ``direct``: column of the result to the columns of the input that it comes from.
    ``conditions``: column of the result to the columns of the input that decide which rows its aggregate looks at.
    ``rows``: column of the input to how it decides which rows the result has.
    """

    direct: Mapping[str, Origins]
    conditions: Mapping[str, frozenset[str]] = field(default_factory=dict)
    rows: Mapping[str, frozenset[Indirect]] = field(default_factory=dict)


def lineage_of(stage: StagePlan) -> ColumnLineage:
    """Return the column lineage of one stage, from the columns of its input to those that it writes."""
    plan = stage.plan
    resolve = _resolver(plan)
    values, conditions = _values(stage, resolve)
    known = {**_pane_columns(plan, resolve), **values}
    names = [name for name in stage.result.names if name != MARK]
    rows = _deciding(stage, resolve)
    for name in plan.having.value.columns if plan.having is not None else ():
        for source in (*known.get(name, {}), *conditions.get(name, ())):
            rows[source] = rows.get(source, frozenset()) | {"FILTER"}
    return ColumnLineage(
        {name: known.get(name, {}) for name in names},
        {name: found for name, found in conditions.items() if found},
        rows,
    )


def chained(first: ColumnLineage, second: ColumnLineage) -> ColumnLineage:
    """Return the lineage of a stage from the input of the stage before it.

    ``second``: the lineage of the stage, from the result of the stage before; ``first``: the lineage of that.
    """
    direct = {
        name: _joined(_through(first, column, how) for column, how in found.items())
        for name, found in second.direct.items()
    }
    conditions = {
        name: {
            *(each for column in second.direct[name] for each in first.conditions.get(column, ())),
            *_sources(first, second.conditions.get(name, ())),
        }
        for name in direct
    }
    rows: dict[str, set[Indirect]] = {column: set(how) for column, how in first.rows.items()}
    for column, how in second.rows.items():
        for source in _sources(first, [column]):
            rows.setdefault(source, set()).update(how)
    return ColumnLineage(
        direct,
        {name: frozenset(found) for name, found in conditions.items() if found},
        {column: frozenset(how) for column, how in rows.items()},
    )


def _through(first: ColumnLineage, column: str, how: Direct) -> Origins:
    return {source: _stronger(how, before) for source, before in first.direct.get(column, {}).items()}


def _sources(first: ColumnLineage, columns: Iterable[str]) -> set[str]:
    """Return all columns of the input that decide the values of columns of a result."""
    return {each for column in columns for each in (*first.direct.get(column, {}), *first.conditions.get(column, ()))}


def _stronger(one: Direct, other: Direct) -> Direct:
    return max(one, other, key=_STRENGTH.index)


def _joined(parts: Iterable[Origins]) -> Origins:
    found: dict[str, Direct] = {}
    for part in parts:
        for column, how in part.items():
            found[column] = _stronger(how, found.get(column, how))
    return found


def _resolver(plan: Plan) -> Callable[[str], Origins]:
    """Return a function from a column that a window sees to the columns of the input that it is computed from."""
    projection = plan.projection
    made_of = {each.name: each.value.columns for each in projection.computed}
    made_of |= {each.name: each.columns for each in projection.lags}

    def resolve(name: str) -> Origins:
        if name in projection.virtual:
            return {}
        if name not in made_of:
            return {name: "IDENTITY"}
        return {source: "TRANSFORMATION" for column in made_of[name] for source in resolve(column)}

    return resolve


def _pane_columns(plan: Plan, resolve: Callable[[str], Origins]) -> dict[str, Origins]:
    """Return where the columns come from that every result has: its keys, its groups, its bounds, its order values."""
    found = {name: resolve(name) for name in (*plan.key, *plan.options.group_by)}
    clock = plan.clock or (plan.at[0] if plan.at else None)
    bounds = {} if clock is None else _at_least("TRANSFORMATION", resolve(clock))
    found |= dict.fromkeys(FIXED[1:3], bounds)
    by_clock = plan.causes == "ticks"
    at = {numbered("_at", index): resolve(name) for index, name in enumerate(plan.at)}
    found |= {name: _at_least("TRANSFORMATION", how) if by_clock else how for name, how in at.items()}
    found |= {numbered("_tie", index): resolve(name) for index, name in enumerate(plan.ties)}
    return found | ({POS: resolve(plan.pos)} if plan.pos is not None else {})


def _values(
    stage: StagePlan, resolve: Callable[[str], Origins]
) -> tuple[dict[str, Origins], dict[str, frozenset[str]]]:
    """Return where the aggregates, the rows or what an operator returns come from, and their conditions."""
    plan = stage.plan
    if plan.options.operator is not None:
        read = _at_least("TRANSFORMATION", _joined(resolve(name) for name in (*plan.key, *plan.rows)))
        own = {*plan.key, *FIXED, *plan.stream_names, *plan.place_names, MARK}
        return {name: read for name in stage.result.names if name not in own}, {}
    if plan.rows:
        return {name: resolve(name) for name in plan.rows}, {}
    calls = stage.request.calls or ()
    return (
        {each.name: _at_least("AGGREGATION", _joined(map(resolve, _arguments(each)))) for each in calls},
        {each.name: frozenset(_joined(map(resolve, _conditions(each)))) for each in calls},
    )


def _arguments(item: AggregateCall | AggregateExpression) -> list[str]:
    arguments = [argument for call in item.calls for argument in call.arguments]
    named = [each.name for each in arguments if isinstance(each, Column)]
    return named + [name for each in arguments for name in getattr(each, "columns", ())]


def _conditions(item: AggregateCall | AggregateExpression) -> list[str]:
    return [name for call in item.calls if call.where is not None for name in call.where.columns]


def _at_least(least: Direct, found: Origins) -> Origins:
    return {column: _stronger(least, how) for column, how in found.items()}


def _deciding(stage: StagePlan, resolve: Callable[[str], Origins]) -> dict[str, frozenset[Indirect]]:
    """Return the columns of the input that decide which rows the result has, and which rows are in which."""
    plan = stage.plan
    where = plan.projection.where
    marks = [stage.marks.removeprefix(_COLUMN)] if plan.takes_marks and stage.marks.startswith(_COLUMN) else []
    event_time = [plan.options.event_time] if plan.options.event_time else []
    clock = [plan.clock] if plan.clock and plan.kind.causes != "rows" else []
    uses: dict[Indirect, Iterable[str]] = {
        "FILTER": where.value.columns if where is not None else (),
        "GROUP_BY": (*plan.key, *plan.options.group_by),
        "SORT": (*plan.sort, *(key.name for key in plan.sort_rows)),
        "WINDOW": (*plan.kind.attributes, *event_time, *clock, *marks),
    }
    found: dict[str, set[Indirect]] = {}
    for use, names in uses.items():
        for source in _joined(map(resolve, names)):
            found.setdefault(source, set()).add(use)
    return {column: frozenset(how) for column, how in found.items()}
