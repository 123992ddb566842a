"""The columns of a result: their names, types and order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pyarrow as pa

from ..columns.sort_keys import is_sortable
from ..errors import ConfigError
from ..ports import StreamInfo

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


# Results known by their columns: a table or a DataFrame has no manifest that says in what order to read it back.


_STAMP = re.compile(r"_(at|tie)(_\d+)?|_turn|_pos")
REJECTED = "_rejected"
"""The column of a result that says of a rejected row why it is, and holds the row; null for the rows of windows."""
_TELLING = ("window", "_at", POS)
"""What a result has besides `MARK`."""


def stream_of_columns(schema: pa.Schema) -> StreamInfo | None:
    """Return how a table with such columns is read as a stream, as its manifest would say (semantics section 10).

    None: it is no result, or one without stream columns. What stands before ``window`` are its keys and groups, and its
    stream columns stand in the order in which they sort, as `windowing.planning.plan.stream_of` has them. Raises
    `ConfigError` for a part of the columns of a result, or other types.
    """
    names = schema.names
    missing = [name for name in _TELLING if name not in names]
    if MARK not in names or len(missing) == len(_TELLING):
        return None
    _check_whole(schema, missing)
    stamps, places = _stamps(names), [name for name in (STEP, ROW) if name in names]
    after = names.index(FIXED[-1]) + 1 if FIXED[-1] in names else 0
    types = [field.type for field in list(schema)[after : after + len(OUTPUTS)]]
    of_events = (*names[after : after + len(OUTPUTS)],) == OUTPUTS and types == [pa.string(), pa.int64()]
    outputs = OUTPUTS if of_events else ()
    own = (*(name for name in FIXED if name in names), *outputs, *stamps, *places, MARK)
    head = [name for name in names[: names.index("window")] if name not in own]
    head = [name for name in head if is_sortable(schema.field(name).type)]
    step, row = ([name] if name in places else [] for name in (STEP, ROW))
    at = tuple(name for name in stamps if name.startswith("_at"))
    return StreamInfo((*stamps, *step, "window", *head, *row), at, own)


def _check_whole(schema: pa.Schema, missing: Sequence[str]) -> None:
    if REJECTED in schema.names:
        do = f"keep the rows where {REJECTED} is null, and leave out the column"
        raise ConfigError(f"the rows with {REJECTED!r} are in no window, so they are none of the next", do)
    if missing:
        what = f"a table with {MARK!r} is a result of wincli, and it lacks its column {missing[0]!r}"
        raise ConfigError(what, f"keep its stream columns, or leave out {MARK!r} and the rows where it is 'only'")
    for name in ("window", POS):
        if not pa.types.is_integer(schema.field(name).type):
            what = f"column {name!r} of a result of wincli is {schema.field(name).type}"
            raise ConfigError(what, "keep its integers, in pandas with dtype_backend='pyarrow'")


def _stamps(names: Sequence[str]) -> list[str]:
    """Return the columns that say when panes came out: those before `MARK`, or any, if a user has moved them."""
    stop = names.index(MARK)
    while stop and names[stop - 1] in (STEP, ROW):
        stop -= 1
    first = stop
    while first and _STAMP.fullmatch(names[first - 1]):
        first -= 1
    found = list(names[first:stop])
    return found if {"_at", POS} <= set(found) else [name for name in names if _STAMP.fullmatch(name)]
