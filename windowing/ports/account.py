"""The row accounting: where every row of the input has gone (semantics section 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .outputs import Part


@dataclass(frozen=True, slots=True)
class Counts:
    """Row accounting (section 8): ``rows_in + carried = windowed + filtered + sum(rejected) + dropped_at_end + held``.

    ``rows_in``: rows of the input.
    ``windowed``: rows that a pane has shown.
    ``filtered``: rows that belong to no window.
    ``dropped_at_end``: rows of windows that the end of the data dropped.
    ``held``: rows in the state that no pane has shown yet.
    ``rejected``: rejected rows by reason.
    ``carried``: rows taken over from the run before, which is ``held`` of that run.
    ``panes_hidden``: panes that came out and have no row in the result, because of ``--having``; not part of the sum.
    """

    rows_in: int = 0
    windowed: int = 0
    filtered: int = 0
    dropped_at_end: int = 0
    held: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    carried: int = 0
    panes_hidden: int = 0

    def __add__(self, other: Counts) -> Counts:
        reasons = sorted({*self.rejected, *other.rejected})
        return Counts(
            self.rows_in + other.rows_in,
            self.windowed + other.windowed,
            self.filtered + other.filtered,
            self.dropped_at_end + other.dropped_at_end,
            self.held + other.held,
            {r: self.rejected.get(r, 0) + other.rejected.get(r, 0) for r in reasons},
            self.carried + other.carried,
            self.panes_hidden + other.panes_hidden,
        )

    @property
    def balanced(self) -> bool:
        """Whether every row is accounted for."""
        out = self.windowed + self.filtered + self.dropped_at_end + self.held
        return self.rows_in + self.carried == out + sum(self.rejected.values())


@dataclass(frozen=True, slots=True)
class ChunkAccount:
    """The row accounting of a chunk after the map side.

    ``counts``: its counts.
    ``rejects``: the parts that hold its rejects.
    ``span``: the smallest and the largest order value of its rows as numbers, both inclusive, where the run asks for
        them.
    """

    counts: Counts = field(default_factory=Counts)
    rejects: tuple[Part, ...] = ()
    span: tuple[float, float] | None = None

    def __add__(self, other: ChunkAccount) -> ChunkAccount:
        spans = [each for each in (self.span, other.span) if each is not None]
        return ChunkAccount(self.counts + other.counts, self.rejects + other.rejects, joined_span(spans))


def joined_span(spans: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Return the smallest span that holds some spans; None where there is none."""
    return (min(low for low, _ in spans), max(high for _, high in spans)) if spans else None
