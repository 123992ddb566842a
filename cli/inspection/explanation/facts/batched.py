"""The facts of a pane of a batched window: what changed its rows, and what expires next (semantics section 6)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from .....windowing.language.spec import Batched
from ..windows.panes_of_key import KeyPane
from ..windows.row_values import exact_text
from .fact import Fact
from .retained_rows import changes_since_pane_before, end_fact, fact_of_age, oldest_row


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
