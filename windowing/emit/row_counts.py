"""How many rows ``--emit rows`` writes: where windows overlap, far more than the input has."""

from __future__ import annotations

from ..errors import DataError
from ..language.spec import Batched, Count, Sliding, Tumbling
from ..panes.membership import sizes
from ..panes.panes import Panes
from ..planning.plan import Plan


def may_multiply(plan: Plan) -> bool:
    """Return whether the result may contain a row several times."""
    return plan.options.emit == "rows" and not isinstance(plan.spec, Tumbling)


def rows_out(plan: Plan, rows: int) -> int | None:
    """Return how many rows the result has for ``rows`` valid rows; None where that depends on their values."""
    spec, options = plan.spec, plan.options
    if not may_multiply(plan) or plan.key:
        return None
    if isinstance(spec, Sliding):
        if not isinstance(spec.evict, Count) or not isinstance(spec.trigger, Count) or spec.eviction is not None:
            return None
        least = 0 if options.partial else spec.evict.n
        return _shown(rows, spec.evict.n, spec.trigger.n, least, options.at_end == "flush")
    if not isinstance(spec, Batched) or spec.within is not None or spec.partition_by or spec.unique is not None:
        return None
    if spec.retain_all:
        return rows * (rows + 1) // 2
    assert spec.retain is not None
    return _shown(rows, spec.retain, int(spec.every or 1), 0, options.at_end == "flush")


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


def _shown(rows: int, most: int, step: int, least: int, flushes: bool) -> int:
    """Return how many rows a window of the last ``most`` rows shows at each ``step``-th row, from row ``least`` on.

    ``flushes``: whether it also triggers at the last row, if it has not done so there.
    """
    first, last = max(1, -(-least // step)), rows // step  # triggers, counted from 1
    growing = min(last, most // step)  # triggers that find at most ``most`` rows so far
    found = 0
    if growing >= first:
        found += step * (first + growing) * (growing - first + 1) // 2
    found += most * max(0, last - max(growing, first - 1))
    if flushes and rows % step and rows >= least:
        found += min(rows, most)
    return found
