"""What came of cases."""

from __future__ import annotations

from dataclasses import dataclass

from .case import Case
from .compare import Mismatch


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """What came of one case.

    ``case``: the case.
    ``seconds``: how long it took.
    ``mismatches``: the rows that are not as expected.
    ``error``: what went wrong, in words; None: it ran, or failed as expected.
    ``drawing``: the windows of the first rows that are not as expected, drawn; None: none are, or they have no drawing.
    """

    case: Case
    seconds: float
    mismatches: tuple[Mismatch, ...] = ()
    error: str | None = None
    drawing: str | None = None

    @property
    def passes(self) -> bool:
        """Whether all is as expected."""
        return not self.mismatches and self.error is None
