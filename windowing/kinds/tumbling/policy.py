"""The contract of a tumbling policy: what it needs, and which rows end windows.

A policy says which rows end windows (`tell`), or what its ticks are (`clock_policies.ClockPolicy`), or that marks do.
The windows of all policies of a spec are found together, by one loop (`rules`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa

from ...rows.sequence import Sequences
from ..facts import Fact, KeyPane
from ..needs import Explain, Needs
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
    ends_with: ClassVar[bool] = False
    """Whether a row, or a mark, that ends a window is its last; else that row is the first behind it."""
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

    def check_types(self, schema: pa.Schema) -> None:  # noqa: B027
        """Raise `SpecError` where attributes of these types do not go together."""

    def tell(self, rule: int, rules: Gathered, sequences: Sequences) -> None:  # noqa: B027
        """Say which rows end windows; ``rule``: the place of this policy in the spec. Marks and ticks are no rows."""

    def most_rows(self) -> int | None:
        """Return how many rows a window has at most, where the policy says so; else None."""
        return None

    def explain(self, pane: KeyPane, row: int) -> Told:
        """Say why it ended the window when ``row`` came: its last row, or the one behind."""
        return Told(f"{pane.name(row)} ended it ({self.why})")

    def near(self, pane: KeyPane, ended: bool) -> Iterator[Fact]:
        """Yield what came close: inside the window, and the row next in line. ``ended``: whether it ended this."""
        yield from ()

    def leaves_holes(self, sequences: Sequences) -> bool:
        """Whether rows inside of a window may be rejected."""
        return False
