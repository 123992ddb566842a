"""How a result of wincli is a stream again (semantics section 10)."""

from __future__ import annotations

from dataclasses import dataclass

OWN = ("window", "window_start", "window_end", "closed_by", "_at", "_pos", "_mark")
"""What is a stage's own in every result, and in those that do not say."""


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """How the rows of a result, read back, stand in emission order.

    Sorted by ``order`` (nulls last) they are in the order in which they were emitted: ``_at`` (and ``_at_2`` .. where
    the stage before was ordered by several columns), ``_pos``, ``window``, its keys, its groups. ``at``: the leading
    ones that are order values. ``own``: the columns that say what the stage did, and are none of its rows, keys or
    aggregates.
    """

    order: tuple[str, ...]
    at: tuple[str, ...]
    own: tuple[str, ...] = OWN
