"""What came close to another window: what nearly ended it, and the row next in line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from .....windowing.language.calls import Policy
from .....windowing.language.row_policies import Changing, Count
from ..windows.panes_of_key import KeyPane
from ..windows.row_values import Amount, amount_text, exact_text
from .fact import Fact
from .policy_words import Distance, attribute_of, name_of


def near_facts(pane: KeyPane, policy: Policy, ended: bool) -> Iterator[Fact]:
    """Yield what came close for one policy: within the window, and the row next in line.

    ``ended``: whether this policy ended the window.
    """
    facts = _NEAR.get(name_of(policy))
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
    """Yield how large a distance from the row ``origin`` would have taken in the row that ended the window."""
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
