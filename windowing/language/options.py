"""The options of a window besides its spec, its key, its order and its aggregates."""

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
    """A column that sorts the rows of a pane, nulls last in both directions.

    ``name``: the column.
    ``descending``: whether the largest value comes first.
    """

    name: str
    descending: bool


def sort_key(text: str, columns: Sequence[str]) -> SortKey:
    """Parse ``COL``, ``COL asc`` or ``COL desc``. A text that is the name of a column as a whole is that column."""
    name, _, direction = text.rpartition(" ")
    if text in columns or not name.strip() or direction.lower() not in {"asc", "desc"}:
        return SortKey(text, False)
    return SortKey(name.strip(), direction.lower() == "desc")


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run that change its windows or their output; names as on the command line.

    ``at_end``: what happens to open windows at the end of the data.
    ``empty``: whether empty ``time`` and ``calendar`` windows are skipped, marked or written.
    ``origin``: the origin of the grid of ticks, in seconds.
    ``partial``: whether sliding windows emit panes before they are full.
    ``group_by``: the group columns.
    ``emit``: what a pane writes: aggregates, its rows, or the rows that entered or left.
    ``sort_by``: columns that sort the rows of a pane, each optionally followed by `` asc`` or `` desc``.
    ``event_time``: the column of event time; None: the only time column.
    ``lag``: how far the watermark stays behind the largest event time, in seconds.
    ``min_gap``: the least rise of the watermark that takes effect, in seconds.
    ``emit_evicted``: whether the windows of evicted keys are emitted.
    ``operator``: ``module:Class`` of a user operator, or None.
    ``plain``: whether stream columns and mark-only rows are left out.
    ``max_rows``: how many rows overlapping windows may write where they emit rows; None: any number.
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
