"""The messages at the end of a backfill."""

from __future__ import annotations

from typing import Any

from ...conf.ranges.units import Unit, compact
from ..console.counts import count_of, reason_counts
from ..console.messages import Messages
from ..console.row_accounts import sum_rejected
from ..request.fingerprint import R
from .range_run import BackfillOutcome


def report_backfill(
    outcome: BackfillOutcome[R], output: str, has_state: bool, seconds: float, messages: Messages
) -> None:
    """Write notes on skipped and missing units and on how far a correction reached, and the closing summary.

    ``output``: the output as the user wrote it. ``seconds``: the time of the whole backfill.
    """
    if outcome.skipped:
        labels = compact(outcome.skipped)
        messages.note(f"already done with the same input: {labels}", skipped=_labels(outcome.skipped))
    if outcome.gaps:
        messages.note(f"no input, passed over: {compact(outcome.gaps)}", gaps=_labels(outcome.gaps))
    if outcome.reached and has_state:
        stays = "stays as it was" if len(outcome.unaffected) == 1 else "stay as they were"
        beyond = f"{compact(outcome.unaffected)} {stays}" if outcome.unaffected else "no unit was done after it"
        messages.note(f"the correction reached {outcome.reached.label}; {beyond}", reached=outcome.reached.label)
    fields = _fields(outcome)
    if not outcome.done:
        messages.summary(f"nothing to do -> {output}", **fields, output=output)
        return
    words = [
        f"{count_of(len(outcome.done), 'unit')} done" + (f" ({len(outcome.rerun):,} again)" if outcome.rerun else "")
    ]
    words += [f"{len(outcome.skipped):,} skipped"] if outcome.skipped else []
    words += [count_of(len(outcome.gaps), "gap")] if outcome.gaps else []
    words += [f"{count_of(fields['rows_in'], 'row')} in", f"{count_of(fields['windows_out'], 'window')} out"]
    lost = fields["rejected"]
    words += [f"{sum(lost.values()):,} rejected" + (f" ({reason_counts(lost)})" if lost else "")]
    words += [f"{seconds:.1f} s", f"{count_of(round(fields['rows_in'] / seconds), 'row')}/s"]
    messages.summary(f"{', '.join(words)} -> {output}", **fields, seconds=round(seconds, 3), output=output)


def _fields(outcome: BackfillOutcome[R]) -> dict[str, Any]:
    """Return sums over the units that ran: rows of their first stages, windows of their last, rejects of all stages."""
    return {
        "units": [record.label for record in outcome.done],
        "again": _labels(outcome.rerun),
        "skipped": _labels(outcome.skipped),
        "gaps": _labels(outcome.gaps),
        "reached": outcome.reached.label if outcome.reached else None,
        "rows_in": sum(record.stages[0].counts["rows_in"] for record in outcome.done),
        "windows_out": sum(record.stages[-1].windows for record in outcome.done),
        "rejected": sum_rejected([stage.counts["rejected"] for record in outcome.done for stage in record.stages]),
    }


def _labels(units: tuple[Unit, ...]) -> list[str]:
    return [unit.label for unit in units]
