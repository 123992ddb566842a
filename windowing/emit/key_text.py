"""A key as messages name it."""

from __future__ import annotations

import pyarrow as pa

from ..columns.arrays import combined
from ..columns.sort_keys import sort_keys
from ..sequences.sequence import Sequences


def key_text(sequences: Sequences, key: int) -> str:
    """Return `` of key `` and the cells of a key, by its number; nothing where there is no key."""
    if sequences.keys is None:
        return ""
    cells = zip(sequences.keys.column_names, sequences.keys.slice(key, 1).columns, strict=True)
    return " of key " + ", ".join(f"{name}={_cell_text(combined(column))}" for name, column in cells)


def _cell_text(cell: pa.Array) -> str:
    """Return the text of the only value of an array, of any type that can be a key."""
    if pa.types.is_string(cell.type) or pa.types.is_binary(cell.type):
        return repr(cell[0].as_py())
    try:
        return str(cell.cast(pa.string())[0].as_py())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return str(sort_keys(cell)[0])
