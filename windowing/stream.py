"""How a result of wincli is a stream again (semantics section 10)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """How the rows of a result, read back, stand in emission order.

    Sorted by ``order`` (nulls last) they are in the order in which they were emitted: ``_at`` (and ``_at_2`` .. where
    the stage before was ordered by several columns), ``_pos``, ``window``, its keys, its groups. ``at``: the leading
    ones that are order values.
    """

    order: tuple[str, ...]
    at: tuple[str, ...]
