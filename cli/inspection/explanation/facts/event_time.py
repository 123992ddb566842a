"""The facts of a pane of event time: the watermark, late outputs, and rows next to its bounds (semantics section 5)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow.compute as pc

from .....windowing.columns.arrays import combined
from .....windowing.columns.numeric import measures
from .....windowing.language.spec import TimeInterval
from .....windowing.panes.panes import BY_TICK
from ....console.amounts import count_of
from ..windows.panes_of_key import KeyPane, pane_at
from ..windows.row_values import Amount, amount_text, exact_text
from .fact import Fact


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
    """Yield the outputs of the same pane before and after this one, each with the rows that it added."""
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
    """Yield the rows of the key whose event times are next to the bounds, outside of them."""
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
