"""Rows of the window before the next one of each key, which the next run still asks for (semantics section 13)."""

from __future__ import annotations

import numpy as np

from ...columns.arrays import Mask
from ...rows.membership import shown
from ...rows.panes import AT_END, Panes
from ...rows.sequence import Sequences
from ...state.window_state import RestoredState


def rows_of_window_before(sequences: Sequences, panes: Panes, restored: RestoredState | None) -> Mask:
    """Return the rows of the last window of each key that has ended, bool (n,).

    ``panes``: all panes, by key and number. Where none has ended here these are the rows that a state has kept.
    """
    ended = np.flatnonzero(panes.cause != AT_END)
    is_last = np.append(panes.key[ended][1:] != panes.key[ended][:-1], True)[: len(ended)]
    out = shown(panes.take(ended[is_last]).membership, len(sequences))
    if restored is None:
        return out
    has_none = np.ones(len(sequences.bounds) - 1, np.bool_)
    has_none[panes.key[ended]] = False
    return out | (restored.row_state.shown & np.repeat(has_none, np.diff(sequences.bounds)))
