"""What calls of operators need besides rows and panes, and what they come to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...columns.arrays import Ints, Mask
from ...kinds.context import WindowContext
from ...kinds.signals import Signals
from ...sequences.sequence import Sequences
from .scenes import PaneColumns


@dataclass(slots=True)
class OperatorOutcome:
    """What the calls of operators have come to, for n rows of K keys; complete once all tables have been read.

    ``shown``: bool (n,), the rows that a pane has shown.
    ``held``: bool (n,), the rows that are in a window.
    ``first``: int64 (K,), the first row of the window that each key has at the end.
    ``panes``: int64 (K,), how many panes were emitted.
    ``signals``: numbers of the signals that emitted a pane.
    ``saved``: what each operator has saved; None where there is none.
    ``asked``: bool (K,), the keys that were evicted because their operator asked for it.
    """

    shown: Mask
    held: Mask
    first: Ints
    panes: Ints
    signals: set[int]
    saved: list[str | None]
    asked: Mask


def no_outcome(sequences: Sequences) -> OperatorOutcome:
    """Return the outcome before the first call."""
    rows, keys = len(sequences), len(sequences.bounds) - 1
    masks = [np.zeros(size, np.bool_) for size in (rows, rows, keys)]
    first = sequences.bounds[:-1].copy()
    return OperatorOutcome(masks[0], masks[1], first, np.zeros(keys, np.int64), set(), [None] * keys, masks[2])


@dataclass(frozen=True, slots=True)
class OperatorRun:
    """What calls of operators need besides rows and panes.

    ``signals``, ``context``: with which the panes were computed.
    ``columns``: as in `windowing.emit.operators.scenes.scene_anew`.
    ``saves``: whether another run restores what the operators leave.
    ``outcome``: takes what the calls come to.
    """

    signals: Signals
    context: WindowContext
    columns: PaneColumns
    saves: bool
    outcome: OperatorOutcome
