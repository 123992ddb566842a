"""A range of units: which are run, in which order, and how far a correction reaches. Knows nothing of Spark.

With a state, units are a chain: each begins from the state that the one before left. A unit that is run again makes
the next one stale, unless it leaves the state that the next began from. That is asked of every unit that was ever
done, so a correction that was killed halfway is completed by whatever range is run next.
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
    """What a range asks of a state.

    ``has_data(label)``: whether the state that a unit left is still kept. ``same(label, record)``: whether the state
    that unit ``label`` holds now (None: no unit, no state) is the one that the unit of ``record`` began from. It must
    tell so after a kill, too, and of units whose data is no longer kept: by what records say.
    """

    has_data: Callable[[str], bool]
    starts_from: Callable[[str | None, R], bool]


@dataclass(frozen=True, slots=True)
class BackfillSteps(Generic[R]):
    """What a range is done with.

    ``find(unit)``: what a unit reads, None for nothing. ``run_unit(unit, input, previous)``: runs and commits a unit
    that begins from the state of unit ``previous``, and returns its record. ``tell``: takes notes. ``chain``: None
    where there is no state, so that no unit depends on another; then ``previous`` is always None. ``settle``: called
    before `run_unit`, as that is; runs those units before it again that take rows of the unit, and yields their
    records. None where no unit takes rows of another. ``again``: why a unit of the range that was done with the same
    files should be run again all the same, None where it should not.
    """

    find: Callable[[Unit], UnitInput | None]
    run_unit: Callable[[Unit, UnitInput, str | None], R]
    note: Callable[[str], None]
    chain: StateChain[R] | None = None
    reprocess: Callable[[Unit, UnitInput, str | None], Iterable[R]] | None = None
    why_rerun: Callable[[R], RerunReason | None] | None = None


@dataclass(frozen=True, slots=True)
class BackfillOutcome(Generic[R]):
    """What a range came to, each in ascending order.

    ``done``: the records of the units that were run, and ``again``: those of them that had been done before.
    ``skipped``: units of the range that were done before; ``gaps``: units of the range without input.
    ``reached``: the last unit that a correction ran, None where nothing was corrected; ``beyond``: those done before
    that come after it and stay as they were.
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
    """Run those units of a range that have to be run, oldest first; with a state, those after them that it takes, too.

    ``records``: of all units that were done before. ``redo``: run units of the range again that are done.
    Stops at the first unit that fails, with an error that names it; what was done before stays done. Raises what the
    steps raise, `InputError` where a unit has to be run again and its input is gone, or where the state has lost a unit
    that another began from, `ConfigError` where the state that a unit begins from is no longer kept, or where the units
    done before are of another kind.
    """
    if steps.chain:
        check_kind([(record.label, record.ordinal) for record in records], kind)
    asked = {unit.ordinal for unit in units}
    known = {record.ordinal: record for record in records}
    labels = {record.label for record in records}
    ran: dict[int, R] = {}
    gaps = []
    before: R | None = None
    try:
        for ordinal in sorted({*asked, *known}):
            unit, record = unit_at(ordinal, kind), known.get(ordinal)
            if record is not None:
                _check_before(record, steps, labels)
            found = _needs_run(unit, record, before, steps, ordinal in asked, redo)
            if found:
                record = _run(unit, found, before, steps, kind, records, ran)
                labels.add(unit.label)
            elif record is None:
                gaps.append(unit)
            before = record or before
    except BaseException:
        if ran:
            steps.note(f"done before that, and kept: {compact(unit_at(ordinal, kind) for ordinal in ran)}")
        raise
    return _outcome(asked, known, ran, gaps, kind)


def _needs_run(
    unit: Unit, record: R | None, before: R | None, steps: BackfillSteps[R], is_asked: bool, redo: bool
) -> UnitInput | None:
    """Return what a unit has to read, or None where it does not have to be run."""
    if record is None:
        return _find(unit, steps)
    stale = steps.chain is not None and not steps.chain.starts_from(before.label if before else None, record)
    if not stale and not is_asked:
        return None
    found = _find(unit, steps)
    if stale:
        why = "the state before it is not the one that it began from"
    elif redo:
        why = "as asked for"
    elif found is not None and not same_inputs(found.files, record.inputs):
        why = "its input is not what it was"
    elif again := steps.why_rerun(record) if steps.why_rerun else None:
        if stays := _why_not_rerun(again, found, before, steps):
            steps.note(f"{unit.label} is done, but {again.text}{stays}")
            return None
        why = again.text
    else:
        return None
    if found is None:
        what = f"{unit.label} has to be run again ({why}), and its input is gone"
        raise InputError(what, "put its files back where they were")
    steps.note(f"{unit.label} is run again: {why}")
    return found


def _why_not_rerun(
    again: RerunReason, found: UnitInput | None, before: R | None, steps: BackfillSteps[R]
) -> str | None:
    """Say why a unit is not run again, or None. Where it cannot be, that must not stop the units after it."""
    if not again.is_free:
        return "; --redo runs it again and replaces that"
    if found is None:
        return ", and its input is gone"
    is_kept = before is None or steps.chain is None or steps.chain.has_data(before.label)
    return None if is_kept else ", and the state before it is no longer kept"


def _check_before(record: R, steps: BackfillSteps[R], labels: Set[str]) -> None:
    """Raise `DamagedError` where the unit that a unit began from is gone: to go on without it would lose its rows."""
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
    ran: dict[int, R],
) -> R:
    """Run a unit, after the units before it that take rows of it; note in ``ran`` what was run."""
    previous = before.label if before and steps.chain else None
    if steps.chain and previous and not steps.chain.has_data(previous):
        raise _state_not_retained(unit, previous, steps.chain, kind, records)
    with _naming_unit(unit):
        for record in steps.reprocess(unit, found, previous) if steps.reprocess else ():
            ran[record.ordinal] = record
        ran[unit.ordinal] = steps.run_unit(unit, found, previous)
    return ran[unit.ordinal]


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
    """Let every `WincliError` of the body say which unit it is of."""
    try:
        yield
    except WincliError as error:
        error.what = f"{unit.label}: {error.what}"
        raise


def _outcome(
    asked: set[int], known: dict[int, R], ran: dict[int, R], gaps: Sequence[Unit], kind: Kind
) -> BackfillOutcome[R]:
    reached = max((ordinal for ordinal in ran if ordinal <= max(known, default=-1)), default=None)

    def as_units(ordinals: set[int]) -> tuple[Unit, ...]:
        return tuple(unit_at(ordinal, kind) for ordinal in sorted(ordinals))

    return BackfillOutcome(
        tuple(record for _, record in sorted(ran.items())),
        as_units(ran.keys() & known.keys()),
        as_units(asked & known.keys() - ran.keys()),
        tuple(gaps),
        None if reached is None else unit_at(reached, kind),
        as_units({ordinal for ordinal in known if reached is not None and ordinal > reached}),
    )
