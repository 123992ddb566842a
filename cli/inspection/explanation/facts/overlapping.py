"""What brought out a pane of a window that keeps rows: sliding, event-time and batched (semantics sections 3, 5, 6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from .....windowing.columns.arrays import Ints, combined
from .....windowing.columns.numeric import measures
from .....windowing.language.conditions.policies import When
from .....windowing.language.row_policies import Count, Delta
from .....windowing.language.spec import Batched, Sliding, TimeInterval
from .....windowing.panes.panes import BY_TICK
from .....windowing.sequences.attribute_distance import have_risen, measures_and_amount
from ....console.counts import count_of
from ..windows.panes_of_key import KeyPanes
from .fact import Fact
from .row_values import Amount, RowValues, amount_text, exact_text, scalar_text


@dataclass(frozen=True, slots=True)
class ToldPane:
    """A pane of a window that keeps rows.

    ``panes``: the panes of its key.
    ``at``: which of these it is.
    ``rows``: its rows among those of the key.
    """

    panes: KeyPanes
    at: int
    rows: Ints

    @property
    def values(self) -> RowValues:
        """The rows of the key."""
        return RowValues(self.panes.sequences)

    @property
    def closed_by(self) -> str:
        """Why it came out."""
        return self.panes.closed_by(self.at)

    @property
    def cause(self) -> int:
        """What brought it out, as `windowing.panes.panes.Panes.cause` numbers it."""
        return int(self.panes.panes.cause[self.at])

    @property
    def row(self) -> int | None:
        """The row that brought it out; None: no row of its key did."""
        return self.cause if 0 <= self.cause < len(self.panes.sequences) else None

    @property
    def instant(self) -> str:
        """The instant of the clock that brought it out, as text."""
        return self.text("_at")

    def text(self, name: str) -> str:
        """Return a column of the result as text; ``-`` where it has no such column."""
        head = self.panes.head
        return scalar_text(combined(head.column(name))[self.at]) if name in head.column_names else "-"


def overlapping_facts(told: ToldPane) -> Iterator[Fact]:
    """Yield what brought out a pane, what changed since the pane before, and what came close."""
    match told.panes.plan.spec:
        case Sliding() as spec:
            yield from _oldest(told)
            yield _triggered(told, spec)
            yield from _evicted(told, spec)
        case TimeInterval():
            yield from _completed(told)
        case Batched() as spec:
            yield from _oldest(told)
            yield _changed(told, spec)
            yield from _expiring(told, spec)
    if not isinstance(told.panes.plan.spec, TimeInterval):
        yield from _since_pane_before(told)


def _end() -> Fact:
    return Fact("closed", "the end of the data brought it out", None, "end")


def _triggered(told: ToldPane, spec: Sliding) -> Fact:
    trigger, row, values = spec.trigger, told.row, told.values
    if told.closed_by == "end":
        return _end()
    if row is None:
        return Fact("closed", f"the tick of {trigger} at {told.instant} brought it out", None, told.closed_by)
    pos = values.pos(row)
    match trigger:
        case Count():
            return Fact("closed", f"{values.name(row)} brought it out: {_inserted(trigger)}", pos, told.closed_by)
        case When():
            return Fact("closed", f"{trigger.condition} is true for {values.name(row)}", pos, told.closed_by)
        case Delta():
            return _by_delta(told, trigger, row)
    return Fact("closed", f"{values.name(row)} brought it out", pos, told.closed_by)


def _inserted(trigger: Count) -> str:
    return "each row does" if trigger.n == 1 else f"it is insertion number {trigger.n:,} since the trigger before"


def _by_delta(told: ToldPane, trigger: Delta, row: int) -> Fact:
    base, name, values = _baseline(told, trigger, row), trigger.attribute, told.values
    kind, apart = values.column(name).type, values.distance(name, row, base)
    text = f"{values.name(row)} is {amount_text(kind, apart)} above {values.name(base)}, at which it was triggered last"
    text += f" or began; the trigger is {amount_text(kind, trigger.amount)}, and shows the window before that row"
    numbers = {"distance": exact_text(apart), "limit": exact_text(trigger.amount)}
    return Fact("closed", text, values.pos(row), told.closed_by, numbers)


def _baseline(told: ToldPane, trigger: Delta, row: int) -> int:
    """Return the row of the trigger before ``row``, suppressed ones included, or the first row of the key."""
    values, amount = measures_and_amount(told.panes.sequences, trigger.attribute, trigger.amount)
    base = 0
    while True:
        fired = np.flatnonzero(have_risen(values[base + 1 : row], values[base], amount))
        if not len(fired):
            return base
        base += 1 + int(fired[0])


def _oldest(told: ToldPane) -> Iterator[Fact]:
    """Yield the oldest row that is in it."""
    if len(told.rows):
        oldest = int(told.rows[0])
        yield Fact("opened", f"{told.values.name(oldest)} is its oldest row", told.values.pos(oldest))


def _evicted(told: ToldPane, spec: Sliding) -> Iterator[Fact]:
    """Yield how close the oldest row is to being evicted, and the newest that has been."""
    if not len(told.rows):
        return
    name = spec.evict.attribute if isinstance(spec.evict, Delta) else next(iter(told.panes.sequences.order), None)
    measured = None if isinstance(spec.evict, Count) else name
    gone = np.setdiff1d(np.arange(int(told.rows[-1]) + 1), told.rows)
    if len(gone):
        text = f"{told.values.name(int(gone[-1]))} is the newest that {spec.evict} has evicted"
        yield _aged(told, measured, int(gone[-1]), text)
    if measured is not None:
        oldest = int(told.rows[0])
        yield _aged(told, measured, oldest, f"{told.values.name(oldest)} is the oldest that {spec.evict} has kept")


def _aged(told: ToldPane, name: str | None, row: int, text: str) -> Fact:
    """Tell a row with how far what brought the pane out is above it."""
    pos = told.values.pos(row)
    if name is None:
        return Fact("near", text, pos)
    apart = _above(told, name, row)
    if apart is None:
        return Fact("near", text, pos)
    since = f": it is {amount_text(told.values.column(name).type, apart)} below what brought the pane out"
    return Fact("near", text + since, pos, None, {"distance": exact_text(apart)})


def _above(told: ToldPane, name: str, row: int) -> Amount | None:
    """Return by how much the row, or the instant, that brought a pane out is above a row; None: neither did."""
    if told.row is not None:
        return told.values.distance(name, told.row, row)
    head, order = told.panes.head, told.panes.sequences.order
    if "_at" not in head.column_names or order[:1] != (name,):
        return None
    instant = combined(head.column("_at"))[told.at]
    return told.values.before(instant, name, row) if instant.is_valid else None


def _since_pane_before(told: ToldPane) -> Iterator[Fact]:
    """Say which rows came in and which went since the pane before it of its key."""
    panes = told.panes
    if told.at == 0 or panes.plan.options.emit != "aggregates":
        return
    before = panes.rows_of(told.at - 1)
    came, went = np.setdiff1d(told.rows, before), np.setdiff1d(before, told.rows)
    text = f"since the pane before it, {count_of(len(came), 'row')} came in and {count_of(len(went), 'row')} went"
    numbers = {"came": str(len(came)), "went": str(len(went))}
    yield Fact("other", text, None, None, numbers)


def _changed(told: ToldPane, spec: Batched) -> Fact:
    values, row = told.values, told.row
    match told.closed_by:
        case "end":
            return _end()
        case "expiry":
            what = f"rows expired at {told.instant}: they were {exact_text(Fraction(spec.within or 0))} s old"
        case "batch" if spec.within is not None:
            what = f"the tick of every at {told.instant} changed what is visible"
        case "batch":
            what = f"{_name(told, row)} filled a batch of {spec.every} rows"
        case _:
            what = f"{_name(told, row)} came in"
    return Fact("closed", what, None if row is None else values.pos(row), told.closed_by)


def _expiring(told: ToldPane, spec: Batched) -> Iterator[Fact]:
    """Yield how old the oldest row is that is visible: it expires next, at ``within``."""
    order = next(iter(told.panes.sequences.order), None)
    if spec.within is None or order is None or not len(told.rows):
        return
    oldest = int(told.rows[0])
    text = f"{told.values.name(oldest)} expires next, at an age of {exact_text(spec.within)} s"
    yield _aged(told, order, oldest, text)


def _name(told: ToldPane, row: int | None) -> str:
    return "a row" if row is None else told.values.name(row)


def _completed(told: ToldPane) -> Iterator[Fact]:
    """Yield what the watermark did, the other outputs of the same pane, late rows, and the rows next to its bounds."""
    start, end = told.text("window_start"), told.text("window_end")
    text = f"it holds the rows of its key from {start} to before {end}"
    yield Fact("opened", text, None, None)
    yield _by_watermark(told, end)
    yield from _outputs(told)
    yield from _beside(told, start, end)


def _by_watermark(told: ToldPane, end: str) -> Fact:
    if told.closed_by == "end":
        return Fact("closed", "the end of the data sent the watermark to infinity", None, "end")
    marks, at = told.panes.marks, told.cause - len(told.panes.sequences)
    lag = told.panes.plan.options.lag
    behind = f", {exact_text(lag)} s behind it" if lag else ""
    if told.cause == BY_TICK or not 0 <= at < len(marks):
        return Fact("closed", f"the watermark reached {end}", None, told.closed_by)
    pos = int(marks.pos[at])
    again = ": it had been complete, and got rows since" if told.text("index") != "0" else ""
    text = f"the row with arrival position {pos} raised the watermark{behind} to {end} or later{again}"
    return Fact("closed", text, pos, told.closed_by)


def _outputs(told: ToldPane) -> Iterator[Fact]:
    """Yield the outputs of the same pane before and after this one, each with the rows that it added."""
    head = told.panes.head
    starts, mine = combined(head.column("window_start")), combined(head.column("window_start"))[told.at]
    same = [at for at in range(len(starts)) if starts[at].equals(mine)]
    for before, at in zip([None, *same], same, strict=False):
        each = ToldPane(told.panes, at, told.panes.rows_of(at))
        added = each.rows if before is None else np.setdiff1d(each.rows, told.panes.rows_of(before))
        if len(same) > 1 or each.text("timing") == "late":
            yield _output(each, at == told.at, None if before is None else len(added))


def _output(each: ToldPane, is_this: bool, added: int | None) -> Fact:
    """Tell an output of a pane. ``added``: how many rows came since the output before; None: it is the first."""
    which = "this output" if is_this else f"output {each.text('index')}, window {each.text('window')},"
    late = ", late" if each.text("timing") == "late" else ""
    since = "" if added is None else f"; {count_of(added, 'row')} came since the one before"
    return Fact("late", f"{which} has {count_of(len(each.rows), 'row')}{late}{since}", None, each.closed_by)


def _beside(told: ToldPane, start: str, end: str) -> Iterator[Fact]:
    """Yield the rows of the key whose event times are next to the bounds, outside of them."""
    name = told.panes.plan.options.event_time
    assert name is not None
    times = measures(told.values.column(name))
    if not len(told.rows):
        return
    inside = times[told.rows]
    below, above = np.flatnonzero(times < inside.min()), np.flatnonzero(times > inside.max())
    if len(below):
        row = int(below[np.argmax(times[below])])
        apart = told.values.before(combined(told.panes.head.column("window_start"))[told.at], name, row)
        yield _next_to(told, name, row, apart, f"before it starts, {start}")
    if len(above):
        row = int(above[np.argmin(times[above])])
        apart = -told.values.before(combined(told.panes.head.column("window_end"))[told.at], name, row)
        yield _next_to(told, name, row, apart, f"at or after its end, {end}")


def _next_to(told: ToldPane, name: str, row: int, apart: Amount, where: str) -> Fact:
    kind = told.values.column(name).type
    text = f"the nearest row {where}, has {name} {told.values.text(name, row)}: {amount_text(kind, apart)} away"
    return Fact("near", text, told.values.pos(row), None, {"distance": exact_text(apart)})
