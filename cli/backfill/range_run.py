"""A backfill over a range of units: which units run, in which order, and how far a correction reaches; without Spark.

With a state, units form a chain: each begins from the state that the unit before left. A reprocessed unit makes the
next unit stale, unless it leaves the state that the next unit began from. Every finished unit of the state is checked
for this, so the next backfill, whatever its range, completes a correction that was killed halfway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol

from ...conf.ranges.units import Kind, Unit, compact, unit_at
from ...windowing.errors import InputError, WincliError
from ..console.messages import Stopped
from ..request.fingerprint import R, UnitSummary, same_inputs
from .lost_outputs import RerunReason
from .parallel.runner import OneByOne, RunUnit, UnitRunner
from .unit_chain import UnitChain
from .unit_paths import UnitInput
from .unit_report import REDO, STALE


class BackfillMode(Protocol[R]):
    """A way to run the units of a range: on a state (`IncrementalBackfill`), or each by itself (`PlainBackfill`)."""

    @property
    def chain(self) -> UnitChain[R]:
        """How the units depend on each other."""
        ...

    def find(self, unit: Unit) -> UnitInput | None:
        """Return the input of a unit, None where it has none."""
        ...

    def run(self, unit: Unit, found: UnitInput, previous: str | None) -> Iterable[R]:
        """Run and commit a unit, from the state of the unit ``previous`` where there is one; yield its record last.

        The records before it are those of earlier units that were reprocessed, because late rows of the unit belong to
        them; each is yielded when it is committed.
        """
        ...

    def why_rerun(self, record: R) -> RerunReason | None:
        """Return the reason to reprocess a unit of the range whose input has not changed; None where there is none."""
        ...

    def note(self, text: str, **fields: Any) -> None:
        """Write a note.

        One on whether a finished unit runs again has the fields ``unit``, its label, ``runs``, and ``why``, in words.
        """
        ...


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
    units: Sequence[Unit],
    kind: Kind,
    records: Sequence[R],
    mode: BackfillMode[R],
    redo: bool = False,
    together: Callable[[RunUnit[R]], UnitRunner[R]] = OneByOne,
) -> BackfillOutcome[R]:
    """Run the units of a range that need it, oldest first, and on a state the later units that a correction reaches.

    ``records``: those of all units that were done before. ``redo``: reprocess units of the range that are done.
    ``together``: makes what runs the units, one by one unless none of them needs another. Stops at the first unit that
    fails, with an error that names it; units that are done by then stay done. Raises what the mode raises, `InputError`
    where a unit has to be run again and its input is gone, or where the state has lost a unit that another began from,
    `ConfigError` where the state that a unit begins from is no longer kept, or where the units done before are of
    another kind.
    """
    mode.chain.check(records, kind)
    in_range = {unit.ordinal for unit in units}
    known = {record.ordinal: record for record in records}
    labels = {record.label for record in records}
    new_records: dict[int, R] = {}
    gaps = []
    before: R | None = None
    try:
        with together(partial(_run, mode, new_records)) as runner:
            for ordinal in sorted({*in_range, *known}):
                unit, record = unit_at(ordinal, kind), known.get(ordinal)
                if record is not None:
                    mode.chain.check_before(record, labels)
                found = _input_to_run(unit, record, before, mode, ordinal in in_range, redo)
                if found:
                    previous = mode.chain.begin(unit, before, records, kind)
                    record = runner.run(unit, found, previous) or record
                    labels.add(unit.label)
                elif record is None:
                    gaps.append(unit)
                before = record or before
    except BaseException as error:
        if new_records:
            kept = compact(unit_at(ordinal, kind) for ordinal in sorted(new_records))
            if isinstance(error, Stopped):
                error.kept = kept
            else:
                mode.note(f"done before that, and kept: {kept}")
        raise
    return _outcome(in_range, known, new_records, gaps, kind)


def _is_same(found: UnitInput, record: UnitSummary) -> bool:
    """Whether a unit has the files that it had when it was run, also those of enrich tables of its own."""
    tables = [(files, record.enrich.get(name, ())) for name, files in found.tables.items()]
    return all(same_inputs(*pair) for pair in [(found.files, record.inputs), *tables])


def _input_to_run(
    unit: Unit, record: R | None, before: R | None, mode: BackfillMode[R], is_in_range: bool, redo: bool
) -> UnitInput | None:
    """Return the input of a unit that has to run, or None where it does not have to, or has no input."""
    if record is None:
        return _find(unit, mode)
    stale = mode.chain.is_stale(before, record)
    if not stale and not is_in_range:
        return None
    found = _find(unit, mode)
    if stale:
        why = STALE
    elif redo:
        why = REDO
    elif found is not None and not _is_same(found, record):
        why = "its input is not what it was"
    elif reason := mode.why_rerun(record):
        if stays := _why_not_rerun(reason, found, before, mode):
            why = f"{reason.text}{stays}"
            mode.note(f"{unit.label} is done, but {why}", unit=unit.label, runs=False, why=why)
            return None
        why = reason.text
    else:
        return None
    if found is None:
        what = f"{unit.label} has to be run again ({why}), and its input is gone"
        raise InputError(what, "put its files back where they were")
    mode.note(f"{unit.label} is run again: {why}", unit=unit.label, runs=True, why=why)
    return found


def _why_not_rerun(reason: RerunReason, found: UnitInput | None, before: R | None, mode: BackfillMode[R]) -> str | None:
    """Return why a unit is not reprocessed, or None. No error, for that would stop the units after it."""
    if not reason.is_free:
        return "; --redo runs it again and replaces that"
    if found is None:
        return ", and its input is gone"
    return None if mode.chain.is_kept(before) else ", and the state before it is no longer kept"


def _find(unit: Unit, mode: BackfillMode[R]) -> UnitInput | None:
    with _naming_unit(unit):
        return mode.find(unit)


def _run(mode: BackfillMode[R], new_records: dict[int, R], unit: Unit, found: UnitInput, previous: str | None) -> R:
    """Run a unit, after the units before it that its late rows belong to; add all records to ``new_records``."""
    with _naming_unit(unit):
        for record in mode.run(unit, found, previous):
            new_records[record.ordinal] = record
    return new_records[unit.ordinal]


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
