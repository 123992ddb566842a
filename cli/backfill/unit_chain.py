"""How the units of a range depend on each other: as a chain, each from the state of the one before, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence, Set
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from ...conf.ranges.units import Kind, Unit, check_kind, unit_at
from ...windowing.errors import ConfigError
from ...writers.state.unit_record import UnitRecord
from ..request.fingerprint import R, UnitSummary
from .lost_outputs import missing_unit_error

R_contra = TypeVar("R_contra", bound=UnitSummary, contravariant=True)


class UnitChain(Protocol[R_contra]):
    """The questions that a backfill has about units and those before them."""

    def check(self, records: Sequence[R_contra], kind: Kind) -> None:
        """Raise `ConfigError` where the units done before are of another kind."""
        ...

    def check_before(self, record: R_contra, labels: Set[str]) -> None:
        """Raise `DamagedError` where a unit began from one that is not among ``labels``: rows would be lost."""
        ...

    def is_stale(self, before: R_contra | None, record: R_contra) -> bool:
        """Whether a unit began from another state than the unit before it has now."""
        ...

    def is_kept(self, before: R_contra | None) -> bool:
        """Whether a unit can begin from the state of the unit before it."""
        ...

    def begin(self, unit: Unit, before: R_contra | None, records: Sequence[R_contra], kind: Kind) -> str | None:
        """Return the label of the unit whose state a unit begins from; None where it begins from nothing.

        Raises `ConfigError` where that state is no longer kept.
        """
        ...


class UnitRecords(Protocol):
    """The finished units of a state, as `State` has them."""

    @property
    def records(self) -> Sequence[UnitRecord]:
        """The records of all finished units, by ordinal."""
        ...

    def record(self, label: str) -> UnitRecord | None:
        """Return the record of a unit, None where the unit is not done."""
        ...

    def has_data(self, label: str) -> bool:
        """Whether a unit is done and its window state is still there."""
        ...

    def forgotten(self) -> Container[str]:
        """Return the labels of the units that were taken out of the state on purpose (`wincli state`)."""
        ...


@dataclass(frozen=True, slots=True)
class StateChain(Generic[R]):
    """The chain of units on a state: a `UnitChain`.

    ``has_data``: label to whether the state that the unit left is still kept.
    ``starts_from``: label and record to whether the unit of the record began from the state that unit ``label`` has
        now; None is no unit, and no state. The answer must come from the records, for it must be right after a kill,
        and for units whose state is no longer kept.
    ``forgotten``: gives the labels of the units that were taken out of the state on purpose.
    """

    has_data: Callable[[str], bool]
    starts_from: Callable[[str | None, R], bool]
    forgotten: Callable[[], Container[str]] = tuple

    def check(self, records: Sequence[R], kind: Kind) -> None:
        """Raise `ConfigError` where the units of the state are of another kind."""
        check_kind([(record.label, record.ordinal) for record in records], kind)

    def check_before(self, record: R, labels: Set[str]) -> None:
        """Raise `DamagedError` where the unit that a unit began from is not among ``labels``, and was not forgotten."""
        if record.previous is not None and record.previous not in labels and record.previous not in self.forgotten():
            raise missing_unit_error(record.label, record.previous)

    def is_stale(self, before: R | None, record: R) -> bool:
        """Whether the state before a unit is not the one that it began from."""
        return not self.starts_from(before.label if before else None, record)

    def is_kept(self, before: R | None) -> bool:
        """Whether there is no unit before, or its state is still kept."""
        return before is None or self.has_data(before.label)

    def begin(self, unit: Unit, before: R | None, records: Sequence[R], kind: Kind) -> str | None:
        """Return the label of the unit before. Raises `ConfigError` where its state is no longer kept."""
        if before is None:
            return None
        if not self.has_data(before.label):
            raise self._not_kept(unit, before.label, records, kind)
        return before.label

    def _not_kept(self, unit: Unit, previous: str, records: Sequence[R], kind: Kind) -> ConfigError:
        kept = next((record.ordinal for record in records if self.has_data(record.label)), None)
        later = f"start with {unit_at(kept + 1, kind).label} or later, or " if kept is not None else ""
        return ConfigError(
            f"{unit.label} begins from the state of {previous}, which is no longer kept; nothing was written for it",
            f"{later}redo all from the first unit, {records[0].label}, on; a higher --keep keeps more states",
        )


@dataclass(frozen=True, slots=True)
class NoChain:
    """Units without a state: a `UnitChain` in which no unit depends on another."""

    def check(self, records: Sequence[UnitSummary], kind: Kind) -> None:
        """Accept units of every kind."""

    def check_before(self, record: UnitSummary, labels: Set[str]) -> None:
        """Accept every unit: it began from none."""

    def is_stale(self, before: UnitSummary | None, record: UnitSummary) -> bool:  # noqa: ARG002 - see `UnitChain`
        """Return False."""
        return False

    def is_kept(self, before: UnitSummary | None) -> bool:  # noqa: ARG002 - see `UnitChain`
        """Return True: a unit needs no state."""
        return True

    def begin(  # noqa: D102
        self,
        unit: Unit,  # noqa: ARG002 - see `UnitChain`
        before: UnitSummary | None,  # noqa: ARG002
        records: Sequence[UnitSummary],  # noqa: ARG002
        kind: Kind,  # noqa: ARG002
    ) -> str | None:
        return None
