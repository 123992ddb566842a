"""What is told of a tumbling window: what opened and closed it, and what came close."""

from __future__ import annotations

from collections.abc import Iterator

from .....windowing.language.conditions.policies import From, When, While
from ..windows.panes_of_key import BEFORE, CLOCK
from .closing import closing_fact
from .fact import Fact
from .near import near_facts
from .told_window import Told


def tumbling_facts(told: Told) -> Iterator[Fact]:
    """Yield what opened and closed a window, then what came close."""
    if not len(told.rows):
        yield Fact("other", "no row of this key is in it; --empty writes such windows")
        return
    yield _opened(told)
    yield closing_fact(told)
    for policy in told.policies:
        yield from near_facts(told, policy)


def _opened(told: Told) -> Fact:
    first, values = int(told.rows[0]), told.values
    text = f"{values.name(first)} opened it{_why_there(told)}{_opener(told)}"
    return Fact("opened", text, values.pos(first), told.before)


def _why_there(told: Told) -> str:
    """Say what was before the row that opened a window."""
    if told.before is None:
        return ": no window of its key came before"
    if told.before in BEFORE and not _skips(told):
        return f": the same row ended the window before ({told.before})"
    if told.before in CLOCK:
        return f": it is the first row after the end of the window before ({told.before})"
    return f": the window before had ended ({told.before})"


def _skips(told: Told) -> bool:
    return any(isinstance(policy, While | From) for policy in told.policies)


def _opener(told: Told) -> str:
    """Say which condition was true of the row that opened a window."""
    for policy in told.policies:
        if isinstance(policy, When | While | From):
            return f", and {policy.condition} is true for it"
    return ""
