"""When rows enter and leave a window, as its panes and their causes imply.

Where rows enter one by one, a pane has a *place* among the rows of its key: rows before it have done their steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...columns.arrays import Ints, Mask
from ...kinds.context import WindowContext
from ...kinds.row_steps import NEVER
from ...kinds.signals import Signals
from ...panes.membership import memberships_of
from ...panes.panes import Panes
from ...planning.plan import Plan
from ...sequences.sequence import Sequences

_LEAST, _MOST = 16, 4096  # numbers whose lists are read at a time; doubled as long as one block follows another


@dataclass(slots=True)
class Lists:
    """Lists of items by number.

    ``items``: int64 (I,) or, of pairs, (I, 2), one list after the other.
    ``first``: int64 (numbers + 1,), the bounds of the lists.

    The lists of a block of numbers are kept as Python's, because a slice of an array takes ten times as long.
    """

    items: Ints
    first: Ints
    _low: int = field(default=0, init=False)
    _high: int = field(default=0, init=False)
    _items: list[Any] = field(default_factory=list, init=False)
    _bounds: list[int] = field(default_factory=list, init=False)

    def at(self, number: int) -> list[Any]:
        """Return the list of a number."""
        if not self._low <= number < self._high:
            self._read(number)
        place = number - self._low
        return self._items[self._bounds[place] : self._bounds[place + 1]]

    def _read(self, number: int) -> None:
        size = min(2 * (self._high - self._low), _MOST) if number == self._high else _LEAST
        self._low, self._high = number, min(number + max(size, _LEAST), len(self.first) - 1)
        bounds = self.first[number : self._high + 1]
        self._items = self.items[bounds[0] : bounds[-1]].tolist()
        self._bounds = (bounds - bounds[0]).tolist()


@dataclass(frozen=True, slots=True)
class RowLifetimes:
    """When the n rows enter and leave, and the P panes between them.

    ``order``: int64 (P,), the panes by key and number.
    ``place``: int64 (P,), the place of each pane.
    ``stepping``: bool (n,), the rows with a step of their own, at which they enter.
    ``driven``: by row, the rows that leave at its step.
    ``entering``: by pane, the rows that enter at it.
    ``outdated``: by pane, the rows that leave before it.
    ``leaving``: by pane, the rows that leave after it.
    ``drops_unseen``: whether rows that a pane no longer shows have left by then.
    ``shown``: by row, the runs of panes that show it, each as its first pane and the pane behind it.
    """

    order: Ints
    place: Ints
    stepping: Mask
    driven: Lists
    entering: Lists
    outdated: Lists
    leaving: Lists
    drops_unseen: bool
    shown: Lists


def row_lifetimes(
    plan: Plan, sequences: Sequences, signals: Signals, panes: Panes, context: WindowContext
) -> RowLifetimes:
    """Return when the rows of a window enter and leave, in this run: restored rows that are in entered before it.

    ``panes``: those that are emitted, with causes as the kind of the window returned them. ``context``: of that window.
    """
    n = len(sequences)
    lives = memberships_of(panes.membership)
    order = np.lexsort([panes.number, panes.key])
    steps = plan.kind.row_steps(sequences, signals, panes, lives, context)
    stepping, entering = steps.stepping, steps.entering
    if context.restored is not None:
        stepping = stepping & context.restored.is_new(sequences.bounds)
        entering = np.where(context.restored.row_state.last, NEVER, entering)
    outdated = np.full(n, NEVER) if steps.outdated is None else steps.outdated
    lists = (
        _lists_by_number(steps.driven, n),
        _lists_by_number(entering, len(panes)),
        _lists_by_number(outdated, len(panes)),
        _lists_by_number(steps.leaving, len(panes)),
    )
    by_row = _lists_by_number(lives.row, n)
    runs = np.stack([lives.enter[by_row.items], lives.leave[by_row.items]], axis=1)
    return RowLifetimes(order, steps.place, stepping, *lists, steps.drops_unseen, Lists(runs, by_row.first))


def _lists_by_number(numbers: Ints, count: int) -> Lists:
    """List the places of numbers below ``count``; `windowing.kinds.row_steps.NEVER` and others are in no list."""
    items = np.flatnonzero((numbers >= 0) & (numbers < count))
    items = items[np.argsort(numbers[items], kind="stable")]
    return Lists(items, np.searchsorted(numbers[items], np.arange(count + 1)))
