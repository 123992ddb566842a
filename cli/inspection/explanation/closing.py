"""What closed a tumbling window, with the numbers that were compared (semantics sections 2, 12 and 13)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from ....windowing.kinds.row_values import Amount, amount_text, exact_text
from ....windowing.kinds.tumbling.policy import TumblingPolicy
from ....windowing.language.calls import Policy
from ....windowing.language.row_policies import Changing, Count, Delta, Gap
from .panes_of_key import CLOCK, KeyPane, scalar_text

Distance: TypeAlias = Delta | Gap | Changing
"""A policy that compares how far values of a column are apart."""


def attribute_of(policy: Distance) -> str:
    """Return the column that a policy compares."""
    assert policy.attribute is not None  # it is None for ``count`` alone
    return policy.attribute


# One thing that is known of a window, as a value.


Kind = Literal["opened", "closed", "near", "late", "other"]
"""What a fact says: which row opened the window; what brought it out; what came close; what came late; all else."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that is known of a window.

    ``kind``: what it says.
    ``text``: the same in words.
    ``row``: the arrival position of the row that it is about; None: about none.
    ``rule``: the word of the rule, as ``closed_by`` has it; None: there is none.
    ``numbers``: its numbers by name, as texts that are exact.
    """

    kind: Kind
    text: str
    row: int | None = None
    rule: str | None = None
    numbers: Mapping[str, str] = field(default_factory=dict)


def closing_fact(pane: KeyPane, policy: TumblingPolicy | None) -> Fact:
    """Return what brought a window out. ``policy``: as `closing_policy` returns it."""
    reason, row = pane.closed_by, pane.cause_row
    if reason == "end":
        return Fact("closed", "the end of the data brought it out: it was still open", None, reason)
    if reason == "evicted":
        return Fact("closed", "its key was evicted, and its rows with it", None, reason)
    if reason in CLOCK:
        return _closed_by_clock(pane)
    if row is None:
        at, marks = pane.cause - len(pane.panes.sequences), pane.panes.marks
        mark = f"arrival position {int(marks.pos[at])}"
        if names := marks.rows.schema.names:
            mark = f"the row at {scalar_text(marks.rows.column(names[0])[at])}"
        return Fact("closed", f"a mark behind {mark} ended it", None, reason)
    assert policy is not None
    told = policy.explain(pane.values, pane.rows, row)
    return Fact("closed", told.text, pane.values.pos(row), reason, told.numbers)


def closing_policy(pane: KeyPane, policies: Sequence[TumblingPolicy]) -> TumblingPolicy | None:
    """Return the policy that ended a window; None: none did.

    Of several with the close reason of the window, such as two of ``delta``, it is the first that ends it at this row.
    """
    alike = [each for each in policies if each.why == pane.closed_by]
    row = pane.cause_row
    if len(alike) < 2 or row is None or pane.closed_by in CLOCK:
        return next(iter(alike), None)
    return next((each for each in alike if each.explain(pane.values, pane.rows, row).is_shown), alike[0])


def _closed_by_clock(pane: KeyPane) -> Fact:
    row, reason = pane.cause_row, pane.closed_by
    end = pane.text("_at" if "_at" in pane.panes.head.column_names else "window_end")
    if row is None:
        text = f"the clock reached {end}, where it ends; its rows are from {pane.text('window_start')}"
        return Fact("closed", text, None, reason, {"end": end})
    text = f"{pane.values.name(row)} is behind the end of its interval ({reason})"
    return Fact("closed", text, pane.values.pos(row), reason, {"end": end})


# What came close to another window: what nearly ended it, and the row next in line.


def near_facts(pane: KeyPane, policy: Policy, ended: bool) -> Iterator[Fact]:
    """Yield what came close for one policy: within the window, and the row next in line.

    ``ended``: whether this policy ended the window.
    """
    name = policy.word if isinstance(policy, Changing) else type(policy).__name__.lower()
    facts = _NEAR.get(name)
    if facts is not None:
        yield from facts(pane, policy, ended)


def _near_gap(pane: KeyPane, policy: Distance, ended: bool) -> Iterator[Fact]:
    name = attribute_of(policy)
    kind = pane.values.column(name).type
    widest = pane.values.widest(name, pane.rows)
    if widest is not None:
        row, apart = widest
        text = f"the widest gap inside is {amount_text(kind, apart)}, before {pane.values.name(row)}: "
        yield _near_fact(pane, text + "with a smaller one the window ends there", row, "gap", apart)
    if ended:
        yield from _next_in_it(pane, name, int(pane.rows[-1]), "gap")


def _near_delta(pane: KeyPane, policy: Distance, ended: bool) -> Iterator[Fact]:
    name = attribute_of(policy)
    kind = pane.values.column(name).type
    farthest = pane.values.farthest(name, pane.rows)
    if farthest is not None:
        row, apart = farthest
        text = f"{pane.values.name(row)} is farthest from the first row, by {amount_text(kind, apart)}: "
        yield _near_fact(pane, text + "with a smaller delta it is in the next window", row, "delta", apart)
    if ended:
        yield from _next_in_it(pane, name, int(pane.rows[0]), "delta")


def _next_in_it(pane: KeyPane, name: str, origin: int, rule: str) -> Iterator[Fact]:
    if pane.cause_row is not None:
        apart = pane.values.distance(name, pane.cause_row, origin)
        amount = amount_text(pane.values.column(name).type, apart)
        text = f"with a {rule} of {amount} or more {pane.values.name(pane.cause_row)} is in it, too"
        yield _near_fact(pane, text, pane.cause_row, rule, apart)


def _near_fact(pane: KeyPane, text: str, row: int, rule: str, apart: Amount) -> Fact:
    return Fact("near", text, pane.values.pos(row), rule, {"distance": exact_text(apart)})


def _near_count(pane: KeyPane, policy: Count | Changing, ended: bool) -> Iterator[Fact]:
    if ended and pane.next_row is not None:
        row = pane.next_row
        text = f"{pane.values.name(row)} is next in line: with one more row allowed it is in it, too"
        yield Fact("near", text, pane.values.pos(row), "count")
    elif not isinstance(policy, Changing) and not ended:
        missing = policy.n - len(pane.rows)
        yield Fact(
            "near", f"it holds {len(pane.rows):,} of {policy.n:,} rows", None, "count", {"missing": str(missing)}
        )


def _near_clock(pane: KeyPane, _policy: Policy, _ended: bool) -> Iterator[Fact]:
    values, order = pane.values, pane.panes.sequences.order[0]
    last = int(pane.rows[-1])
    yield Fact("near", f"its last row is at {values.text(order, last)}", values.pos(last), "time")
    if pane.next_row is not None:
        apart = values.distance(order, pane.next_row, last)
        kind = values.column(order).type
        text = f"the next row of its key is {amount_text(kind, apart)} after its last row, {values.name(pane.next_row)}"
        yield _near_fact(pane, text, pane.next_row, "time", apart)


_NEAR: Final[Mapping[str, Callable[[KeyPane, Any, bool], Iterator[Fact]]]] = {
    "gap": _near_gap, "delta": _near_delta, "count": _near_count,
    "time": _near_clock, "calendar": _near_clock, "cron": _near_clock,
}  # fmt: skip
"""By the name of a policy; of others nothing comes close."""
