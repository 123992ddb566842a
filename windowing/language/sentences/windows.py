"""What a window holds and when it comes out, in words, for each kind of window (semantics sections 2 to 6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

from ..canonical import decimal_text
from ..conditions.operands import operand_text
from ..options import Options
from ..row_policies import Count, Delta
from ..spec import Batched, PartitionEviction, Sliding, SlidingPolicy, TimeInterval, TriggerPolicy, Tumbling, WindowSpec
from .policies import policy_sentences
from .quantities import Times, duration, listed, rows


def spec_sentences(spec: WindowSpec, options: Options, times: Times) -> list[str]:
    """Return a sentence for each clause of a window spec."""
    return _KINDS[type(spec)](spec, options, times)


def _tumbling(spec: Tumbling, options: Options, times: Times) -> list[str]:
    return [*policy_sentences(spec.policy, times), *_eviction(spec.eviction, options)]


def _sliding(spec: Sliding, options: Options, times: Times) -> list[str]:
    found = [_held(spec.evict, times), _trigger(spec.trigger, times)]
    if isinstance(spec.evict, Count | Delta):
        full = f"it holds {rows(spec.evict.n)}" if isinstance(spec.evict, Count) else "a row has left it"
        found.append(_fullness(full, options))
    return [*found, *_eviction(spec.eviction, options)]


def _fullness(full: str, options: Options) -> str:
    if options.partial:
        return f"It also comes out before {full} for the first time."
    return f"Nothing comes out before {full}."


def _held(evict: SlidingPolicy, times: Times) -> str:
    if isinstance(evict, Count):
        return f"The window holds the last {rows(evict.n)}." if evict.n else "The window holds no row."
    if isinstance(evict, Delta):
        name = evict.attribute
        more = f"more than {times.amount(name, evict.amount)} {times.above(name)}"
        return f"A row leaves the window when the {name} of a later row is {more} its own."
    return f"The window holds the rows of the last {duration(evict.seconds)} on the clock."


def _trigger(trigger: TriggerPolicy, times: Times) -> str:
    match trigger:
        case Count():
            return "It comes out with every row." if trigger.n == 1 else f"It comes out with every {trigger.n:,}th row."
        case Delta():
            name = trigger.attribute
            more = f"more than {times.amount(name, trigger.amount)} {times.above(name)}"
            return f"It comes out before a row whose {name} is {more} that of the row at which it last did."
        case _ if hasattr(trigger, "seconds"):
            return f"It comes out every {duration(trigger.seconds)} of the clock, before the rows of that instant."
        case _:
            return f"It comes out at each row for which {operand_text(trigger.condition)} is true, with that row."


def _time_interval(spec: TimeInterval, options: Options, _: Times) -> list[str]:
    of = f" of {options.event_time}" if options.event_time else " of event time"
    offset = f", {duration(spec.offset)} after the grid" if spec.offset else ""
    found = [f"Windows are the intervals of {duration(spec.duration)}{of}, one every {duration(spec.period)}{offset}."]
    if spec.period < spec.duration:
        found.append("A row is in each window that its time is in.")
    if spec.period > spec.duration:
        found.append("Rows between windows are in none.")
    lag = f", less {duration(options.lag)}" if options.lag else ""
    found.append(f"The watermark is the latest time that any row had so far{lag}.")
    if options.min_gap:
        found.append(f"It moves when it has risen by {duration(options.min_gap)} or more.")
    again = f", and again when rows come up to {duration(spec.discard_age)} late" if spec.discard_age else ""
    return [*found, f"A window comes out when the watermark reaches its end{again}; later rows are rejected."]


def _batched(spec: Batched, _: Options, __: Times) -> list[str]:
    if spec.retain_all:
        return ["The window holds all rows so far, and comes out with every row."]
    by = f" of each {listed(spec.partition_by)}" if spec.partition_by else ""
    found = [f"The window holds {_content(spec, by)}."]
    if spec.within is not None and spec.every is not None:
        found.append(f"Rows enter and leave only every {duration(Fraction(spec.every))} of the clock.")
    elif spec.every is not None:
        found.append(f"Rows enter in lots of {spec.every:,}{by}.")
    if spec.unique is not None:
        found.append(f"Of rows with the same {spec.unique}, only the newest is visible.")
    return [*found, "It comes out whenever what it holds changes."]


def _content(spec: Batched, by: str) -> str:
    last = None if spec.retain is None else f"the last {rows(spec.retain)}{by}"
    if spec.within is None:
        assert last is not None
        return last
    within = f"the rows of the last {duration(spec.within)}"
    return f"{within} on the clock" if last is None else f"{last} among {within} on the clock"


def _eviction(eviction: PartitionEviction | None, options: Options) -> list[str]:
    if eviction is None:
        return []
    amount = decimal_text(eviction.amount)
    when = {
        "partitionAge": f"A key that got no row for more than {duration(eviction.amount)}",
        "partitionCount": f"Of more than {amount} keys with open windows, the one that got a row longest ago",
        "tupleCount": f"When windows hold more than {amount} rows, the key that got a row longest ago",
    }[eviction.kind]
    then = "its open window comes out" if options.emit_evicted else "the rows of its open window are in no result"
    return [f"{when} is evicted, and {then}."]


_KINDS: Final[Mapping[type[Any], Callable[[Any, Options, Times], list[str]]]] = {
    Tumbling: _tumbling,
    Sliding: _sliding,
    TimeInterval: _time_interval,
    Batched: _batched,
}
"""Kind of window to what says its clauses."""
