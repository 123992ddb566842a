"""The sentences of a window with its key and options, in the order in which they take effect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from ..clock_policies import Calendar, Cron, Time
from ..conditions.policies import AnyOf
from ..options import Options
from ..spec import AggregateCall, AggregateExpression, Batched, Sliding, TimeInterval, Tumbling, WindowSpec
from .quantities import Times, listed
from .windows import spec_sentences

Calls = Sequence[AggregateCall | AggregateExpression]


def sentences_of(
    spec: WindowSpec, key: Sequence[str], calls: Calls | None, options: Options, times: Set[str] = frozenset()
) -> tuple[str, ...]:
    """Return a window in English, one sentence for each clause and each option that changes what comes out.

    ``calls``: the aggregates; None for ``count()``. ``times``: the columns that are times: an amount of these is
    written as a duration.
    """
    known = Times(times)
    return (
        *_rows(spec, key, options),
        *spec_sentences(spec, options, known),
        *_grid(spec, options),
        *_gives(calls, options),
        _end(spec, options),
    )


def _rows(spec: WindowSpec, key: Sequence[str], options: Options) -> Iterator[str]:
    for name, expression in options.let:
        yield f"Each row gets {name} = {expression}."
    if options.where is not None:
        yield f"Rows for which {options.where} is not true are left out."
    if key:
        yield f"Each {listed(tuple(key))} has windows of its own."
    elif not (isinstance(spec, Batched) and spec.partition_by):
        yield "All rows are one sequence."


def _grid(spec: WindowSpec, options: Options) -> Iterator[str]:
    policy = spec.policy if isinstance(spec, Tumbling) else None
    policies = policy.policies if isinstance(policy, AnyOf) else (policy,)
    if not any(isinstance(each, Time | Calendar | Cron) for each in policies):
        return
    if options.closed == "right":
        yield "A row on a bound is the last of the window that ends there."
    if options.empty != "skip":
        what = "a row with count 0" if options.empty == "row" else "a mark"
        yield f"A window without rows, between the first and the last, gives {what}."


def _gives(calls: Calls | None, options: Options) -> Iterator[str]:
    each = f" for each group of {listed(options.group_by)}" if options.group_by else ""
    if options.operator is not None:
        yield f"The operator {options.operator} makes the rows of the result."
    elif options.emit == "rows":
        yield "Each window gives its rows" + (f", by {listed(options.sort_by)}." if options.sort_by else ".")
    elif options.emit != "aggregates":
        yield f"Each change gives the rows that {options.emit}."
    else:
        yield f"Each window gives one row{each}: {_aggregates(calls)}."
    if options.having is not None:
        yield f"Rows of the result for which {options.having} is not true are not written."


def _aggregates(calls: Calls | None) -> str:
    return "count = count()" if calls is None else ", ".join(_aggregate(call) for call in calls)


def _aggregate(call: AggregateCall | AggregateExpression) -> str:
    text = call.text if isinstance(call, AggregateCall) else str(call.expression)
    return f"{call.name} = {text}"


def _end(spec: WindowSpec, options: Options) -> str:
    """Return what becomes of open windows at the end of the data (semantics section 7)."""
    if options.at_end == "flush":
        return _flush(spec)
    then = "wait in the state for the next run" if options.at_end == "hold" else "are dropped"
    return f"Windows that are open at the end of the data {then}."


def _flush(spec: WindowSpec) -> str:
    if isinstance(spec, Tumbling):
        return "Windows that are open at the end of the data come out."
    if isinstance(spec, Sliding):
        return "At the end of the data it comes out once more, if rows came in since it last did."
    if isinstance(spec, TimeInterval):
        return "At the end of the data the watermark passes all windows."
    if spec.every is not None:
        return "At the end of the data rows that wait to enter do so."
    then = "the clock goes on until it is empty" if spec.within is not None else "nothing more comes out"
    return f"At the end of the data {then}."
