"""The messages at the end of a backfill, and of any run on a state: what stays as it was, and what is dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ...conf.ranges.units import Unit, compact, kind_of, unit_at
from ...writers.state.state import State
from ...writers.state.unit_record import UnitRecord
from ..console.counts import count_of, reason_counts
from ..console.messages import Messages
from ..console.row_accounts import sum_rejected
from ..request.fingerprint import R
from .late_rows import unit_of
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


@dataclass(frozen=True, slots=True)
class Kept:
    """What a state held before a run.

    ``runs``: label to the run of each unit.
    ``data``: the labels of the units with their window state.
    """

    runs: dict[str, str]
    data: frozenset[str]

    @classmethod
    def of(cls, state: State) -> Kept:
        """Return what a state holds now."""
        with_data = frozenset(record.label for record in state.records if state.has_data(record.label))
        return cls({record.label: record.run for record in state.records}, with_data)


def report_kept(before: Kept, state: State, messages: Messages) -> None:
    """Write notes on units whose window state is dropped, and on units that keep older numbers of windows."""
    ran = {record.label for record in state.records if before.runs.get(record.label) != record.run}
    dropped = [
        record for record in state.records if record.label in before.data | ran and not state.has_data(record.label)
    ]
    if dropped and dropped[-1].start:  # a plain run is never run again by itself
        kept = next(record for record in state.records if record.ordinal > dropped[-1].ordinal)
        messages.note(
            f"the window state of {compact(map(unit_of, dropped))} is no longer kept: a correction can begin with "
            f"{_after(kept)} or later, or with all from {state.records[0].label} on; a higher --keep keeps more",
            dropped=[record.label for record in dropped],
        )
    for one, other in pairwise(state.records):
        if one.label in ran and other.label not in ran and not other.counts_on(one):
            how = _renumbering(other, state.records)
            messages.note(f"windows of {other.label} and later keep their numbers{how}", unit=other.label)


def _renumbering(first: UnitRecord, records: Sequence[UnitRecord]) -> str:
    """Say how the windows of a unit and those after it get new numbers; nothing where a redo does not give them.

    Where a later unit has lent late rows to a unit before, a redo takes them back first, and then moves them again.
    """
    earlier = {record.label for record in records if record.ordinal < first.ordinal}
    is_lent = any(not earlier.isdisjoint(record.lent) for record in records if record.ordinal >= first.ordinal)
    if is_lent or not first.start:
        return ""
    return f"; --start {first.label} --end {_after(records[-1])} --redo numbers them anew"


def report_rejected(records: Sequence[UnitRecord], in_range: Sequence[Unit], messages: Messages) -> None:
    """Write a note on rows that earlier units have rejected as late: ``--late redo`` takes up rows of units that run.

    It is about units of the range, and those before it where the newest of them has rejected late rows.
    """
    first, last = in_range[0].ordinal, in_range[-1].ordinal
    earlier = [record for record in records if record.ordinal < first]
    switched = bool(earlier) and earlier[-1].job["late"] == "reject"
    found = [
        record
        for record in records
        if record.job["late"] == "reject" and _late(record) and (switched or first <= record.ordinal <= last)
    ]
    if not found:
        return
    rows = sum(map(_late, found))
    messages.note(
        f"{count_of(rows, 'row')} that {compact(map(unit_of, found))} rejected as late under --late reject "
        f"{'stays' if rows == 1 else 'stay'} rejected; --start {found[0].label} --end {_after(found[-1])} --late redo "
        "--redo takes up what belongs to earlier units",
        late=rows,
        units=[record.label for record in found],
    )


def _late(record: UnitRecord) -> int:
    """Return how many rows of its input a unit has rejected as late."""
    return int(record.stages[0].counts["rejected"].get("late", 0))


def _after(record: UnitRecord) -> str:
    """Return the label of the day, hour or week after a unit."""
    kind = kind_of(record.label, record.ordinal)
    assert kind is not None
    return unit_at(record.ordinal + 1, kind).label
