"""What can be asked of a window besides its spec, its key, its order and its aggregates (design section 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

AtEnd = Literal["flush", "drop", "hold"]
Empty = Literal["skip", "mark", "row"]
Emit = Literal["aggregates", "rows", "entered", "left"]


@dataclass(frozen=True, slots=True)
class SortKey:
    """A column that the rows of a pane are sorted by, nulls last either way."""

    name: str
    descending: bool


def sort_key(text: str, columns: Sequence[str]) -> SortKey:
    """Read ``COL``, ``COL asc`` or ``COL desc``. The whole name of a column wins."""
    name, _, way = text.rpartition(" ")
    if text in columns or not name.strip() or way.lower() not in {"asc", "desc"}:
        return SortKey(text, False)
    return SortKey(name.strip(), way.lower() == "desc")


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run that change what its windows are or what comes out of them; names as on the command line.

    ``origin``, ``lag`` and ``min_gap`` are in seconds. ``sort_by``: columns, each with `` asc`` or `` desc`` behind it
    if need be. ``event_time``: None for the only time column. ``operator``: ``module:Class``. ``plain``: without stream
    columns and mark-only rows. ``max_rows``: how many rows windows that overlap may give, where they give
    rows; None: any number.
    """

    at_end: AtEnd = "flush"
    empty: Empty = "skip"
    origin: Fraction = Fraction(0)
    partial: bool = False
    group_by: tuple[str, ...] = ()
    emit: Emit = "aggregates"
    sort_by: tuple[str, ...] = ()
    event_time: str | None = None
    lag: Fraction = Fraction(0)
    min_gap: Fraction = Fraction(0)
    emit_evicted: bool = False
    operator: str | None = None
    plain: bool = False
    max_rows: int | None = None
