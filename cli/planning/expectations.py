"""Expectations of a job bound to the numbers of its units, and to the columns of its result (semantics section 14)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ...conf.expectations import Expectation, parse_expectation
from ...windowing.engine.tasks.row_checks import order_column
from ...windowing.errors import SpecError
from ...windowing.expressions.binding import BoundExpression, bind_condition
from ...windowing.planning.result_schema import MARK
from .stage_plans import StagePlan

FIRST_AT, LAST_AT, SINCE = "first_at", "last_at", "seconds_since_last"
SPAN = (FIRST_AT, LAST_AT, SINCE)
"""Numbers that need the order values of rows."""
COUNTS = ("rows_in", "rows_filtered", "rows_rejected", "late", "windows", "panes_hidden", "held")
SHARES = ("rejected_share", "late_share")


@dataclass(frozen=True, slots=True)
class BoundExpectation:
    """An expectation that is bound to its columns.

    ``expectation``: as the job has it.
    ``condition``: what must be true.
    """

    expectation: Expectation
    condition: BoundExpression

    @property
    def asks_span(self) -> bool:
        """Whether it needs the order values of rows."""
        return self.expectation.scope == "numbers" and not {*SPAN}.isdisjoint(self.condition.columns)


def bind_expectations(texts: Sequence[str], stages: Sequence[StagePlan]) -> tuple[BoundExpectation, ...]:
    """Bind the expectations of a job. Raises `SpecError` for unknown columns, and types that do not go together."""
    return tuple(_bound(parse_expectation(text), text, stages) for text in texts)


def conditions_of(expectations: Sequence[BoundExpectation]) -> tuple[BoundExpression, ...]:
    """Return the conditions over rows of the result, in the order of the expectations."""
    return tuple(each.condition for each in expectations if each.expectation.scope != "numbers")


def number_schema(first: StagePlan) -> pa.Schema:
    """Return the numbers of a unit, with their types; ``first``: the stage that reads its rows."""
    name = order_column(first.plan)
    at = pa.null() if name is None else first.plan.projection.schema.field(name).type
    fields = [(name, pa.int64()) for name in COUNTS] + [(FIRST_AT, at), (LAST_AT, at)]
    return pa.schema([*fields, *((name, pa.float64()) for name in (SINCE, *SHARES))])


def _bound(expectation: Expectation, text: str, stages: Sequence[StagePlan]) -> BoundExpectation:
    schema = number_schema(stages[0])
    if expectation.scope != "numbers":
        schema = pa.schema([field for field in stages[-1].plan.schema if field.name != MARK])
    try:
        return BoundExpectation(expectation, bind_condition(expectation.expression, schema))
    except SpecError as error:
        calls = expectation.expression.calls & {"all", "any"}
        do = f"{min(calls)}(..) stands alone: give two expectations" if calls else error.do
        raise SpecError(f"--expect: {error.what}", text, error.span, do) from None
