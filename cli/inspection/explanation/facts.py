"""The facts of a window, by its kind: what opened it, what brought it out, and what came close."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, Literal

import numpy as np
import pyarrow.compute as pc

from ....windowing.columns.arrays import combined, measures
from ....windowing.kinds.row_values import Amount, amount_text, exact_text
from ....windowing.kinds.tumbling.kind import policies_of
from ....windowing.kinds.tumbling.policy import TumblingPolicy
from ....windowing.language.calls import Policy
from ....windowing.language.conditions import OPENERS, AnyOf, From, When, While
from ....windowing.language.row_policies import Changing, Count, Delta, Gap
from ....windowing.language.spec import Batched, Sliding, TimeInterval, Tumbling
from ....windowing.rows.panes import BY_TICK
from ....windowing.rows.sequence import have_risen, measures_and_amount
from ....windowing.support.amounts import count_of
from .panes_of_key import BEFORE, CLOCK, KeyPane, pane_at, scalar_text

# One thing that is known of a window, as a value.


Kind = Literal["opened", "closed", "near", "late", "other"]
"""What a fact says: which row opened the window; what brought it out; what came close; what came late; all else."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that is known of a window.

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
        end = pane.text("_at" if "_at" in pane.panes.head.column_names else "window_end")
        pos = None if row is None else pane.values.pos(row)
        text = f"the clock reached {end}, where it ends; its rows are from {pane.text('window_start')}"
        if row is not None:
            text = f"{pane.values.name(row)} is behind the end of its interval ({reason})"
        return Fact("closed", text, pos, reason, {"end": end})
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


# What came close to another window: what nearly ended it, and the row next in line.


def near_facts(pane: KeyPane, policy: Policy, ended: bool) -> Iterator[Fact]:
    """Yield what came close for one policy: within the window, and the row next in line.

    ``ended``: whether this policy ended the window.
    """
    values = pane.values
    match policy.word if isinstance(policy, Changing) else type(policy).__name__.lower():
        case "gap":
            assert isinstance(policy, Gap | Changing)
            name = _attribute(policy)
            if (widest := values.widest(name, pane.rows)) is not None:
                row, apart = widest
                amount = amount_text(values.column(name).type, apart)
                text = f"the widest gap inside is {amount}, before {values.name(row)}: "
                yield _near_fact(pane, text + "with a smaller one the window ends there", row, "gap", apart)
            if ended:
                yield from _next_in_it(pane, name, int(pane.rows[-1]), "gap")
        case "delta":
            assert isinstance(policy, Delta | Changing)
            name = _attribute(policy)
            if (farthest := values.farthest(name, pane.rows)) is not None:
                row, apart = farthest
                amount = amount_text(values.column(name).type, apart)
                text = f"{values.name(row)} is farthest from the first row, by {amount}: "
                yield _near_fact(pane, text + "with a smaller delta it is in the next window", row, "delta", apart)
            if ended:
                yield from _next_in_it(pane, name, int(pane.rows[0]), "delta")
        case "count":
            if ended and pane.next_row is not None:
                text = f"{values.name(pane.next_row)} is next in line: with one more row allowed it is in it, too"
                yield Fact("near", text, values.pos(pane.next_row), "count")
            elif isinstance(policy, Count) and not ended:
                text = f"it holds {len(pane.rows):,} of {policy.n:,} rows"
                yield Fact("near", text, None, "count", {"missing": str(policy.n - len(pane.rows))})
        case "time" | "calendar" | "cron":
            order, last = pane.panes.sequences.order[0], int(pane.rows[-1])
            yield Fact("near", f"its last row is at {values.text(order, last)}", values.pos(last), "time")
            if pane.next_row is not None:
                apart = values.distance(order, pane.next_row, last)
                amount = amount_text(values.column(order).type, apart)
                text = f"the next row of its key is {amount} after its last row, {values.name(pane.next_row)}"
                yield _near_fact(pane, text, pane.next_row, "time", apart)


def _attribute(policy: Delta | Gap | Changing) -> str:
    assert policy.attribute is not None  # it is None for ``count`` alone
    return policy.attribute


