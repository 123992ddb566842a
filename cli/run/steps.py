"""The steps of a run: which units it runs, which it leaves, in which order and why.

They are decided here alone: a run takes them, a plan prints them, an effect takes them in a scratch folder. On a state
it is not known beforehand how far a correction goes: that depends on what the units leave, so each step is decided once
the one before it is taken, or supposed to be.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ...conf.ranges import Kind, Unit, check_kind, unit_at
from ...windowing.errors import ConfigError, DamagedError, InputError, WincliError
from ...windowing.ports import InputFile
from ...writers.state.unit_record import UnitRecord
from .fingerprint import same_inputs
from .unit_paths import UnitInput

Action: TypeAlias = Literal["run", "may run", "skip", "gap", "stop"]
"""What becomes of a unit: it runs; it runs if a correction reaches it; it is done; it has no input; the run stops."""


ALONE = Unit("", 0, None, None)
"""What a run without a state or a range runs: it has no label."""


@dataclass(frozen=True, slots=True)
class UnitStep:
    """What a run does with a unit of a range, or with its whole input where there is no range.

    ``unit``: the unit; `ALONE` for a run without a state or a range.
    ``action``: what happens to it.
    ``why``: the reason, in words, where it runs again, or stays although something has changed; else nothing.
    ``found``: its input; None where it has none, or was not looked at.
    ``before``: the unit that it begins from; None: from nothing.
    ``is_again``: whether it was done before.
    ``problem``: why the run stops here.
    """

    unit: Unit
    action: Action
    why: str = ""
    found: UnitInput | None = None
    before: UnitRecord | None = None
    is_again: bool = False
    problem: WincliError | None = None

    @property
    def label(self) -> str:
        return self.unit.label

    @property
    def input(self) -> UnitInput:
        assert self.found is not None, "a unit without an input does not run"
        return self.found

    @property
    def previous(self) -> str | None:
        return None if self.before is None else self.before.label

    @property
    def files(self) -> tuple[InputFile, ...]:
        return () if self.found is None else self.found.files

    @property
    def nbytes(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def note(self) -> str | None:
        """The note on a finished unit that runs again, or that stays although something has changed."""
        if not self.why or not self.is_again:
            return None
        what = "is done, but" if self.action == "skip" else "is run again:"
        return f"{self.label} {what} {self.why}"


@dataclass(frozen=True, slots=True)
class RerunReason:
    """The reason to reprocess a unit although its input has not changed.

    ``text``: the reason in words, for messages.
    ``is_free``: whether the unit may run without ``--redo``, because its output replaces nothing.
    """

    text: str
    is_free: bool


STALE = "the state before it is not the one that it began from"
REDO = "redo was requested"
"""Reasons to run a unit again that units after it may have, too."""


def missing_unit_error(label: str, previous: str) -> DamagedError:
    """Return the error for a unit that began from a unit of which the state has no record any more."""
    what = f"{label} began from {previous}, which is no longer in the state"
    return DamagedError(what, f"restore the folder {previous} of the state, or run {previous} again before it")


@dataclass(frozen=True, slots=True)
class StateChain:
    """The chain of units on a state: what the steps of a range ask about units and those before them.

    ``has_data``: label to whether the state that the unit left is still kept.
    ``starts_from``: label and record to whether the unit of the record began from the state that unit ``label`` has
        now; None is no unit, and no state. The answer must come from the records, for it must be right after a kill,
        and for units whose state is no longer kept.
    ``forgotten``: gives the labels of the units that were taken out of the state on purpose.
    """

    has_data: Callable[[str], bool]
    starts_from: Callable[[str | None, UnitRecord], bool]
    forgotten: Callable[[], Container[str]] = tuple

    def is_kept(self, before: UnitRecord | None) -> bool:
        return before is None or self.has_data(before.label)


@dataclass(frozen=True, slots=True)
class UnitRange:
    """A range of units, and all that decides what becomes of each.

    ``units``: the units of the range, ascending.
    ``kind``: what units are.
    ``records``: those of all units that were done before, ascending.
    ``find``: returns the input of a unit, None where it has none; raises as `find_input` does.
    ``why_rerun``: returns the reason to reprocess a unit of the range whose input has not changed; None: there is none.
    ``chain``: how the units depend on each other; None: not at all.
    ``redo``: whether to reprocess units of the range that are done.
    """

    units: Sequence[Unit]
    kind: Kind
    records: Sequence[UnitRecord]
    find: Callable[[Unit], UnitInput | None]
    why_rerun: Callable[[UnitRecord], RerunReason | None] = lambda _: None
    chain: StateChain | None = None
    redo: bool = False

    def take_steps(self, take: Callable[[UnitStep], UnitRecord | None]) -> None:
        """Decide on each unit, oldest first, and ``take`` the step; the later units that a correction reaches, too.

        ``take``: returns the record of a unit that has run; None where it was started, or does not run. Ends behind the
        first step with a problem: an input that is gone or that `find` refuses, a unit that the state has lost, a state
        that is no longer kept. Raises `ConfigError` where the units done before are of another kind.
        """
        if self.chain is not None:
            check_kind([(record.label, record.ordinal) for record in self.records], self.kind)
        in_range, known = {unit.ordinal for unit in self.units}, {record.ordinal: record for record in self.records}
        labels = {record.label for record in self.records}
        before: UnitRecord | None = None
        for ordinal in sorted({*in_range, *known}):
            unit, record = unit_at(ordinal, self.kind), known.get(ordinal)
            try:
                step = self._step(unit, record, before, labels, ordinal in in_range)
            except WincliError as error:
                step = UnitStep(unit, "stop", is_again=record is not None, problem=error)
            if step is not None:
                left = take(step)
                if step.problem is not None:
                    return
                if step.action == "run":
                    labels.add(unit.label)
                    record = left or record
            before = record or before

    def _step(
        self, unit: Unit, record: UnitRecord | None, before: UnitRecord | None, labels: Set[str], is_in_range: bool
    ) -> UnitStep | None:
        """Return what becomes of a unit; None for one after the range that nothing concerns.

        ``labels``: all units that are done. Raises what ends the range.
        """
        chain, stale = self.chain, False
        if record is not None and chain is not None:
            previous = record.previous
            if previous is not None and previous not in labels and previous not in chain.forgotten():
                raise missing_unit_error(record.label, previous)
            stale = not chain.starts_from(before.label if before else None, record)
        if record is not None and not stale and not is_in_range:
            return None
        with naming_unit(unit):
            found = self.find(unit)
        if record is None:
            return UnitStep(unit, "gap") if found is None else self._run(unit, "", found, before)
        why, runs = self._why_again(record, before, found, stale)
        if not runs:
            return UnitStep(unit, "skip", why, found, is_again=True)
        if found is None:
            what = f"{unit.label} has to be run again ({why}), and its input is gone"
            raise InputError(what, "put its files back where they were")
        return self._run(unit, why, found, before, is_again=True)

    def _why_again(
        self, record: UnitRecord, before: UnitRecord | None, found: UnitInput | None, stale: bool
    ) -> tuple[str, bool]:
        """Return what has changed of a finished unit, in words or not at all, and whether it runs again."""
        if stale:
            return STALE, True
        if self.redo:
            return REDO, True
        files = [] if found is None else [(found.files, record.inputs)]
        files += [] if found is None else [(own, record.enrich.get(name, ())) for name, own in found.tables.items()]
        if not all(same_inputs(*pair) for pair in files):
            return "its input is not what it was", True
        reason = self.why_rerun(record)
        if reason is None:
            return "", False
        stays = ""
        if not reason.is_free:
            stays = "; --redo runs it again and replaces that"
        elif found is None:
            stays = ", and its input is gone"
        elif self.chain is not None and not self.chain.is_kept(before):
            stays = ", and the state before it is no longer kept"
        return f"{reason.text}{stays}", not stays

    def _run(
        self, unit: Unit, why: str, found: UnitInput, before: UnitRecord | None, *, is_again: bool = False
    ) -> UnitStep:
        if self.chain is None:
            return UnitStep(unit, "run", why, found, is_again=is_again)
        if self.chain.is_kept(before):
            return UnitStep(unit, "run", why, found, before, is_again)
        assert before is not None
        kept = next((record.ordinal for record in self.records if self.chain.has_data(record.label)), None)
        later = f"start with {unit_at(kept + 1, self.kind).label} or later, or " if kept is not None else ""
        what = f"{unit.label} begins from the state of {before.label}, which is no longer kept"
        do = f"redo all from the first unit, {self.records[0].label}, on; a higher --keep keeps more states"
        problem = ConfigError(f"{what}; nothing was written for it", later + do)
        return UnitStep(unit, "stop", why, found, before, is_again, problem)


@contextmanager
def naming_unit(unit: Unit) -> Iterator[None]:
    """Add the label of a unit to each `WincliError` of the body."""
    try:
        yield
    except WincliError as error:
        error.what = f"{unit.label}: {error.what}"
        raise
