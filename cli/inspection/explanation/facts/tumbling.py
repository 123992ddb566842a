"""The facts of a tumbling window: what opened and closed it, and what came close (semantics sections 2, 12 and 13)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .....windowing.language.calls import Policy
from .....windowing.language.conditions.policies import OPENERS, AnyOf, From, While
from .....windowing.language.spec import Tumbling
from ..windows.panes_of_key import BEFORE, CLOCK, KeyPane
from .closing import closing_fact, closing_policy
from .fact import Fact
from .near import near_facts


def tumbling_facts(pane: KeyPane, spec: Tumbling) -> Iterator[Fact]:
    """Yield what opened and closed a window, then what came close."""
    if not len(pane.rows):
        yield Fact("other", "no row of this key is in it; --empty writes such windows")
        return
    policies = spec.policy.policies if isinstance(spec.policy, AnyOf) else (spec.policy,)
    yield _opened(pane, policies)
    ending = closing_policy(pane, policies)
    yield closing_fact(pane, ending)
    for policy in policies:
        yield from near_facts(pane, policy, policy is ending)


def _opened(pane: KeyPane, policies: Sequence[Policy]) -> Fact:
    first, values = int(pane.rows[0]), pane.values
    text = f"{values.name(first)} opened it{_why_there(pane, policies)}{_condition(policies)}"
    return Fact("opened", text, values.pos(first), pane.before)


def _why_there(pane: KeyPane, policies: Sequence[Policy]) -> str:
    """Say what was before the row that opened a window."""
    skips = any(isinstance(policy, While | From) for policy in policies)
    if pane.before is None:
        return ": no window of its key came before"
    if pane.before in BEFORE and not skips:
        return f": the same row ended the window before ({pane.before})"
    if pane.before in CLOCK:
        return f": it is the first row after the end of the window before ({pane.before})"
    return f": the window before had ended ({pane.before})"


def _condition(policies: Sequence[Policy]) -> str:
    """Say which condition is true for the row that opened a window."""
    openers = (policy for policy in policies if isinstance(policy, OPENERS))
    return "".join(f", and {policy.condition} is true for it" for policy in openers)
