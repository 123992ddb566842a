"""The facts of a pane of a window that keeps rows: its oldest row, the age of a row, and what changed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .....windowing.columns.arrays import combined
from ....console.amounts import count_of
from ..windows.panes_of_key import KeyPane
from ..windows.row_values import Amount, amount_text, exact_text
from .fact import Fact


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
