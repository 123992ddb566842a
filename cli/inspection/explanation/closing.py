"""What closed a tumbling window, with the numbers that were compared (semantics sections 2, 12 and 13)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ....windowing.columns.arrays import Ints, amounts_in, scale_of
from ....windowing.language.calls import Policy
from ....windowing.language.conditions import From, Operand, Reaches, When, While, operand_column
from ....windowing.language.parser import POLICIES
from ....windowing.language.row_policies import Change, Changing, Count, Delta, Gap, Punct
from .panes_of_key import CLOCK, Amount, KeyPane, amount_text, apart_of, exact_text, scalar_text

# The policies of tumbling windows in words: their names, their close reasons and the columns that they compare.


Distance: TypeAlias = Delta | Gap | Changing
"""A policy that compares how far values of a column are apart."""


def name_of(policy: Policy) -> str:
    """Return the name of a policy, also where its amount is one that rows say."""
    return policy.word if isinstance(policy, Changing) else type(policy).__name__.lower()


def reason_of(policy: Policy) -> str:
    """Return the close reason of a policy."""
    return POLICIES[name_of(policy)].reason


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
        at, marks = pane.cause - len(pane.panes.sequences), pane.panes.marks
        mark = f"arrival position {int(marks.pos[at])}"
        if names := marks.rows.schema.names:
            mark = f"the row at {scalar_text(marks.rows.column(names[0])[at])}"
        return Fact("closed", f"a mark behind {mark} ended it", None, reason)
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


# What came close to another window: what nearly ended it, and the row next in line.


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
