"""The sentences of a window with its key and options, in the order in which they take effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from .calls import Policy
from .clock_policies import Calendar, Cron, Time
from .conditions import AnyOf, From, Reaches, When, While, operand_text
from .options import Options
from .row_policies import Change, Changing, Count, Delta, Gap, Punct
from .spec import (
    AggregateCall,
    AggregateExpression,
    Batched,
    PartitionEviction,
    Sliding,
    SlidingPolicy,
    TimeInterval,
    TriggerPolicy,
    Tumbling,
    WindowSpec,
)
from .tokens import decimal_text

# Durations, amounts and lists as sentences have them.


_UNITS = ((86_400, "day"), (3_600, "h"), (60, "min"), (1, "s"))


@dataclass(frozen=True, slots=True)
class Times:
    """The columns whose amounts are seconds.

    ``names``: columns that are timestamps or dates.
    """

    names: Set[str] = frozenset()

    def amount(self, column: str, amount: Fraction) -> str:
        """Return an amount of a column: a duration where that is a time, else a number."""
        return duration(amount) if column in self.names else decimal_text(amount)

    def above(self, column: str) -> str:
        """Return how a larger value of a column compares: ``after`` where that is a time, else ``above``."""
        return "after" if column in self.names else "above"

    def rise(self, column: str, amount: Fraction) -> str:
        """Return how a value is compared that is more than an amount above another one: ``more than 5 s after``."""
        return f"more than {self.amount(column, amount)} {self.above(column)}"


def duration(seconds: Fraction) -> str:
    """Return a duration in its largest units: ``90 s`` is ``1 min 30 s``, 1/4 is ``0.25 s``."""
    words, left = [], seconds
    for size, name in _UNITS[:-1]:
        count, left = divmod(left, size)
        if count:
            words.append(f"{count:,} {name}{'s' if name == 'day' and count != 1 else ''}")
    if left or not words:
        words.append(f"{decimal_text(left)} s")
    return " ".join(words)


def rows(count: int) -> str:
    """Return a number of rows: ``1 row``, ``1,000 rows``."""
    return f"{count:,} row{'' if count == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """Return names in a sentence: ``a``, ``a and b``, ``a, b and c``."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


# What begins and what ends a tumbling window, in words (semantics sections 2, 12 and 13).


_WEEKDAYS: Final = {
    "mon": "Monday", "tue": "Tuesday", "wed": "Wednesday", "thu": "Thursday", "fri": "Friday", "sat": "Saturday",
    "sun": "Sunday",
}  # fmt: skip


def policy_sentences(policy: Policy, times: Times) -> list[str]:
    """Return the sentences of a tumbling policy: what opens a window, then what ends it."""
    if isinstance(policy, Time | Calendar | Cron):
        return [f"Windows are {_stretch(policy)}, and a row is in the one that its time is in."]
    policies = policy.policies if isinstance(policy, AnyOf) else (policy,)
    opening = [sentence for each in policies if (sentence := _opening(each))]
    if len(policies) == 1:
        return [*opening, f"A window ends {ending(policy, times)}."]
    numbered = "; ".join(f"({number}) {ending(each, times)}" for number, each in enumerate(policies, 1))
    return [*opening, f"A window ends at whichever comes first: {numbered}."]


def ending(policy: Policy, times: Times) -> str:
    """Return when a policy ends a window, as the rest of a sentence that begins with ``a window ends``."""
    return _ENDINGS[type(policy)](policy, times)


def _opening(policy: Policy) -> str | None:
    match policy:
        case When():
            opener = f"A window begins at each row for which {operand_text(policy.condition)} is true"
            return f"{opener}; rows before the first are in no window."
        case While():
            return f"Only rows for which {operand_text(policy.condition)} is true are in windows."
        case From():
            opener = f"A window begins at a row for which {operand_text(policy.condition)} is true"
            return f"{opener}; rows between windows are in none."
        case _:
            return None


def _rise(policy: Delta | Gap, times: Times) -> str:
    other = "the row before it" if isinstance(policy, Gap) else "the window's first row"
    return f"before a row whose {policy.attribute} is {times.rise(policy.attribute, policy.amount)} that of {other}"


def _changing(policy: Changing, times: Times) -> str:
    amount, name = operand_text(policy.amount), policy.attribute
    before = ", and previous(..) asks for the window before of the same key" if policy.looks_at_window_before else ""
    if name is None:
        return f"when it holds as many rows as {amount} says in its first row{before}"
    other = "the row before it" if policy.word == "gap" else "the window's first row"
    more = f"more than {amount} {times.above(name)}"
    return f"before a row whose {name} is {more} that of {other}, where {amount} is that of {other}{before}"


