"""What goes on behind a cut: between runs, units, batches, slices and segments of a key (semantics section 7).

A checkpoint is the contents of all windows and what is needed to go on with the rows behind it. `one_table` turns a
carry into the one table of the library and back, `state_tables` its window state into the tables of a state's folder.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from ..clock.watermark import Belief, Watermarks
from ..columns.arrays import ClockValue
from ..rows.panes import ContinuedWindow
from .window_state import WindowState


@dataclass(frozen=True, slots=True)
class Registers:
    """How far rows have come, over all keys.

    ``rows``: number of rows so far, those that were rejected among them: the arrival position of the next one.
    ``clock``: the largest value of the clock, in measures of the clock column; None: no row yet, or no clock.
    ``watermark``: the watermark, as a reading; None: no row yet, or no event time.
    ``position``: one row with the largest order values; None: no row yet, or no order column.
    ``advances``: the watermark advances that panes to come may still need; None: no row yet, or no event time.
    ``windows``: what is known of the windows of a table (`known_windows`); None: no run yet, or windows of no table.
    ``belief``: what is believed of event time, where rows may be ahead of theirs (``--max-ahead``); None: nothing yet.
    """

    rows: int = 0
    clock: ClockValue | None = None
    watermark: ClockValue | None = None
    position: pa.Table | None = None
    advances: Watermarks | None = None
    windows: pa.Table | None = None
    belief: Belief | None = None

    @property
    def plain(self) -> dict[str, Any]:
        """What no table of a state holds, as plain JSON values."""
        told = {"clock": self.clock, "watermark": self.watermark}
        return told if self.belief is None else told | {"belief": asdict(self.belief)}


@dataclass(frozen=True, slots=True)
class Carry:
    """What the rows before a cut leave to those behind it.

    ``registers``: what concerns all keys.
    ``state``: the window state of the keys; None: no key yet.
    ``next_rows``: int64 (K,), nullable, of the keys of ``state``: the arrival position of the key's next row, where
        keys count their own rows; None: they do not.
    ``continued``: the window that the only row of ``state`` stands for; None: rows stand for themselves.
    """

    registers: Registers = Registers()
    state: WindowState | None = field(default=None, repr=False)
    next_rows: pa.Array | None = None
    continued: ContinuedWindow | None = None
