"""The facts of a pane of a sliding window: what triggered it, and what it evicts (semantics section 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from .....windowing.language.clock_policies import Time
from .....windowing.language.conditions.policies import When
from .....windowing.language.row_policies import Count, Delta
from .....windowing.language.spec import Sliding, SlidingPolicy
from .....windowing.sequences.attribute_distance import have_risen, measures_and_amount
from ..windows.panes_of_key import KeyPane
from ..windows.row_values import amount_text, exact_text
from .fact import Fact
from .retained_rows import changes_since_pane_before, end_fact, fact_of_age, oldest_row


def sliding_facts(pane: KeyPane, spec: Sliding) -> Iterator[Fact]:
    """Yield what triggered a pane, what it evicts, and what changed since the pane before."""
    yield from oldest_row(pane)
    yield _triggered(pane, spec)
    yield from _evicted(pane, spec)
    yield from changes_since_pane_before(pane)


def _triggered(pane: KeyPane, spec: Sliding) -> Fact:
    trigger, row = spec.trigger, pane.cause_row
    if pane.closed_by == "end":
        return end_fact()
    if row is None:
        return Fact("closed", f"the tick of {trigger} at {pane.text('_at')} brought it out", None, pane.closed_by)
    return _TRIGGERED[type(trigger)](pane, trigger, row)


def _by_count(pane: KeyPane, trigger: Count, row: int) -> Fact:
    number = f"it is insertion number {trigger.n:,} since the trigger before"
    why = "each row does" if trigger.n == 1 else number
    values = pane.values
    return Fact("closed", f"{values.name(row)} brought it out: {why}", values.pos(row), pane.closed_by)


def _by_when(pane: KeyPane, trigger: When, row: int) -> Fact:
    values = pane.values
    return Fact("closed", f"{trigger.condition} is true for {values.name(row)}", values.pos(row), pane.closed_by)


def _by_time(pane: KeyPane, _: Time, row: int) -> Fact:
    return Fact("closed", f"{pane.values.name(row)} brought it out", pane.values.pos(row), pane.closed_by)


def _by_delta(pane: KeyPane, trigger: Delta, row: int) -> Fact:
    base, name, values = _baseline(pane, trigger, row), trigger.attribute, pane.values
    kind, apart = values.column(name).type, values.distance(name, row, base)
    text = f"{values.name(row)} is {amount_text(kind, apart)} above {values.name(base)}, at which it was triggered last"
    text += f" or began; the trigger is {amount_text(kind, trigger.amount)}, and shows the window before that row"
    numbers = {"distance": exact_text(apart), "limit": exact_text(trigger.amount)}
    return Fact("closed", text, values.pos(row), pane.closed_by, numbers)


def _baseline(pane: KeyPane, trigger: Delta, row: int) -> int:
    """Return the row of the trigger before ``row``, suppressed ones included, or the first row of the key."""
    values, amount = measures_and_amount(pane.panes.sequences, trigger.attribute, trigger.amount)
    base = 0
    while True:
        fired = np.flatnonzero(have_risen(values[base + 1 : row], values[base], amount))
        if not len(fired):
            return base
        base += 1 + int(fired[0])


def _evicted(pane: KeyPane, spec: Sliding) -> Iterator[Fact]:
    """Yield how close the oldest row is to being evicted, and the newest that has been."""
    if not len(pane.rows):
        return
    measured = _measured(spec.evict, pane)
    gone = np.setdiff1d(np.arange(int(pane.rows[-1]) + 1), pane.rows)
    if len(gone):
        text = f"{pane.values.name(int(gone[-1]))} is the newest that {spec.evict} has evicted"
        yield fact_of_age(pane, measured, int(gone[-1]), text)
    if measured is not None:
        oldest = int(pane.rows[0])
        yield fact_of_age(
            pane, measured, oldest, f"{pane.values.name(oldest)} is the oldest that {spec.evict} has kept"
        )


def _measured(evict: SlidingPolicy, pane: KeyPane) -> str | None:
    """Return the column by which rows are evicted; None: by their number."""
    if isinstance(evict, Count):
        return None
    return evict.attribute if isinstance(evict, Delta) else next(iter(pane.panes.sequences.order), None)


_TRIGGERED: Final[Mapping[type, Callable[[KeyPane, Any, int], Fact]]] = {
    Count: _by_count,
    Delta: _by_delta,
    Time: _by_time,
    When: _by_when,
}
