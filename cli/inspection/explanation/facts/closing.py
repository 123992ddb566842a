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
from .....windowing.language.conditions.operands import Operand, operand_column
from .....windowing.language.conditions.policies import From, Reaches, When, While
from .....windowing.language.row_policies import Change, Changing, Count, Punct
from ..windows.panes_of_key import CLOCK, KeyPane
from ..windows.row_values import Amount, amount_text, apart_of, exact_text, scalar_text
from .fact import Fact
from .policy_words import Distance, attribute_of, name_of, reason_of


def closing_fact(pane: KeyPane, policy: Policy | None) -> Fact:
    """Return what brought a window out. ``policy``: as `closing_policy` returns it."""
    reason, row = pane.closed_by, pane.cause_row
    if reason == "end":
        return Fact("closed", "the end of the data brought it out: it was still open", None, reason)
    if reason == "evicted":
        return Fact("closed", "its key was evicted, and its rows with it", None, reason)
    if reason in CLOCK:
        return _closed_by_clock(pane)
    if row is None:
        return Fact("closed", f"a mark behind {_mark_row(pane)} ended it", None, reason)
    assert policy is not None
    return _CLOSED[name_of(policy)](pane, policy, row)


def closing_policy(pane: KeyPane, policies: Sequence[Policy]) -> Policy | None:
    """Return the policy that ended a window; None: none did.

    Of several with the close reason of the window, such as two of ``delta``, it is the first that ends it at this row.
    """
    alike = [each for each in policies if reason_of(each) == pane.closed_by]
    row = pane.cause_row
    if len(alike) < 2 or row is None or pane.closed_by in CLOCK:
        return next(iter(alike), None)
    return next((each for each in alike if _ENDS[name_of(each)](pane, each, row)), alike[0])


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
    amount = _count(pane, policy)
    held = len(pane.rows)
    says = "" if amount is None else f"; count is {amount_text(pa.int64(), amount)}"
    text = f"{pane.values.name(row)} was its row number {held:,}{says}"
    return Fact("closed", text, pane.values.pos(row), "count", {"rows": str(held)})


def _count(pane: KeyPane, policy: Count | Changing) -> Amount | None:
    """Return how many rows a window may hold; None where the window before decides it."""
    return _changing_amount(pane, policy, int(pane.rows[0])) if isinstance(policy, Changing) else Fraction(policy.n)


def _is_full(pane: KeyPane, policy: Count | Changing) -> bool:
    amount = _count(pane, policy)
    return amount is not None and len(pane.rows) + 1 > amount


def _closed_by_delta(pane: KeyPane, policy: Distance, row: int) -> Fact:
    first = int(pane.rows[0])
    return _too_far(pane, policy, row, first, "the window's first row")


def _closed_by_gap(pane: KeyPane, policy: Distance, row: int) -> Fact:
    return _too_far(pane, policy, row, int(pane.rows[-1]), "the row before it")


def _too_far(pane: KeyPane, policy: Distance, row: int, other: int, what: str) -> Fact:
    name, word = attribute_of(policy), reason_of(policy)
    values, kind = pane.values, pane.values.column(name).type
    apart = values.distance(name, row, other)
    limit = _limit(pane, policy, other)
    how = "after" if pa.types.is_temporal(kind) else "above"
    text = f"{_value_of(pane, name, row)} is {amount_text(kind, apart)} {how} {what}, {_value_of(pane, name, other)}"
    known = f"the {word} follows from the window before" if limit is None else f"{word} is {amount_text(kind, limit)}"
    text += f"; {known}"
    numbers = {"distance": exact_text(apart), **({} if limit is None else {"limit": exact_text(limit)})}
    return Fact("closed", text, values.pos(row), word, numbers)


def _is_too_far(pane: KeyPane, policy: Distance, row: int, other: int) -> bool:
    limit = _limit(pane, policy, other)
    return limit is not None and pane.values.distance(attribute_of(policy), row, other) > limit


def _limit(pane: KeyPane, policy: Distance, other: int) -> Amount | None:
    """Return how far rows of a window may be apart; None where the window before decides it."""
    return _changing_amount(pane, policy, other) if isinstance(policy, Changing) else policy.amount


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


