"""What begins and what ends a tumbling window, in words (semantics sections 2, 12 and 13)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ..calls import Policy
from ..canonical import decimal_text
from ..clock_policies import Calendar, Cron, Time
from ..conditions.operands import operand_text
from ..conditions.policies import AnyOf, From, Reaches, When, While
from ..row_policies import Change, Changing, Count, Delta, Gap, Punct
from .quantities import Times, duration, listed, rows

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


def _count(policy: Count, _: Times) -> str:
    return f"when it holds {rows(policy.n)}"


def _delta(policy: Delta, times: Times) -> str:
    name = policy.attribute
    more = f"more than {times.amount(name, policy.amount)} {times.above(name)}"
    return f"before a row whose {name} is {more} that of the window's first row"


def _gap(policy: Gap, times: Times) -> str:
    name = policy.attribute
    more = f"more than {times.amount(name, policy.amount)} {times.above(name)}"
    return f"before a row whose {name} is {more} that of the row before it"


def _changing(policy: Changing, times: Times) -> str:
    amount, name = operand_text(policy.amount), policy.attribute
    if name is None:
        return f"when it holds as many rows as {amount} says in its first row{_before(policy)}"
    other = "the row before it" if policy.word == "gap" else "the window's first row"
    more = f"more than {amount} {times.above(name)}"
    return f"before a row whose {name} is {more} that of {other}, where {amount} is that of {other}{_before(policy)}"


def _before(policy: Changing) -> str:
    return ", and previous(..) asks for the window before of the same key" if policy.looks_at_window_before else ""


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


def _when(_: When, __: Times) -> str:
    return "before the next such row"


def _while(_: While, __: Times) -> str:
    return "before a row for which it is not"


def _from(policy: From, _: Times) -> str:
    return f"with the first row for which {operand_text(policy.until)} is true, which may be the row that opened it"


def _reaches(policy: Reaches, times: Times) -> str:
    name = "" if policy.argument is None else operand_text(policy.argument)
    is_time = policy.function == "range" and name in times.names
    amount = times.amount(name, policy.amount) if is_time else decimal_text(policy.amount)
    return f"with the row by which {policy.function}({name}) of its rows is {amount} or more"


def _stretch(policy: Time | Calendar | Cron) -> str:
    """Return the windows of a policy of the clock."""
    match policy:
        case Time():
            return f"the intervals of {duration(policy.seconds)} on the clock"
        case Calendar():
            return f"the {policy.unit}s in {policy.tz}{_at(policy)}"
        case Cron():
            return f'the intervals between the instants of cron "{policy.expression}" in {policy.tz}'


def _at(policy: Calendar) -> str:
    """Return where units of the calendar begin, where that is not midnight, or of weeks not Monday."""
    day = f" on {_WEEKDAYS[policy.start]}s" if policy.unit == "week" else ""
    if not (policy.at.hour or policy.at.minute or policy.at.second):
        return f", which begin{day}" if day else ""
    return f", which begin{day} at {policy.at.isoformat('seconds' if policy.at.second else 'minutes')}"


_ENDINGS: Final[Mapping[type[Any], Callable[[Any, Times], str]]] = {
    Count: _count,
    Delta: _delta,
    Gap: _gap,
    Changing: _changing,
    Punct: _punct,
    Change: _change,
    Time: _time,
    Calendar: _time,
    Cron: _time,
    When: _when,
    While: _while,
    From: _from,
    Reaches: _reaches,
}
"""Type of a policy to what says when it ends a window."""