def _punct(policy: Punct, _: Times) -> str:
    if policy.column is None:
        return "at a window mark, which ends the windows of all keys"
    return f"with a row for which {operand_text(policy.column)} is true"


def _change(policy: Change, _: Times) -> str:
    names = tuple(map(operand_text, policy.columns))
    verb = "is" if len(names) == 1 else "are"
    return f"before a row whose {listed(names)} {verb} not as in the row before it"


def _time(policy: Time | Calendar | Cron, _: Times) -> str:
    match policy:
        case Time():
            return f"with the interval of {duration(policy.seconds)} on the clock that its first row is in"
        case Calendar():
            return f"with the {policy.unit} in {policy.tz} that its first row is in{_at(policy)}"
        case Cron():
            return f'at the next instant of cron "{policy.expression}" in {policy.tz}'


def _reaches(policy: Reaches, times: Times) -> str:
    name = "" if policy.argument is None else operand_text(policy.argument)
    is_time = policy.function == "range" and name in times.names
    amount = times.amount(name, policy.amount) if is_time else decimal_text(policy.amount)
    return f"with the row by which {policy.function}({name}) of its rows is {amount} or more"


def _stretch(policy: Time | Calendar | Cron) -> str:
    match policy:
        case Time():
            return f"the intervals of {duration(policy.seconds)} on the clock"
        case Calendar():
            return f"the {policy.unit}s in {policy.tz}{_at(policy)}"
        case Cron():
            return f'the intervals between the instants of cron "{policy.expression}" in {policy.tz}'


def _at(policy: Calendar) -> str:
    day = f" on {_WEEKDAYS[policy.start]}s" if policy.unit == "week" else ""
    if not (policy.at.hour or policy.at.minute or policy.at.second):
        return f", which begin{day}" if day else ""
    return f", which begin{day} at {policy.at.isoformat('seconds' if policy.at.second else 'minutes')}"


_ENDINGS: Final[Mapping[type[Any], Callable[[Any, Times], str]]] = {
    Count: lambda policy, _: f"when it holds {rows(policy.n)}",
    Delta: _rise,
    Gap: _rise,
    Changing: _changing,
    Punct: _punct,
    Change: _change,
    Time: _time,
    Calendar: _time,
    Cron: _time,
    When: lambda _, __: "before the next such row",
    While: lambda _, __: "before a row for which it is not",
    From: lambda policy, _: (
        f"with the first row for which {operand_text(policy.until)} is true, which may be the row that opened it"
    ),
    Reaches: _reaches,
}
"""Type of a policy to what says when it ends a window."""


# What a window holds and when it comes out, in words, for each kind of window (semantics sections 2 to 6).


def spec_sentences(spec: WindowSpec, options: Options, times: Times) -> list[str]:
    """Return a sentence for each clause of a window spec."""
    return _KINDS[type(spec)](spec, options, times)


def _tumbling(spec: Tumbling, options: Options, times: Times) -> list[str]:
    return [*policy_sentences(spec.policy, times), *_eviction(spec.eviction, options)]


def _sliding(spec: Sliding, options: Options, times: Times) -> list[str]:
    found = [_held(spec.evict, times), _trigger(spec.trigger, times)]
    if isinstance(spec.evict, Count | Delta):
        full = f"it holds {rows(spec.evict.n)}" if isinstance(spec.evict, Count) else "a row has left it"
        found.append(
            f"It also comes out before {full} for the first time."
            if options.partial
            else f"Nothing comes out before {full}."
        )
    return [*found, *_eviction(spec.eviction, options)]


def _held(evict: SlidingPolicy, times: Times) -> str:
    if isinstance(evict, Count):
        return f"The window holds the last {rows(evict.n)}." if evict.n else "The window holds no row."
    if isinstance(evict, Delta):
        more = times.rise(evict.attribute, evict.amount)
        return f"A row leaves the window when the {evict.attribute} of a later row is {more} its own."
    return f"The window holds the rows of the last {duration(evict.seconds)} on the clock."


def _trigger(trigger: TriggerPolicy, times: Times) -> str:
    match trigger:
        case Count():
            return "It comes out with every row." if trigger.n == 1 else f"It comes out with every {trigger.n:,}th row."
        case Delta():
            name = trigger.attribute
            more = times.rise(name, trigger.amount)
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
        yield f"Each {listed(key)} has windows of its own."
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
        texts = [(call.name, call.text if isinstance(call, AggregateCall) else call.expression) for call in calls or ()]
        given = "count = count()" if calls is None else ", ".join(f"{name} = {text}" for name, text in texts)
        yield f"Each window gives one row{each}: {given}."
    if options.having is not None:
        yield f"Rows of the result for which {options.having} is not true are not written."


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