def _is_true(pane: KeyPane, operand: Operand | None, row: int) -> bool:
    return operand is not None and pane.values.column(operand_column(operand))[row].as_py() is True


def _closed_by_change(pane: KeyPane, policy: Change, row: int) -> Fact:
    return _by_row(pane, f"in {pane.values.name(row)} {' and '.join(_changes(pane, policy, row))}", row)


def _changes(pane: KeyPane, policy: Change, row: int) -> list[str]:
    """Return what is distinct in a row from the last row of the window, in words."""
    values, last = pane.values, int(pane.rows[-1])
    return [
        f"{operand} goes from {values.text(name, last)} to {values.text(name, row)}"
        for operand, name in ((each, operand_column(each)) for each in policy.columns)
        if not _same(pane, name, last, row)
    ]


def _same(pane: KeyPane, name: str, one: int, other: int) -> bool:
    column = pane.values.column(name)
    a, b = column[one], column[other]
    if not a.is_valid or not b.is_valid:
        return bool(a.is_valid == b.is_valid)
    return bool(pc.equal(a, b).as_py())


def _closed_by_reaches(pane: KeyPane, policy: Reaches, row: int) -> Fact:
    now, before = _reached(pane, policy, pane.rows), _reached(pane, policy, pane.rows[:-1])
    what = str(policy).removeprefix("reaches(").rpartition(", ")[0]
    was = f", and {_text(pane, policy, before)} before it" if len(pane.rows) > 1 else ""
    limit = _text(pane, policy, policy.amount)
    text = f"with {pane.values.name(row)} {what} is {_text(pane, policy, now)}{was}; it closes at {limit}"
    numbers = {"limit": exact_text(policy.amount), **({} if now is None else {"reached": exact_text(now)})}
    return Fact("closed", text, pane.values.pos(row), "reaches", numbers)


def _text(pane: KeyPane, policy: Reaches, amount: Amount | None) -> str:
    """Return a value of the aggregate as text; the range of times is in seconds."""
    if amount is None:
        return "-"
    if policy.argument is None or policy.function != "range":
        return amount_text(pa.float64(), amount)
    return amount_text(pane.values.column(operand_column(policy.argument)).type, amount)


def _reached(pane: KeyPane, policy: Reaches, rows: Ints) -> Amount | None:
    """Return the aggregate of ``reaches`` over rows, the range of times in seconds; None: of no value."""
    if policy.argument is None:
        return Fraction(len(rows))
    column = pane.values.column(operand_column(policy.argument)).take(pa.array(rows))
    if policy.function == "range":
        ends = pc.min_max(column)
        pair = pa.concat_arrays([pa.repeat(ends[name], 1) for name in ("max", "min")])
        return apart_of(pair) if ends["max"].is_valid else None
    found = {"sum": pc.sum, "min": pc.min, "max": pc.max, "count": pc.count}[policy.function](column).as_py()
    return found if found is None or isinstance(found, float) else Fraction(found)


_CLOSED: Final[Mapping[str, Callable[[KeyPane, Any, int], Fact]]] = {
    "count": _closed_by_count, "delta": _closed_by_delta, "gap": _closed_by_gap, "change": _closed_by_change,
    "when": _closed_by_when, "while": _closed_by_while, "from": _closed_by_from, "punct": _closed_by_punct,
    "reaches": _closed_by_reaches,
}  # fmt: skip
"""By the name of the policy that a row made close the window."""

_ENDS: Final[Mapping[str, Callable[[KeyPane, Any, int], bool]]] = {
    "count": lambda pane, policy, _: _is_full(pane, policy),
    "delta": lambda pane, policy, row: _is_too_far(pane, policy, row, int(pane.rows[0])),
    "gap": lambda pane, policy, row: _is_too_far(pane, policy, row, int(pane.rows[-1])),
    "change": lambda pane, policy, row: bool(_changes(pane, policy, row)),
    "punct": lambda pane, policy, row: _is_true(pane, policy.column, row),
    "reaches": lambda pane, policy, _: (_reached(pane, policy, pane.rows) or 0) >= policy.amount,
}
"""Whether a row makes a policy close the window, by the name of the policy, of those that a window may have twice."""
