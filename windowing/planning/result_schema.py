"""The columns of a result: their names, types and order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from ..errors import ConfigError

POS = "_pos"
TURN = "_turn"
STEP = "_step"
ROW = "_row"
MARK = "_mark"
FIXED = ("window", "window_start", "window_end", "closed_by")
OUTPUTS = ("timing", "index")
"""The columns that event-time panes have besides the fixed ones."""
LABELS = frozenset({"closed_by", "timing", MARK})
"""The columns of few texts, which say what a row is."""


def numbered(name: str, index: int) -> str:
    """Return the name of a numbered column, from index 0: ``_at``, ``_at_2``, ``_at_3``, ..."""
    return name if index == 0 else f"{name}_{index + 1}"


def head_fields(keys: Iterable[pa.Field], bounds: pa.DataType, outputs: bool) -> list[pa.Field]:
    """Return the columns that identify a pane. ``keys``: the columns of the key, then those of the groups."""
    fields = [field.with_nullable(True) for field in keys]
    fields += [pa.field("window", pa.int64()), pa.field("window_start", bounds), pa.field("window_end", bounds)]
    fields += [pa.field("closed_by", pa.string())]
    return fields + ([pa.field("timing", pa.string()), pa.field("index", pa.int64())] if outputs else [])


def result_schema(
    head: Sequence[pa.Field], values: Sequence[pa.Field], stamps: Sequence[pa.Field], places: Sequence[str], plain: bool
) -> pa.Schema:
    """Return the schema of a result. ``places``: the columns that number the rows of a pane.

    Raises `ConfigError` where two columns would have one name.
    """
    fields = [*head, *values]
    if not plain:
        fields += [*stamps, *(pa.field(name, pa.int64()) for name in places), pa.field(MARK, pa.string())]
    names = [field.name for field in fields]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        hint = "rename the column of the input, or name aggregates apart with --agg NAME=..."
        raise ConfigError(f"the result would have two columns {twice[0]!r}", hint)
    return pa.schema([field.remove_metadata() for field in fields])
