"""Whether a unit is as its job demands, before anything is committed (semantics section 14)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from ....windowing.engine.tasks.row_checks import epoch_seconds
from ....windowing.errors import DataError
from ....windowing.ports import Counts, RowCheck
from ...console.counts import count_of
from ...console.messages import Messages
from ...planning.expectations import BoundExpectation, number_schema
from ...planning.job_plan import JobPlan
from ..staged_job import ExpectationOutcome, StageRun


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
        "first_at": _value(low, schema.field("first_at").type),
        "last_at": _value(high, schema.field("last_at").type),
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
        if bound.expectation.scope == "numbers":
            assert numbers is not None
            yield _of_numbers(bound, numbers)
        else:
            yield _of_rows(bound, next(checks))


def _of_numbers(bound: BoundExpectation, numbers: pa.Table) -> ExpectationOutcome:
    found = bound.condition.evaluate(numbers)
    holds = found.values[0].as_py() is True
    saw: dict[str, Any] = {name: _plain(numbers[name]) for name in bound.condition.columns}
    words = ", ".join(f"{name} is {_shown(value)}" for name, value in saw.items())
    if found.failures is not None:
        words = ", ".join(filter(None, [words, f"it fails: {found.details[0].as_py()}"]))
    return ExpectationOutcome(str(bound.expectation), bound.expectation.on_fail, holds, saw, words)


def _of_rows(bound: BoundExpectation, check: RowCheck) -> ExpectationOutcome:
    is_all, failing = bound.expectation.scope == "all", check.rows - check.true
    saw: dict[str, Any] = {"rows": check.rows, "true": check.true}
    if is_all:
        verb = "is" if failing == 1 else "are"
        words = f"{failing:,} of {count_of(check.rows, 'row')} {verb} not so"
        words += f", the first: {check.example}" if check.example else ""
    else:
        words = f"none of {count_of(check.rows, 'row')} is so"
    return ExpectationOutcome(
        str(bound.expectation), bound.expectation.on_fail, failing == 0 if is_all else check.true > 0, saw, words
    )


def _words(outcome: ExpectationOutcome) -> str:
    return f"the expectation {outcome.expect} does not hold: {outcome.words}"


def _value(number: float | None, dtype: pa.DataType) -> pa.Array:
    """Return an order value from its number, as `windowing.engine.tasks.row_checks.span_of` gives it."""
    if number is None:
        return pa.nulls(1, dtype)
    if not pa.types.is_temporal(dtype):
        return pa.array([number]).cast(dtype)
    return pa.array([number], pa.int32() if dtype.bit_width == 32 else pa.int64()).cast(dtype)


def _plain(column: pa.ChunkedArray) -> Any:
    """Return the one value of a column as JSON has it: times as texts."""
    value = column[0]
    return str(value) if value.is_valid and pa.types.is_temporal(column.type) else value.as_py()


def _shown(value: Any) -> str:
    return "null" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
