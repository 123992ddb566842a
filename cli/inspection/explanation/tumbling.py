"""What opened and closed a tumbling window, with the numbers, and what came close (semantics sections 2, 12 and 13)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa
import pyarrow.compute as pc

from ....windowing.columns.amounts import amounts_in
from ....windowing.columns.arrays import Ints, combined
from ....windowing.columns.numeric import scale_of
from ....windowing.language.calls import Policy
from ....windowing.language.clock_policies import Calendar, Cron, Time
from ....windowing.language.conditions.operands import operand_column
from ....windowing.language.conditions.policies import AnyOf, From, Reaches, When, While
from ....windowing.language.row_policies import Change, Changing, Count, Delta, Gap, Punct
from ....windowing.language.spec import Tumbling
from .explanation import Fact
from .panes_of_key import KeyPanes
from .row_values import Amount, RowValues, amount_text, exact_text, scalar_text

BEFORE = frozenset({"delta", "gap", "change", "when", "while"})
"""Close reasons of windows that end before a row, which may open the next."""
AFTER = frozenset({"count", "until", "reaches", "punct"})
"""Close reasons of windows that end with a row, or at a mark behind it."""
CLOCK = frozenset({"time", "calendar", "cron"})
"""Close reasons of windows that end at an instant of the clock."""


@dataclass(frozen=True, slots=True)
class Told:
    """A tumbling window, as far as it is to be told.

    ``panes``: the panes of its key.
    ``at``: which of these it is.
    ``rows``: its rows among those of the key.
    ``before``: why the window before it was closed; None: there is none.
    """

    panes: KeyPanes
    at: int
    rows: Ints
    before: str | None

    @property
    def values(self) -> RowValues:
        """The rows of the key."""
        return RowValues(self.panes.sequences)

    @property
    def closed_by(self) -> str:
        """Why it came out."""
        return self.panes.closed_by(self.at)

    @property
    def cause(self) -> int | None:
        """The row that brought it out; None: no row did."""
        cause = int(self.panes.panes.cause[self.at])
        return cause if 0 <= cause < len(self.panes.sequences) else None

    @property
    def next(self) -> int | None:
        """The row of the key behind its last row; None: there is none."""
        after = int(self.rows[-1]) + 1 if len(self.rows) else len(self.panes.sequences)
        return after if after < len(self.panes.sequences) else None

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The rules of the spec."""
        spec = self.panes.plan.spec
        assert isinstance(spec, Tumbling)
        return spec.policy.policies if isinstance(spec.policy, AnyOf) else (spec.policy,)


def tumbling_facts(told: Told) -> Iterator[Fact]:
    """Yield what opened and closed a window, then what came close."""
    if not len(told.rows):
        yield Fact("other", "no row of this key is in it; --empty writes such windows")
        return
    yield _opened(told)
    yield _closed(told)
    for policy in told.policies:
        yield from _near(told, policy)


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


def _closed(told: Told) -> Fact:
    reason = told.closed_by
    if reason == "end":
        return Fact("closed", "the end of the data brought it out: it was still open", None, reason)
    if reason == "evicted":
        return Fact("closed", "its key was evicted, and its rows with it", None, reason)
    policy = next((each for each in told.policies if _word(each) == reason), None)
    if reason in CLOCK:
        return _closed_by_clock(told, reason)
    if isinstance(policy, Punct) and policy.column is None:
        return Fact("closed", f"a mark behind {_mark_row(told)} ended it", None, reason)
    row = told.cause
    assert policy is not None
    assert row is not None
    return _CLOSED[_class(policy)](told, policy, row)


def _word(policy: Policy) -> str:
    """Return the close reason of a policy."""
    match policy:
        case From():
            return "until"
        case Changing():
            return policy.word
        case _:
            return type(policy).__name__.lower() if not isinstance(policy, Calendar) else "time"


def _class(policy: Policy) -> str:
    return policy.word if isinstance(policy, Changing) else type(policy).__name__.lower()


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
    name, word = _attribute(policy), _word(policy)
    values, kind = told.values, told.values.column(_attribute(policy)).type
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


def _attribute(policy: Policy) -> str:
    assert isinstance(policy, Delta | Gap | Changing)
    assert policy.attribute is not None
    return policy.attribute


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
    return Fact("closed", text, values.pos(row), _word(policy))


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


def _near(told: Told, policy: Policy) -> Iterator[Fact]:
    """Yield what came close for one rule: within the window, and the row next in line."""
    match _class(policy):
        case "gap":
            yield from _near_gap(told, policy)
        case "delta":
            yield from _near_delta(told, policy)
        case "count":
            yield from _near_count(told, policy)
        case _ if isinstance(policy, Time | Calendar | Cron):
            yield from _near_clock(told)


def _near_gap(told: Told, policy: Policy) -> Iterator[Fact]:
    name = _attribute(policy)
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
    name, first = _attribute(policy), int(told.rows[0])
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
