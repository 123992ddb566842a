"""A tumbling window that is to be told, and the names of its rules."""

from __future__ import annotations

from dataclasses import dataclass

from .....windowing.columns.arrays import Ints
from .....windowing.language.calls import Policy
from .....windowing.language.clock_policies import Calendar
from .....windowing.language.conditions.policies import AnyOf, From
from .....windowing.language.row_policies import Changing, Delta, Gap
from .....windowing.language.spec import Tumbling
from ..windows.panes_of_key import KeyPanes
from .row_values import RowValues


@dataclass(frozen=True, slots=True)
class Told:
    """A tumbling window, as far as it is to be told.

    ``panes``: the panes of its key.
    ``at``: which of these it is.
    ``rows``: its rows among those of the key.
    ``before``: why the window before it was closed; None: there is none.
    """

    panes: KeyPanes
    at: int
    rows: Ints
    before: str | None

    @property
    def values(self) -> RowValues:
        """The rows of the key."""
        return RowValues(self.panes.sequences)

    @property
    def closed_by(self) -> str:
        """Why it came out."""
        return self.panes.closed_by(self.at)

    @property
    def cause(self) -> int | None:
        """The row that brought it out; None: no row did."""
        cause = int(self.panes.panes.cause[self.at])
        return cause if 0 <= cause < len(self.panes.sequences) else None

    @property
    def next(self) -> int | None:
        """The row of the key behind its last row; None: there is none."""
        after = int(self.rows[-1]) + 1 if len(self.rows) else len(self.panes.sequences)
        return after if after < len(self.panes.sequences) else None

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The rules of the spec."""
        spec = self.panes.plan.spec
        assert isinstance(spec, Tumbling)
        return spec.policy.policies if isinstance(spec.policy, AnyOf) else (spec.policy,)


def word_of(policy: Policy) -> str:
    """Return the close reason of a policy."""
    match policy:
        case From():
            return "until"
        case Changing():
            return policy.word
        case _:
            return type(policy).__name__.lower() if not isinstance(policy, Calendar) else "time"


def kind_of_policy(policy: Policy) -> str:
    """Return the name of a policy, also where its amount is one that rows say."""
    return policy.word if isinstance(policy, Changing) else type(policy).__name__.lower()


def attribute_of(policy: Policy) -> str:
    """Return the column that a policy compares."""
    assert isinstance(policy, Delta | Gap | Changing)
    assert policy.attribute is not None
    return policy.attribute
