"""What closed a tumbling window, with the numbers that were compared (semantics sections 2, 12 and 13)."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
import pyarrow.compute as pc

from .....windowing.columns.amounts import amounts_in
from .....windowing.columns.arrays import Ints, combined
from .....windowing.columns.numeric import scale_of
from .....windowing.language.calls import Policy
from .....windowing.language.conditions.operands import operand_column
from .....windowing.language.conditions.policies import From, Reaches, When, While
from .....windowing.language.row_policies import Change, Changing, Count, Delta, Gap, Punct
from ..windows.panes_of_key import CLOCK
from .fact import Fact
from .row_values import Amount, amount_text, exact_text, scalar_text
from .told_window import Told, attribute_of, kind_of_policy, word_of


def closing_fact(told: Told) -> Fact:
    """Return what brought a window out."""
    reason = told.closed_by
    if reason == "end":
        return Fact("closed", "the end of the data brought it out: it was still open", None, reason)
    if reason == "evicted":
        return Fact("closed", "its key was evicted, and its rows with it", None, reason)
    policy = next((each for each in told.policies if word_of(each) == reason), None)
    if reason in CLOCK:
        return _closed_by_clock(told, reason)
    if isinstance(policy, Punct) and policy.column is None:
        return Fact("closed", f"a mark behind {_mark_row(told)} ended it", None, reason)
    row = told.cause
    assert policy is not None
    assert row is not None
    return _CLOSED[kind_of_policy(policy)](told, policy, row)


def _mark_row(told: Told) -> str:
    """Return what a mark stands behind."""
    at = int(told.panes.panes.cause[told.at]) - len(told.panes.sequences)
    names = told.panes.marks.rows.schema.names
    if names:
        return f"the row at {scalar_text(told.panes.marks.rows.column(names[0])[at])}"
    return f"arrival position {int(told.panes.marks.pos[at])}"


def _closed_by_clock(told: Told, reason: str) -> Fact:
    head = told.panes.head
    end = scalar_text(head.column("_at")[told.at]) if "_at" in head.column_names else _bound(told, "window_end")
    text = f"the clock reached {end}, where it ends; its rows are from {_bound(told, 'window_start')}"
    if told.cause is not None:
        text = f"{told.values.name(told.cause)} is behind the end of its interval ({reason})"
    return Fact("closed", text, None if told.cause is None else told.values.pos(told.cause), reason, {"end": end})


def _bound(told: Told, name: str) -> str:
    return scalar_text(combined(told.panes.head.column(name))[told.at])


def _closed_by_count(told: Told, policy: Policy, row: int) -> Fact:
    amount = policy.n if isinstance(policy, Count) else _amount(told, policy, int(told.rows[0]))
    held = len(told.rows)
    says = "" if amount is None else f"; count is {amount}"
    text = f"{told.values.name(row)} was its row number {held:,}{says}"
    return Fact("closed", text, told.values.pos(row), "count", {"rows": str(held)})


def _closed_by_delta(told: Told, policy: Policy, row: int) -> Fact:
    first = int(told.rows[0])
    return _too_far(told, policy, row, first, "the window's first row")


def _closed_by_gap(told: Told, policy: Policy, row: int) -> Fact:
    return _too_far(told, policy, row, int(told.rows[-1]), "the row before it")


def _too_far(told: Told, policy: Policy, row: int, other: int, what: str) -> Fact:
    name, word = attribute_of(policy), word_of(policy)
    values, kind = told.values, told.values.column(attribute_of(policy)).type
    apart = values.distance(name, row, other)
    limit = _amount(told, policy, other)
    how = "after" if pa.types.is_temporal(kind) else "above"
    text = f"{_value_of(told, name, row)} is {amount_text(kind, apart)} {how} {what}, {_value_of(told, name, other)}"
    text += f"; {word} is {amount_text(kind, limit)}" if limit is not None else f"; the {word} is that of this window"
    numbers = {"distance": exact_text(apart), **({} if limit is None else {"limit": exact_text(limit)})}
    return Fact("closed", text, values.pos(row), word, numbers)


def _value_of(told: Told, name: str, row: int) -> str:
    """Return a row with the value that is compared; where that orders the rows it names the row."""
    values = told.values
    if told.panes.sequences.order[:1] == (name,):
        return values.text(name, row)
    return f"{name} {values.text(name, row)} of {values.name(row)}"


def _amount(told: Told, policy: Policy, row: int) -> Amount | None:
    """Return the amount of a policy, in seconds or as a number, exact; None where the window before decides it."""
    if isinstance(policy, Delta | Gap):
        return policy.amount
    assert isinstance(policy, Changing)
    if policy.looks_at_window_before:
        return None
    amounts = told.values.column(operand_column(policy.amount)).slice(row, 1)
    if policy.attribute is None:
        return Fraction(str(amounts[0].as_py()))
    kind = told.values.column(policy.attribute).type
    found, per_second = amounts_in(kind, amounts)[0], scale_of(kind).per_second
    return float(found) if per_second is None else Fraction(int(found)) / per_second


def _closed_by_condition(told: Told, policy: Policy, row: int) -> Fact:
    values = told.values
    match policy:
        case When():
            text = f"{policy.condition} is true for {values.name(row)}, which opens the next window"
        case While():
            text = f"{policy.condition} is not true for {values.name(row)}"
        case From():
            text = f"{policy.until} is true for {values.name(row)}, its last row"
        case _:
            assert isinstance(policy, Punct)
            text = f"{policy.column} is true for {values.name(row)}, its last row"
    return Fact("closed", text, values.pos(row), word_of(policy))


def _closed_by_change(told: Told, policy: Policy, row: int) -> Fact:
    assert isinstance(policy, Change)
    values, last = told.values, int(told.rows[-1])
    changes = [
        f"{operand} goes from {values.text(name, last)} to {values.text(name, row)}"
        for operand, name in ((each, operand_column(each)) for each in policy.columns)
        if not _same(told, name, last, row)
    ]
    return Fact("closed", f"in {values.name(row)} {' and '.join(changes)}", values.pos(row), "change")


def _same(told: Told, name: str, one: int, other: int) -> bool:
    column = told.values.column(name)
    a, b = column[one], column[other]
    if not a.is_valid or not b.is_valid:
        return bool(a.is_valid == b.is_valid)
    return bool(pc.equal(a, b).as_py())


def _closed_by_reaches(told: Told, policy: Policy, row: int) -> Fact:
    assert isinstance(policy, Reaches)
    now, was = _reached(told, policy, told.rows), _reached(told, policy, told.rows[:-1])
    what = str(policy).removeprefix("reaches(").rpartition(", ")[0]
    limit = exact_text(policy.amount)
    before = f", and {was} before it" if len(told.rows) > 1 else ""
    text = f"with {told.values.name(row)} {what} is {now}{before}; it closes at {limit}"
    return Fact("closed", text, told.values.pos(row), "reaches", {"reached": now, "limit": limit})


def _reached(told: Told, policy: Reaches, rows: Ints) -> str:
    """Return the aggregate of ``reaches`` over rows as text."""
    if policy.argument is None:
        return str(len(rows))
    column = told.values.column(operand_column(policy.argument)).take(pa.array(rows))
    if policy.function == "range":
        ends = pc.min_max(column)
        pair = pa.array([ends["max"].as_py(), ends["min"].as_py()], column.type)
        return str(pc.subtract(pair[0], pair[1]))
    found = {"sum": pc.sum, "min": pc.min, "max": pc.max, "count": pc.count}[policy.function](column)
    return scalar_text(found)


_CLOSED = {
    "count": _closed_by_count, "delta": _closed_by_delta, "gap": _closed_by_gap, "change": _closed_by_change,
    "when": _closed_by_condition, "while": _closed_by_condition, "from": _closed_by_condition,
    "punct": _closed_by_condition, "reaches": _closed_by_reaches,
}  # fmt: skip
