"""A backfill over a range of units: which units run, in which order, and how far a correction reaches; without Spark.

With a state, units form a chain: each begins from the state that the unit before left. A reprocessed unit makes the
next unit stale, unless it leaves the state that the next unit began from. Every finished unit of the state is checked
for this, so the next backfill, whatever its range, completes a correction that was killed halfway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic

from ...conf.units import Kind, Unit, check_kind, compact, unit_at
from ...windowing.errors import ConfigError, InputError, WincliError
from ..job.fingerprint import R, same_inputs
from .lost_outputs import RerunReason, missing_unit_error
from .unit_paths import UnitInput


@dataclass(frozen=True, slots=True)
class StateChain(Generic[R]):
    """The questions that a backfill has about a state.

    ``has_data``: label to whether the state that the unit left is still kept.
    ``starts_from``: label and record to whether the unit of the record began from the state that unit ``label`` has
        now; None is no unit, and no state. The answer must come from the records, for it must be right after a kill,
        and for units whose state is no longer kept.
    """

    has_data: Callable[[str], bool]
    starts_from: Callable[[str | None, R], bool]


@dataclass(frozen=True, slots=True)
class BackfillSteps(Generic[R]):
    """The steps of a backfill, as functions.

    ``find``: unit to its input, None where it has none.
    ``run_unit``: unit, input and label of the unit before to the record of the unit; runs and commits it, beginning
        from the state of the unit before.
    ``note``: writes a note.
    ``chain``: the questions about the state; None without a state, when no unit depends on another and the label of
        the unit before is always None.
    ``reprocess``: called before `run_unit` with the unit and its input; reprocesses the earlier units that late rows of
        the unit belong to, and yields their records. None where late rows are not moved.
    ``why_rerun``: record of a unit in the range, whose input has not changed, to the reason to reprocess it, or None.
    """

    find: Callable[[Unit], UnitInput | None]
    run_unit: Callable[[Unit, UnitInput, str | None], R]
    note: Callable[[str], None]
    chain: StateChain[R] | None = None
    reprocess: Callable[[Unit, UnitInput], Iterable[R]] | None = None
    why_rerun: Callable[[R], RerunReason | None] | None = None


@dataclass(frozen=True, slots=True)
class BackfillOutcome(Generic[R]):
    """The outcome of a backfill; records and units are in ascending order.

    ``done``: the records of all units that ran.
    ``rerun``: the units among them that had been done before.
    ``skipped``: the units of the range that were done before and did not run.
    ``gaps``: the units of the range without input.
    ``reached``: the last unit that a correction ran; None where nothing was corrected.
    ``unaffected``: the finished units after ``reached``, which stay as they were.
    """

    done: tuple[R, ...]
    rerun: tuple[Unit, ...]
    skipped: tuple[Unit, ...]
    gaps: tuple[Unit, ...]
    reached: Unit | None
    unaffected: tuple[Unit, ...]


def run_backfill(
    units: Sequence[Unit], kind: Kind, records: Sequence[R], steps: BackfillSteps[R], redo: bool = False
) -> BackfillOutcome[R]:
    """Run the units of a range that need it, oldest first, and on a state the later units that a correction reaches.

    ``records``: those of all units that were done before. ``redo``: reprocess units of the range that are done. Stops
    at the first unit that fails, with an error that names it; units that are done by then stay done. Raises what the
    steps raise, `InputError` where a unit has to be run again and its input is gone, or where the state has lost a unit
    that another began from, `ConfigError` where the state that a unit begins from is no longer kept, or where the units
    done before are of another kind.
    """
    if steps.chain:
        check_kind([(record.label, record.ordinal) for record in records], kind)
    in_range = {unit.ordinal for unit in units}
    known = {record.ordinal: record for record in records}
    labels = {record.label for record in records}
    new_records: dict[int, R] = {}
    gaps = []
    before: R | None = None
    try:
        for ordinal in sorted({*in_range, *known}):
            unit, record = unit_at(ordinal, kind), known.get(ordinal)
            if record is not None:
                _check_before(record, steps, labels)
            found = _input_to_run(unit, record, before, steps, ordinal in in_range, redo)
            if found:
                record = _run(unit, found, before, steps, kind, records, new_records)
                labels.add(unit.label)
            elif record is None:
                gaps.append(unit)
            before = record or before
    except BaseException:
        if new_records:
            steps.note(f"done before that, and kept: {compact(unit_at(ordinal, kind) for ordinal in new_records)}")
        raise
    return _outcome(in_range, known, new_records, gaps, kind)


def _input_to_run(
    unit: Unit, record: R | None, before: R | None, steps: BackfillSteps[R], is_in_range: bool, redo: bool
) -> UnitInput | None:
    """Return the input of a unit that has to run, or None where it does not have to, or has no input."""
    if record is None:
        return _find(unit, steps)
    stale = steps.chain is not None and not steps.chain.starts_from(before.label if before else None, record)
    if not stale and not is_in_range:
        return None
    found = _find(unit, steps)
    if stale:
        why = "the state before it is not the one that it began from"
    elif redo:
        why = "redo was requested"
    elif found is not None and not same_inputs(found.files, record.inputs):
        why = "its input is not what it was"
    elif reason := steps.why_rerun(record) if steps.why_rerun else None:
        if stays := _why_not_rerun(reason, found, before, steps):
            steps.note(f"{unit.label} is done, but {reason.text}{stays}")
            return None
        why = reason.text
    else:
        return None
    if found is None:
        what = f"{unit.label} has to be run again ({why}), and its input is gone"
        raise InputError(what, "put its files back where they were")
    steps.note(f"{unit.label} is run again: {why}")
    return found


def _why_not_rerun(
    reason: RerunReason, found: UnitInput | None, before: R | None, steps: BackfillSteps[R]
) -> str | None:
    """Return why a unit is not reprocessed, or None. No error, for that would stop the units after it."""
    if not reason.is_free:
        return "; --redo runs it again and replaces that"
    if found is None:
        return ", and its input is gone"
    is_kept = before is None or steps.chain is None or steps.chain.has_data(before.label)
    return None if is_kept else ", and the state before it is no longer kept"


def _check_before(record: R, steps: BackfillSteps[R], labels: Set[str]) -> None:
    """Raise `DamagedError` where the unit that a unit began from is gone: rows that it held would be lost."""
    if steps.chain and record.previous is not None and record.previous not in labels:
        raise missing_unit_error(record.label, record.previous)


def _find(unit: Unit, steps: BackfillSteps[R]) -> UnitInput | None:
    with _naming_unit(unit):
        return steps.find(unit)


def _run(
    unit: Unit,
    found: UnitInput,
    before: R | None,
    steps: BackfillSteps[R],
    kind: Kind,
    records: Sequence[R],
    new_records: dict[int, R],
) -> R:
    """Run a unit, after the units before it that its late rows belong to; add all records to ``new_records``."""
    previous = before.label if before and steps.chain else None
    if steps.chain and previous and not steps.chain.has_data(previous):
        raise _state_not_retained(unit, previous, steps.chain, kind, records)
    with _naming_unit(unit):
        for record in steps.reprocess(unit, found) if steps.reprocess else ():
            new_records[record.ordinal] = record
        new_records[unit.ordinal] = steps.run_unit(unit, found, previous)
    return new_records[unit.ordinal]


def _state_not_retained(
    unit: Unit, previous: str, chain: StateChain[R], kind: Kind, records: Sequence[R]
) -> ConfigError:
    kept = next((record.ordinal for record in records if chain.has_data(record.label)), None)
    later = f"start with {unit_at(kept + 1, kind).label} or later, or " if kept is not None else ""
    return ConfigError(
        f"{unit.label} begins from the state of {previous}, which is no longer kept; nothing was written for it",
        f"{later}redo all from the first unit, {records[0].label}, on; a higher --keep keeps more states",
    )


@contextmanager
def _naming_unit(unit: Unit) -> Iterator[None]:
    """Put the label of the unit before every `WincliError` of the body."""
    try:
        yield
    except WincliError as error:
        error.what = f"{unit.label}: {error.what}"
        raise


def _outcome(
    in_range: set[int], known: dict[int, R], new_records: dict[int, R], gaps: Sequence[Unit], kind: Kind
) -> BackfillOutcome[R]:
    reached = max((ordinal for ordinal in new_records if ordinal <= max(known, default=-1)), default=None)

    def as_units(ordinals: set[int]) -> tuple[Unit, ...]:
        return tuple(unit_at(ordinal, kind) for ordinal in sorted(ordinals))

    return BackfillOutcome(
        tuple(record for _, record in sorted(new_records.items())),
        as_units(new_records.keys() & known.keys()),
        as_units(in_range & known.keys() - new_records.keys()),
        tuple(gaps),
        None if reached is None else unit_at(reached, kind),
        as_units({ordinal for ordinal in known if reached is not None and ordinal > reached}),
    )
