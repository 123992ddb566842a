"""What came close to another window: what nearly ended it, and the row next in line."""

from __future__ import annotations

from collections.abc import Iterator

from .....windowing.language.calls import Policy
from .....windowing.language.clock_policies import Calendar, Cron, Time
from .....windowing.language.row_policies import Count
from .fact import Fact
from .row_values import Amount, amount_text, exact_text
from .told_window import Told, attribute_of, kind_of_policy


def near_facts(told: Told, policy: Policy) -> Iterator[Fact]:
    """Yield what came close for one rule: within the window, and the row next in line."""
    match kind_of_policy(policy):
        case "gap":
            yield from _near_gap(told, policy)
        case "delta":
            yield from _near_delta(told, policy)
        case "count":
            yield from _near_count(told, policy)
        case _ if isinstance(policy, Time | Calendar | Cron):
            yield from _near_clock(told)


def _near_gap(told: Told, policy: Policy) -> Iterator[Fact]:
    name = attribute_of(policy)
    kind = told.values.column(name).type
    widest = told.values.widest(name, told.rows)
    if widest is not None:
        row, apart = widest
        text = f"the widest gap inside is {amount_text(kind, apart)}, before {told.values.name(row)}: "
        yield _near_fact(told, text + "with a smaller one the window ends there", row, "gap", apart)
    if told.closed_by == "gap" and told.cause is not None:
        apart = told.values.distance(name, told.cause, int(told.rows[-1]))
        text = f"with a gap of {amount_text(kind, apart)} or more {told.values.name(told.cause)} is in it, too"
        yield _near_fact(told, text, told.cause, "gap", apart)


def _near_delta(told: Told, policy: Policy) -> Iterator[Fact]:
    name, first = attribute_of(policy), int(told.rows[0])
    kind = told.values.column(name).type
    farthest = told.values.farthest(name, told.rows)
    if farthest is not None:
        row, apart = farthest
        text = f"{told.values.name(row)} is farthest from the first row, by {amount_text(kind, apart)}: "
        yield _near_fact(told, text + "with a smaller delta it is in the next window", row, "delta", apart)
    if told.closed_by == "delta" and told.cause is not None:
        apart = told.values.distance(name, told.cause, first)
        text = f"with a delta of {amount_text(kind, apart)} or more {told.values.name(told.cause)} is in it, too"
        yield _near_fact(told, text, told.cause, "delta", apart)


def _near_fact(told: Told, text: str, row: int, rule: str, apart: Amount) -> Fact:
    return Fact("near", text, told.values.pos(row), rule, {"distance": exact_text(apart)})


def _near_count(told: Told, policy: Policy) -> Iterator[Fact]:
    if told.closed_by == "count" and told.next is not None:
        row = told.next
        text = f"{told.values.name(row)} is next in line: with one more row allowed it is in it, too"
        yield Fact("near", text, told.values.pos(row), "count")
    elif isinstance(policy, Count) and told.closed_by != "count":
        missing = policy.n - len(told.rows)
        yield Fact(
            "near", f"it holds {len(told.rows):,} of {policy.n:,} rows", None, "count", {"missing": str(missing)}
        )


def _near_clock(told: Told) -> Iterator[Fact]:
    values, order = told.values, told.panes.sequences.order[0]
    last = int(told.rows[-1])
    yield Fact("near", f"its last row is at {values.text(order, last)}", values.pos(last), "time")
    if told.next is not None:
        apart = values.distance(order, told.next, last)
        kind = values.column(order).type
        text = f"the next row of its key is {amount_text(kind, apart)} after its last row, {values.name(told.next)}"
        yield _near_fact(told, text, told.next, "time", apart)
