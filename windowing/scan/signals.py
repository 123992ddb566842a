"""What comes to sequences from outside: window marks, and advances of the watermark (semantics sections 2 and 5)."""

from __future__ import annotations

from dataclasses import dataclass

from ..clock.watermark import Watermarks
from ..kinds.eviction.evictions import Evictions
from ..sequences.marks import Marks


@dataclass(frozen=True, slots=True)
class Signals:
    """Signals in their total order. ``marks``: where each stands; `windowing.panes.panes.Panes.cause` counts them on
    from the rows. ``watermarks``: they are advances of the watermark, and not window marks. ``evictions``: of keys;
    None where none is ever evicted, or `windowing.scan.scan.scan` is to decide it, of all keys that there are.
    """

    marks: Marks
    watermarks: Watermarks | None = None
    evictions: Evictions | None = None

    def __len__(self) -> int:
        return len(self.marks)


def window_marks(marks: Marks, evictions: Evictions | None = None) -> Signals:
    """Signals that are window marks, which stand in order; and what was decided of keys."""
    return Signals(marks, None, evictions)


def watermark_signals(watermarks: Watermarks) -> Signals:
    """Signals that are advances of the watermark, in order."""
    return Signals(watermarks.marks, watermarks)