def _next_in_it(pane: KeyPane, name: str, origin: int, rule: str) -> Iterator[Fact]:
    if pane.cause_row is not None:
        apart = pane.values.distance(name, pane.cause_row, origin)
        amount = amount_text(pane.values.column(name).type, apart)
        text = f"with a {rule} of {amount} or more {pane.values.name(pane.cause_row)} is in it, too"
        yield _near_fact(pane, text, pane.cause_row, rule, apart)


def _near_fact(pane: KeyPane, text: str, row: int, rule: str, apart: Amount) -> Fact:
    return Fact("near", text, pane.values.pos(row), rule, {"distance": exact_text(apart)})


# The facts of a tumbling window: what opened and closed it, and what came close (semantics sections 2, 12 and 13).


def tumbling_facts(pane: KeyPane, spec: Tumbling) -> Iterator[Fact]:
    """Yield what opened and closed a window, then what came close."""
    if not len(pane.rows):
        yield Fact("other", "no row of this key is in it; --empty writes such windows")
        return
    policies = spec.policy.policies if isinstance(spec.policy, AnyOf) else (spec.policy,)
    rules = policies_of(spec.policy)
    first, values = int(pane.rows[0]), pane.values
    openers = (policy for policy in policies if isinstance(policy, OPENERS))
    conditions = "".join(f", and {policy.condition} is true for it" for policy in openers)
    text = f"{values.name(first)} opened it{_why_there(pane, policies)}{conditions}"
    yield Fact("opened", text, values.pos(first), pane.before)
    ending = closing_policy(pane, rules)
    yield closing_fact(pane, ending)
    for policy, rule in zip(policies, rules, strict=True):
        yield from near_facts(pane, policy, rule is ending)


def _why_there(pane: KeyPane, policies: Sequence[Policy]) -> str:
    skips = any(isinstance(policy, While | From) for policy in policies)
    if pane.before is None:
        return ": no window of its key came before"
    if pane.before in BEFORE and not skips:
        return f": the same row ended the window before ({pane.before})"
    if pane.before in CLOCK:
        return f": it is the first row after the end of the window before ({pane.before})"
    return f": the window before had ended ({pane.before})"


# The facts of a pane of a window that keeps rows: its oldest row, the age of a row, and what changed.


def end_fact() -> Fact:
    """Return that the end of the data brought a pane out."""
    return Fact("closed", "the end of the data brought it out", None, "end")


def oldest_row(pane: KeyPane) -> Iterator[Fact]:
    """Yield the oldest row that is in it."""
    if len(pane.rows):
        oldest = int(pane.rows[0])
        yield Fact("opened", f"{pane.values.name(oldest)} is its oldest row", pane.values.pos(oldest))


def fact_of_age(pane: KeyPane, name: str | None, row: int, text: str) -> Fact:
    """Return ``text`` with how far what brought the pane out is above a row by column ``name``; None: by none."""
    pos = pane.values.pos(row)
    if name is None:
        return Fact("near", text, pos)
    apart = _above(pane, name, row)
    if apart is None:
        return Fact("near", text, pos)
    since = f": it is {amount_text(pane.values.column(name).type, apart)} below what brought the pane out"
    return Fact("near", text + since, pos, None, {"distance": exact_text(apart)})


def _above(pane: KeyPane, name: str, row: int) -> Amount | None:
    """Return by how much the row, or the instant, that brought a pane out is above a row; None: neither did."""
    if pane.cause_row is not None:
        return pane.values.distance(name, pane.cause_row, row)
    head, order = pane.panes.head, pane.panes.sequences.order
    if "_at" not in head.column_names or order[:1] != (name,):
        return None
    instant = combined(head.column("_at"))[pane.at]
    return pane.values.before(instant, name, row) if instant.is_valid else None


def changes_since_pane_before(pane: KeyPane) -> Iterator[Fact]:
    """Say which rows came in and which went since the pane before it of its key."""
    panes = pane.panes
    if pane.at == 0 or panes.plan.options.emit != "aggregates":
        return
    before = panes.rows_of(pane.at - 1)
    came, went = np.setdiff1d(pane.rows, before), np.setdiff1d(before, pane.rows)
    text = f"since the pane before it, {count_of(len(came), 'row')} came in and {count_of(len(went), 'row')} went"
    numbers = {"came": str(len(came)), "went": str(len(went))}
    yield Fact("other", text, None, None, numbers)


# The facts of a pane of a batched window: what changed its rows, and what expires next (semantics section 6).


