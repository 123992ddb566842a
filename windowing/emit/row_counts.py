"""How many rows ``--emit rows`` writes: where windows overlap, far more than the input has."""

from __future__ import annotations

from ..errors import DataError
from ..panes.membership import sizes
from ..panes.panes import Panes
from ..planning.plan import Plan


def may_multiply(plan: Plan) -> bool:
    """Return whether the result may contain a row several times."""
    return plan.options.emit == "rows" and plan.kind.overlaps


def rows_out(plan: Plan, rows: int) -> int | None:
    """Return how many rows the result has for ``rows`` valid rows; None where that depends on their values."""
    return plan.kind.rows_out(rows, plan.context) if may_multiply(plan) and not plan.key else None


def check_rows(plan: Plan, rows: int) -> None:
    """Raise `DataError` where the result of ``rows`` rows is known to exceed the limit."""
    found = rows_out(plan, rows)
    if found is not None and _is_too_many(plan, found):
        raise _error(plan, f"would write {found:,} rows, made of {rows:,}")


def check_panes(plan: Plan, panes: Panes) -> None:
    """Raise `DataError` where the rows of panes exceed the limit."""
    if plan.options.max_rows is not None and may_multiply(plan):
        found = int(sizes(panes.membership).sum())
        if _is_too_many(plan, found):
            raise _error(plan, f"would write {found:,} rows and more")


def check_written(plan: Plan, rows: int) -> None:
    """Raise `DataError` where the rows that all tasks have written exceed the limit."""
    if may_multiply(plan) and _is_too_many(plan, rows):
        raise _error(plan, f"would write {rows:,} rows")


def _is_too_many(plan: Plan, rows: int) -> bool:
    return plan.options.max_rows is not None and rows > plan.options.max_rows


def _error(plan: Plan, what: str) -> DataError:
    allowed = f"more than the {plan.options.max_rows:,} allowed; nothing was written"
    do = "ask for aggregates, or allow more with --max-rows-out"
    return DataError(f"{plan.spec} with --emit rows {what}, {allowed}", do)
