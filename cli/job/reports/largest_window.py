"""The note on a window that needs more memory than the size of slices grants a task."""

from __future__ import annotations

from ....windowing.engine.window_memory import LargestWindow
from ...console.counts import count_of, size
from ..context import RunContext


def announce_window(context: RunContext, found: LargestWindow) -> None:
    """Write the note, once in a command."""
    if context.is_first("largest window"):
        context.messages.note(window_words(found), rows=found.rows, bytes=found.nbytes)


def window_words(found: LargestWindow) -> str:
    """Return a window and the memory that it takes in words."""
    first, *others = found.calls
    calls = first if not others else f"{', '.join(found.calls[:-1])} and {found.calls[-1]}"
    need = "need" if others else "needs"
    about = f"about {count_of(found.rows, 'row')} and take about {size(found.nbytes)} of memory in one task"
    return f"{calls} {need} all rows of a window at once: the largest may have {about}"
