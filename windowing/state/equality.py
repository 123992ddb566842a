"""What of a window state decides the windows to come: two states that are equal in it are followed by the same windows.

A state also counts, of each key, all its rows and all its windows. Most windows are the same whatever these numbers
are: a correction that adds a row or a window early on moves them for ever, and must not run all later units again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import Ints, Mask, combined
from .state_tables import BASELINE, BEGIN, FULL, NEWEST, OPERATOR, POS, RANK, ROWS, WINDOWS

PHASE, FILLED = "__phase", "__filled"
"""What of the number of a key's rows decides panes, in place of `ROWS` and `BEGIN`."""


@dataclass(frozen=True, slots=True)
class DecidingNumbers:
    """Which of the numbers that a state counts decide what comes of it. It pickles.

    ``windows``: whether the number of a key's next window does: something reads the numbers of windows.
    ``ranks``: whether the number of rows before a row does: an aggregate associates by it.
    ``every``, ``held``: the number of a key's rows since its window was reset decides by its remainder by the one, and
        up to the other.
    ``carried``: the columns that hold numbers of windows of earlier stages which decide nothing.
    """

    windows: bool = True
    ranks: bool = True
    every: int = 1
    held: int = 0
    carried: frozenset[str] = frozenset()

    def of_rows(self, rows: pa.Table) -> pa.Table:
        """Return what decides of rows, or of advances of the watermark; of arrival positions only the order does."""
        left_out = {POS, *self.carried, *(() if self.ranks else (RANK,))}
        return rows.select([name for name in rows.column_names if name not in left_out])

    def of_keys(self, keys: pa.Table) -> pa.Table:
        """Return what decides of keys and their key state, without keys that go on as a new key would."""
        rows, begin = (combined(keys.column(name)).to_numpy() for name in (ROWS, BEGIN))
        since = rows - begin
        numbers = {PHASE: since % self.every, FILLED: np.minimum(since, self.held)}
        numbers |= {ROWS: rows} if self.ranks else {}
        numbers |= {WINDOWS: combined(keys.column(WINDOWS)).to_numpy()} if self.windows else {}
        told = keys.drop_columns([ROWS, BEGIN, WINDOWS])
        for name, column in numbers.items():
            told = told.append_column(name, pa.array(column))
        return told.filter(pa.array(_is_known(told, numbers)))


def window_numbers(keys: pa.Table) -> pa.Table:
    """Return the number of the next window of each key that had one."""
    left_out = {ROWS, BEGIN, FULL, BASELINE, OPERATOR, NEWEST}
    told = keys.select([name for name in keys.column_names if name not in left_out])
    return told.filter(pc.greater(told.column(WINDOWS), 0))


def _is_known(keys: pa.Table, numbers: dict[str, Ints]) -> Mask:
    """Return which keys have anything in their key state."""
    known = combined(keys.column(FULL)).to_numpy(zero_copy_only=False).copy()
    for name in (BASELINE, OPERATOR, NEWEST):
        if name in keys.column_names:
            known |= combined(keys.column(name)).is_valid().to_numpy(zero_copy_only=False)
    for column in numbers.values():
        known |= column != 0
    return np.asarray(known, np.bool_)
