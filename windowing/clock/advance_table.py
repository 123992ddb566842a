"""Watermark advances as a table, for states."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..columns.arrays import combined
from ..sequences.marks import NO_FILE, Marks
from ..sequences.sequence import one_batch
from .watermark import Watermarks

POS, LEVEL = "__pos", "__level"
"""Columns after those that sort rows."""


def advance_table(advances: Watermarks) -> pa.Table:
    """Return advances as a table: the columns that sort rows, arrival positions, levels."""
    rows = advances.marks.rows
    columns = [*rows.columns, pa.array(advances.marks.pos), pa.array(advances.level)]
    return pa.Table.from_arrays(columns, names=[*rows.schema.names, POS, LEVEL])


def advances_of(table: pa.Table) -> Watermarks:
    """Return the advances that `advance_table` describes."""
    pos, level = (combined(table.column(name)).to_numpy() for name in (POS, LEVEL))
    rows = one_batch(table.drop_columns([POS, LEVEL]))
    return Watermarks(Marks(rows, pos, np.full(len(pos), NO_FILE)), level)
