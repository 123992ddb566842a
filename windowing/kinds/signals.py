"""Signals: events that concern all keys, i.e. window marks and watermark advances (semantics sections 2 and 5)."""

from __future__ import annotations

from dataclasses import dataclass

from ..clock.watermark import Watermarks
from ..kinds.eviction.evictions import Evictions
from ..rows.marks import Marks


@dataclass(frozen=True, slots=True)
class Signals:
    """Signals in their total order.

    ``marks``: their places in the order; `windowing.rows.panes.Panes.cause` numbers them after the rows.
    ``watermarks``: the advances, where the signals are watermark advances; None: they are window marks.
    ``evictions``: partition evictions; None where there are none, or `windowing.scan.scan.scan` is to compute them
        because it has the rows of all keys.
    """

    marks: Marks
    watermarks: Watermarks | None = None
    evictions: Evictions | None = None

    def __len__(self) -> int:
        return len(self.marks)


def window_marks(marks: Marks, evictions: Evictions | None = None) -> Signals:
    """Return window marks, which must be in order, as signals, with the partition evictions."""
    return Signals(marks, None, evictions)


def watermark_signals(watermarks: Watermarks) -> Signals:
    """Return watermark advances, which must be in order, as signals."""
    return Signals(watermarks.marks, watermarks)
