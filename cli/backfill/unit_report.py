"""What is written about single units: the note that one is done, and in the state why one has failed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...conf.ranges.units import Unit
from ...windowing.errors import WincliError
from ...writers.state.state import State
from ..console.counts import count_of
from ..console.messages import Messages
from ..console.row_accounts import WORDS, sum_rejected
from ..job.context import RunContext, now
from ..request.fingerprint import UnitSummary

STALE = "the state before it is not the one that it began from"
REDO = "redo was requested"
"""Reasons to run a unit again that units after it may have, too."""
_REASON = "why the unit before runs again"


def report_unit(record: UnitSummary, messages: Messages) -> None:
    """Write the note that one unit is done: its rows, windows, rejects and held rows."""
    rows, windows = record.stages[0].counts["rows_in"], record.stages[-1].windows
    rejected = sum_rejected([stage.counts["rejected"] for stage in record.stages])
    held = sum(stage.counts["held"] for stage in record.stages)
    words = [
        f"{count_of(rows, 'row')} in",
        f"{count_of(windows, 'window')} out",
        f"{sum(rejected.values()):,} rejected",
    ]
    words += [f"{held:,} {WORDS['held']}"] if held else []
    messages.note(
        f"{record.label}: {', '.join(words)}",
        unit=record.label,
        rows_in=rows,
        windows_out=windows,
        rejected=rejected,
        held=held,
    )


def note_of_unit(context: RunContext, text: str, **fields: Any) -> None:
    """Write a note of a backfill; where units run again one after the other for one reason, only that of the first.

    The others are details: the reason is a correction before them, or what the user asked for.
    """
    reason = fields.get("why")
    is_repeated = reason in (STALE, REDO) and context.announced.get(_REASON) == reason
    context.announced[_REASON] = reason
    (context.messages.detail if is_repeated else context.messages.note)(text, **fields)


@contextmanager
def recording_failure(state: State, unit: Unit, context: RunContext) -> Iterator[None]:
    """Record in the state why a unit failed, for ``wincli status``, and raise the error again."""
    try:
        yield
    except WincliError as error:
        state.fail(unit.label, context.messages.clean(error.what), now())
        raise
