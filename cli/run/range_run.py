"""A backfill over a range of units: which units run, in which order, and how far a correction reaches; without Spark.

With a state, units form a chain: each begins from the state that the unit before left. A reprocessed unit makes the
next unit stale, unless it leaves the state that the next unit began from. Every finished unit of the state is checked
for this, so the next backfill, whatever its range, completes a correction that was killed halfway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ...conf.ranges import Unit, compact, kind_of, unit_at
from ...windowing.ports import sum_rejected
from ...windowing.support.amounts import count_of, reason_counts
from ...writers.state.state import State
from ...writers.state.unit_record import UnitRecord
from ..console.messages import Messages, Stopped
from .late_rows import unit_of
from .parallel_units import UnitRunner
from .steps import UnitRange, UnitStep, naming_unit


@dataclass(frozen=True, slots=True)
class BackfillOutcome:
    """The outcome of a backfill; records and units are in ascending order.

    ``done``: the records of all units that ran.
    ``rerun``: the units among them that had been done before.
    ``skipped``: the units of the range that were done before and did not run.
    ``gaps``: the units of the range without input.
    ``reached``: the last unit that a correction ran; None where nothing was corrected.
    ``unaffected``: the finished units after ``reached``, which stay as they were.
    """

    done: tuple[UnitRecord, ...]
    rerun: tuple[Unit, ...]
    skipped: tuple[Unit, ...]
    gaps: tuple[Unit, ...]
    reached: Unit | None
    unaffected: tuple[Unit, ...]


RunUnit = Callable[[UnitStep], Iterable[UnitRecord]]
"""Runs and commits the unit of a step; yields its record last.

The records before it are those of earlier units that were reprocessed, because late rows of the unit belong to them;
each is yielded when it is committed.
"""


def run_backfill(
    units: UnitRange,
    run: RunUnit,
    note: Callable[..., None],
    together: Callable[[Callable[[UnitStep], UnitRecord]], UnitRunner] = UnitRunner,
) -> BackfillOutcome:
    """Run the units of a range that need it, oldest first, and on a state the later units that a correction reaches.

    ``note``: writes a note; one on whether a finished unit runs again has the fields ``unit``, its label, ``runs``, and
    ``why``, in words. ``together``: makes what runs the units, one by one unless none of them needs another. Stops at
    the first unit that fails, with an error that names it; units that are done by then stay done. Raises what the units
    raise, and the problem of a step.
    """
    new_records: dict[int, UnitRecord] = {}
    gaps: list[Unit] = []

    def run_unit(step: UnitStep) -> UnitRecord:
        with naming_unit(step.unit):
            for record in run(step):
                new_records[record.ordinal] = record
        return new_records[step.unit.ordinal]

    def take(step: UnitStep) -> UnitRecord | None:
        if step.note is not None:
            note(step.note, unit=step.label, runs=step.action != "skip", why=step.why)
        if step.problem is not None:
            raise step.problem
        if step.action == "gap":
            gaps.append(step.unit)
        return runner.run(step) if step.action == "run" else None

    try:
        with together(run_unit) as runner:
            units.take_steps(take)
    except BaseException as error:
        if new_records:
            kept = compact(unit_at(ordinal, units.kind) for ordinal in sorted(new_records))
            if isinstance(error, Stopped):
                error.kept = kept
            else:
                note(f"done before that, and kept: {kept}")
        raise
    in_range, known = {unit.ordinal for unit in units.units}, {record.ordinal for record in units.records}
    reached = max((ordinal for ordinal in new_records if ordinal <= max(known, default=-1)), default=None)

    def as_units(ordinals: set[int]) -> tuple[Unit, ...]:
        return tuple(unit_at(ordinal, units.kind) for ordinal in sorted(ordinals))

    return BackfillOutcome(
        tuple(record for _, record in sorted(new_records.items())),
        as_units(new_records.keys() & known),
        as_units(in_range & known - new_records.keys()),
        tuple(gaps),
        None if reached is None else unit_at(reached, units.kind),
        as_units({ordinal for ordinal in known if reached is not None and ordinal > reached}),
    )


# The messages at the end of a backfill, and of any run on a state: what stays as it was, and what is dropped.


def report_backfill(outcome: BackfillOutcome, output: str, has_state: bool, seconds: float, messages: Messages) -> None:
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
    # Sums over the units that ran: rows of their first stages, windows of their last, rejects of all stages.
    fields: dict[str, Any] = {
        "units": [record.label for record in outcome.done],
        "again": _labels(outcome.rerun),
        "skipped": _labels(outcome.skipped),
        "gaps": _labels(outcome.gaps),
        "reached": outcome.reached.label if outcome.reached else None,
        "rows_in": sum(record.rows_in for record in outcome.done),
        "windows_out": sum(record.out for record in outcome.done),
        "rejected": sum_rejected([record.rejected for record in outcome.done]),
    }
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
            # Where a later unit has lent late rows to a unit before, a redo takes them back first, and then moves them
            # again: it does not give new numbers.
            earlier = {record.label for record in state.records if record.ordinal < other.ordinal}
            later = [record for record in state.records if record.ordinal >= other.ordinal]
            is_lent = any(not earlier.isdisjoint(record.lent) for record in later)
            is_mended = other.start and not is_lent
            how = f"; --start {other.label} --end {_after(later[-1])} --redo numbers them anew" if is_mended else ""
            messages.note(f"windows of {other.label} and later keep their numbers{how}", unit=other.label)


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
    return int(record.stages[0].counts["rejected"].get("late", 0))


def _after(record: UnitRecord) -> str:
    kind = kind_of(record.label, record.ordinal)
    assert kind is not None
    return unit_at(record.ordinal + 1, kind).label
