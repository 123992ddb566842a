"""The contract of a tumbling policy: what it needs, and which rows end windows.

A policy says which rows end windows (`tell`), or what its ticks are (`clock_policies.ClockPolicy`), or that marks do.
The windows of all policies of a spec are found together, by one loop (`rules`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa

from ...columns.arrays import Ints
from ...rows.sequence import Sequences
from ..needs import Explain, Needs
from ..row_values import RowValues
from ..rules.gather import Gathered


@dataclass(frozen=True, slots=True)
class Told:
    """Why a policy ends a window, in words.

    ``text``: the words.
    ``numbers``: the numbers in them by name, as texts that are exact.
    ``is_shown``: whether the rows show that it ends there; else they do not, or the window before decides it.
    """

    text: str
    numbers: Mapping[str, str] = field(default_factory=dict)
    is_shown: bool = True


@dataclass(frozen=True, slots=True)
class TumblingPolicy(ABC):
    """A tumbling policy.

    ``value``: as in the spec.
    """

    value: Any
    why: ClassVar[str]
    """The close reason."""
    neighbours_decide: ClassVar[bool] = False
    """Whether two neighbouring rows of a key decide whether a window starts between them, whatever window is open."""
    is_known_by_sample: ClassVar[bool] = False
    """Whether some of the rows say where windows end, though not their neighbours: by a grid or the first row."""
    opens: ClassVar[bool] = False
    """Whether it says at which rows windows may begin."""

    @property
    @abstractmethod
    def needs(self) -> Needs:
        """What it needs of the input."""

    def check(self, name: str, dtype: pa.DataType, explain: Explain) -> None:  # noqa: B027
        """Raise `ConfigError` where an attribute cannot have this type."""

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:  # noqa: B027
        """Say which rows end windows; ``rule``: the place of this policy in the spec. Marks and ticks are no rows."""

    def most_rows(self) -> int | None:
        """Return how many rows a window has at most, where the policy says so; else None."""
        return None

    def explain(self, values: RowValues, rows: Ints, row: int) -> Told:  # noqa: ARG002
        """Say why it ended the window of ``rows`` when ``row`` came: the last of them, or the one behind."""
        return Told(f"{values.name(row)} ended it ({self.why})")

    @property
    def leaves_holes(self) -> bool:
        """Whether rows inside of a window may be rejected."""
        return False
