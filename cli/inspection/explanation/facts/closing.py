"""What closed a tumbling window, with the numbers that were compared (semantics sections 2, 12 and 13)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from .....windowing.columns.amounts import amounts_in
from .....windowing.columns.arrays import Ints
from .....windowing.columns.numeric import scale_of
from .....windowing.language.calls import Policy
from .....windowing.language.conditions.operands import operand_column
from .....windowing.language.conditions.policies import From, Reaches, When, While
from .....windowing.language.row_policies import Change, Changing, Count, Punct
from ..windows.panes_of_key import CLOCK, KeyPane
from ..windows.row_values import Amount, amount_text, exact_text, scalar_text
from .fact import Fact
from .policy_words import Distance, attribute_of, name_of, reason_of


def closing_fact(pane: KeyPane, policies: Sequence[Policy]) -> Fact:
    """Return what brought a window out. ``policies``: those of its spec."""
    reason, row = pane.closed_by, pane.cause_row
    if reason == "end":
        return Fact("closed", "the end of the data brought it out: it was still open", None, reason)
    if reason == "evicted":
        return Fact("closed", "its key was evicted, and its rows with it", None, reason)
    if reason in CLOCK:
        return _closed_by_clock(pane)
    if row is None:
        return Fact("closed", f"a mark behind {_mark_row(pane)} ended it", None, reason)
    policy = next(each for each in policies if reason_of(each) == reason)
    return _CLOSED[name_of(policy)](pane, policy, row)


def _mark_row(pane: KeyPane) -> str:
    """Return what a mark stands behind."""
    at = pane.cause - len(pane.panes.sequences)
    names = pane.panes.marks.rows.schema.names
    if names:
        return f"the row at {scalar_text(pane.panes.marks.rows.column(names[0])[at])}"
    return f"arrival position {int(pane.panes.marks.pos[at])}"


def _closed_by_clock(pane: KeyPane) -> Fact:
    row, reason = pane.cause_row, pane.closed_by
    end = pane.text("_at" if "_at" in pane.panes.head.column_names else "window_end")
    if row is None:
        text = f"the clock reached {end}, where it ends; its rows are from {pane.text('window_start')}"
        return Fact("closed", text, None, reason, {"end": end})
    text = f"{pane.values.name(row)} is behind the end of its interval ({reason})"
    return Fact("closed", text, pane.values.pos(row), reason, {"end": end})


def _closed_by_count(pane: KeyPane, policy: Count | Changing, row: int) -> Fact:
    amount = _changing_amount(pane, policy, int(pane.rows[0])) if isinstance(policy, Changing) else policy.n
    held = len(pane.rows)
    says = "" if amount is None else f"; count is {amount}"
    text = f"{pane.values.name(row)} was its row number {held:,}{says}"
    return Fact("closed", text, pane.values.pos(row), "count", {"rows": str(held)})


def _closed_by_delta(pane: KeyPane, policy: Distance, row: int) -> Fact:
    first = int(pane.rows[0])
    return _too_far(pane, policy, row, first, "the window's first row")


def _closed_by_gap(pane: KeyPane, policy: Distance, row: int) -> Fact:
    return _too_far(pane, policy, row, int(pane.rows[-1]), "the row before it")


def _too_far(pane: KeyPane, policy: Distance, row: int, other: int, what: str) -> Fact:
    name, word = attribute_of(policy), reason_of(policy)
    values, kind = pane.values, pane.values.column(name).type
    apart = values.distance(name, row, other)
    limit = _changing_amount(pane, policy, other) if isinstance(policy, Changing) else policy.amount
    how = "after" if pa.types.is_temporal(kind) else "above"
    text = f"{_value_of(pane, name, row)} is {amount_text(kind, apart)} {how} {what}, {_value_of(pane, name, other)}"
    text += f"; {word} is {amount_text(kind, limit)}" if limit is not None else f"; the {word} is that of this window"
    numbers = {"distance": exact_text(apart), **({} if limit is None else {"limit": exact_text(limit)})}
    return Fact("closed", text, values.pos(row), word, numbers)


def _value_of(pane: KeyPane, name: str, row: int) -> str:
    """Return a row with the value that is compared; where that orders the rows it names the row."""
    values = pane.values
    if pane.panes.sequences.order[:1] == (name,):
        return values.text(name, row)
    return f"{name} {values.text(name, row)} of {values.name(row)}"


def _changing_amount(pane: KeyPane, policy: Changing, row: int) -> Amount | None:
    """Return the amount that a row says, in seconds or as a number, exact; None where the window before decides it."""
    if policy.looks_at_window_before:
        return None
    amounts = pane.values.column(operand_column(policy.amount)).slice(row, 1)
    if policy.attribute is None:
        return Fraction(str(amounts[0].as_py()))
    kind = pane.values.column(policy.attribute).type
    found, per_second = amounts_in(kind, amounts)[0], scale_of(kind).per_second
    return float(found) if per_second is None else Fraction(int(found)) / per_second


def _closed_by_when(pane: KeyPane, policy: When, row: int) -> Fact:
    return _by_row(pane, f"{policy.condition} is true for {pane.values.name(row)}, which opens the next window", row)


def _closed_by_while(pane: KeyPane, policy: While, row: int) -> Fact:
    return _by_row(pane, f"{policy.condition} is not true for {pane.values.name(row)}", row)


def _closed_by_from(pane: KeyPane, policy: From, row: int) -> Fact:
    return _by_row(pane, f"{policy.until} is true for {pane.values.name(row)}, its last row", row)


def _closed_by_punct(pane: KeyPane, policy: Punct, row: int) -> Fact:
    return _by_row(pane, f"{policy.column} is true for {pane.values.name(row)}, its last row", row)


def _by_row(pane: KeyPane, text: str, row: int) -> Fact:
    return Fact("closed", text, pane.values.pos(row), pane.closed_by)


def _closed_by_change(pane: KeyPane, policy: Change, row: int) -> Fact:
    values, last = pane.values, int(pane.rows[-1])
    changes = [
        f"{operand} goes from {values.text(name, last)} to {values.text(name, row)}"
        for operand, name in ((each, operand_column(each)) for each in policy.columns)
        if not _same(pane, name, last, row)
    ]
    return _by_row(pane, f"in {values.name(row)} {' and '.join(changes)}", row)


def _same(pane: KeyPane, name: str, one: int, other: int) -> bool:
    column = pane.values.column(name)
    a, b = column[one], column[other]
    if not a.is_valid or not b.is_valid:
        return bool(a.is_valid == b.is_valid)
    return bool(pc.equal(a, b).as_py())


def _closed_by_reaches(pane: KeyPane, policy: Reaches, row: int) -> Fact:
    now, was = _reached(pane, policy, pane.rows), _reached(pane, policy, pane.rows[:-1])
    what = str(policy).removeprefix("reaches(").rpartition(", ")[0]
    limit = exact_text(policy.amount)
    before = f", and {was} before it" if len(pane.rows) > 1 else ""
    text = f"with {pane.values.name(row)} {what} is {now}{before}; it closes at {limit}"
    return Fact("closed", text, pane.values.pos(row), "reaches", {"reached": now, "limit": limit})


def _reached(pane: KeyPane, policy: Reaches, rows: Ints) -> str:
    """Return the aggregate of ``reaches`` over rows as text."""
    if policy.argument is None:
        return str(len(rows))
    column = pane.values.column(operand_column(policy.argument)).take(pa.array(rows))
    if policy.function == "range":
        ends = pc.min_max(column)
        pair = pa.array([ends["max"].as_py(), ends["min"].as_py()], column.type)
        return str(pc.subtract(pair[0], pair[1]))
    found = {"sum": pc.sum, "min": pc.min, "max": pc.max, "count": pc.count}[policy.function](column)
    return scalar_text(found)


_CLOSED: Final[Mapping[str, Callable[[KeyPane, Any, int], Fact]]] = {
    "count": _closed_by_count, "delta": _closed_by_delta, "gap": _closed_by_gap, "change": _closed_by_change,
    "when": _closed_by_when, "while": _closed_by_while, "from": _closed_by_from, "punct": _closed_by_punct,
    "reaches": _closed_by_reaches,
}  # fmt: skip
"""By the name of the policy that a row made close the window."""