def batched_facts(pane: KeyPane, spec: Batched) -> Iterator[Fact]:
    """Yield what brought a pane out, what expires next, and what changed since the pane before."""
    yield from oldest_row(pane)
    yield _changed(pane, spec)
    yield from _expiring(pane, spec)
    yield from changes_since_pane_before(pane)


def _changed(pane: KeyPane, spec: Batched) -> Fact:
    values, row = pane.values, pane.cause_row
    match pane.closed_by:
        case "end":
            return end_fact()
        case "expiry":
            what = f"rows expired at {pane.text('_at')}: they were {exact_text(Fraction(spec.within or 0))} s old"
        case "batch" if spec.within is not None:
            what = f"the tick of every at {pane.text('_at')} changed what is visible"
        case "batch":
            what = f"{_name(pane, row)} filled a batch of {spec.every} rows"
        case _:
            what = f"{_name(pane, row)} came in"
    return Fact("closed", what, None if row is None else values.pos(row), pane.closed_by)


def _expiring(pane: KeyPane, spec: Batched) -> Iterator[Fact]:
    """Yield how old the oldest row is that is visible: it expires next, at ``within``."""
    order = next(iter(pane.panes.sequences.order), None)
    if spec.within is None or order is None or not len(pane.rows):
        return
    oldest = int(pane.rows[0])
    text = f"{pane.values.name(oldest)} expires next, at an age of {exact_text(spec.within)} s"
    yield fact_of_age(pane, order, oldest, text)


def _name(pane: KeyPane, row: int | None) -> str:
    return "a row" if row is None else pane.values.name(row)


# The facts of a pane of event time: the watermark, late outputs, and rows next to its bounds (semantics section 5).


def event_time_facts(pane: KeyPane, _: TimeInterval) -> Iterator[Fact]:
    """Yield what the watermark did, the other outputs of the same pane, late rows, and the rows next to its bounds."""
    start, end = pane.text("window_start"), pane.text("window_end")
    text = f"it holds the rows of its key from {start} to before {end}"
    yield Fact("opened", text, None, None)
    yield _by_watermark(pane, end)
    yield from _outputs(pane)
    yield from _beside(pane, start, end)


def _by_watermark(pane: KeyPane, end: str) -> Fact:
    if pane.closed_by == "end":
        return Fact("closed", "the end of the data sent the watermark to infinity", None, "end")
    marks, at = pane.panes.marks, pane.cause - len(pane.panes.sequences)
    lag = pane.panes.plan.options.lag
    behind = f", {exact_text(lag)} s behind it" if lag else ""
    if pane.cause == BY_TICK or not 0 <= at < len(marks):
        return Fact("closed", f"the watermark reached {end}", None, pane.closed_by)
    pos = int(marks.pos[at])
    again = ": it had been complete, and got rows since" if pane.text("index") != "0" else ""
    text = f"the row with arrival position {pos} raised the watermark{behind} to {end} or later{again}"
    return Fact("closed", text, pos, pane.closed_by)


def _outputs(pane: KeyPane) -> Iterator[Fact]:
    starts = combined(pane.panes.head.column("window_start"))
    same = np.flatnonzero(pc.equal(starts, starts[pane.at])).tolist()
    for before, at in zip([None, *same], same, strict=False):
        each = pane_at(pane.panes, at)
        added = each.rows if before is None else np.setdiff1d(each.rows, pane.panes.rows_of(before))
        if len(same) > 1 or each.text("timing") == "late":
            yield _output(each, at == pane.at, None if before is None else len(added))


def _output(each: KeyPane, is_this: bool, added: int | None) -> Fact:
    """Return an output of a pane in words. ``added``: how many rows came since the output before; None: the first."""
    which = "this output" if is_this else f"output {each.text('index')}, window {each.text('window')},"
    late = ", late" if each.text("timing") == "late" else ""
    since = "" if added is None else f"; {count_of(added, 'row')} came since the one before"
    return Fact("late", f"{which} has {count_of(len(each.rows), 'row')}{late}{since}", None, each.closed_by)


def _beside(pane: KeyPane, start: str, end: str) -> Iterator[Fact]:
    name = pane.panes.plan.options.event_time
    assert name is not None
    times = measures(pane.values.column(name))
    if not len(pane.rows):
        return
    inside = times[pane.rows]
    below, above = np.flatnonzero(times < inside.min()), np.flatnonzero(times > inside.max())
    if len(below):
        row = int(below[np.argmax(times[below])])
        apart = pane.values.before(combined(pane.panes.head.column("window_start"))[pane.at], name, row)
        yield _next_to(pane, name, row, apart, f"before it starts, {start}")
    if len(above):
        row = int(above[np.argmin(times[above])])
        apart = -pane.values.before(combined(pane.panes.head.column("window_end"))[pane.at], name, row)
        yield _next_to(pane, name, row, apart, f"at or after its end, {end}")


def _next_to(pane: KeyPane, name: str, row: int, apart: Amount, where: str) -> Fact:
    kind = pane.values.column(name).type
    text = f"the nearest row {where}, has {name} {pane.values.text(name, row)}: {amount_text(kind, apart)} away"
    return Fact("near", text, pane.values.pos(row), None, {"distance": exact_text(apart)})


# The facts of a pane of a sliding window: what triggered it, and what it evicts (semantics section 3).


def sliding_facts(pane: KeyPane, spec: Sliding) -> Iterator[Fact]:
    """Yield what triggered a pane, what it evicts, and what changed since the pane before."""
    yield from oldest_row(pane)
    yield _triggered(pane, spec)
    yield from _evicted(pane, spec)
    yield from changes_since_pane_before(pane)


def _triggered(pane: KeyPane, spec: Sliding) -> Fact:
    trigger, row, values = spec.trigger, pane.cause_row, pane.values
    if pane.closed_by == "end":
        return end_fact()
    if row is None:
        return Fact("closed", f"the tick of {trigger} at {pane.text('_at')} brought it out", None, pane.closed_by)
    text, numbers = f"{values.name(row)} brought it out", dict[str, str]()
    match trigger:
        case Count(n=n):
            text += ": each row does" if n == 1 else f": it is insertion number {n:,} since the trigger before"
        case When(condition=condition):
            text = f"{condition} is true for {values.name(row)}"
        case Delta(attribute=name, amount=limit):
            base, kind = _baseline(pane, trigger, row), values.column(name).type
            apart = values.distance(name, row, base)
            text = f"{values.name(row)} is {amount_text(kind, apart)} above {values.name(base)}, at which it was "
            text += f"triggered last or began; the trigger is {amount_text(kind, limit)}, and shows the window before "
            text += "that row"
            numbers = {"distance": exact_text(apart), "limit": exact_text(limit)}
    return Fact("closed", text, values.pos(row), pane.closed_by, numbers)


def _baseline(pane: KeyPane, trigger: Delta, row: int) -> int:
    values, amount = measures_and_amount(pane.panes.sequences, trigger.attribute, trigger.amount)
    base = 0
    while True:
        fired = np.flatnonzero(have_risen(values[base + 1 : row], values[base], amount))
        if not len(fired):
            return base
        base += 1 + int(fired[0])


def _evicted(pane: KeyPane, spec: Sliding) -> Iterator[Fact]:
    if not len(pane.rows):
        return
    evict, measured = spec.evict, next(iter(pane.panes.sequences.order), None)
    if isinstance(evict, Count | Delta):  # by the number of rows, or by a column
        measured = evict.attribute if isinstance(evict, Delta) else None
    gone = np.setdiff1d(np.arange(int(pane.rows[-1]) + 1), pane.rows)
    if len(gone):
        text = f"{pane.values.name(int(gone[-1]))} is the newest that {evict} has evicted"
        yield fact_of_age(pane, measured, int(gone[-1]), text)
    if measured is not None:
        oldest = int(pane.rows[0])
        yield fact_of_age(pane, measured, oldest, f"{pane.values.name(oldest)} is the oldest that {evict} has kept")


_FACTS: Final[Mapping[type, Callable[[KeyPane, Any], Iterator[Fact]]]] = {
    Tumbling: tumbling_facts,
    Sliding: sliding_facts,
    TimeInterval: event_time_facts,
    Batched: batched_facts,
}


def facts_of(pane: KeyPane) -> tuple[Fact, ...]:
    """Return what opened a window, what brought it out, what came close, and what else is known of it."""
    spec = pane.panes.plan.spec
    return tuple(_FACTS[type(spec)](pane, spec))
