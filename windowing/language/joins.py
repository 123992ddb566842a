"""Joins over windows as values: what ``--join`` says, and the windows that only joins have (semantics section 16)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal

from ..expressions.syntax import Expression
from .enrichment import Pair, Taken

if TYPE_CHECKING:
    from .spec import Batched, Sliding, WindowSpec

How = Literal["inner", "left", "right", "full", "semi", "anti", "union"]
SIDE: Final = "_side"
"""The column that says of which side a row of the one sequence is; of the result only under ``union``."""
LEFT, RIGHT, BOTH = 1, 2, 3
"""Its values within the program, int8; ``union`` writes ``left`` and ``right``."""


@dataclass(frozen=True, slots=True)
class Join:
    """A request to join another log, or the same: ``NAME[=PATH] on .. by .. HOW ..``. Its ``str`` is its canonical text.

    ``name``: with which the names of the right columns begin.
    ``path``: where the right side is; None: the input itself, whose rows may be on both sides.
    ``keys``: the columns that must be equal; may be empty.
    ``orders``: the order columns of both sides; empty: those that the left is ordered by.
    ``how``: which rows come out without a partner.
    ``strict``: whether the left row is first where both sides have the same order values.
    ``where``: the condition of right rows, under their own names; None: all.
    ``take``: the columns to take of the right; None: all but keys.
    """

    name: str
    path: str | None = None
    keys: tuple[Pair, ...] = ()
    orders: tuple[Pair, ...] = ()
    how: How = "inner"
    strict: bool = False
    where: Expression | None = None
    take: tuple[Taken, ...] | None = None


@dataclass(frozen=True, slots=True)
class Around:
    """``around(B, A[, prevailing])``: one pane for each left row (16.4).

    ``before``, ``after``: from how long before the left row until how long after it, both inclusive, in seconds or
        units of a number; either may be negative, and their sum is not.
    ``prevailing``: whether the newest right row at or before the interval is in, too.
    """

    before: Fraction
    after: Fraction
    prevailing: bool = False


@dataclass(frozen=True, slots=True)
class At:
    """``at(O, ..) [within D]``: the newest right row at each offset of the left row (16.5).

    ``offsets``: in seconds or units of a number, as written.
    ``within``: how old the right row may be, inclusive; None: any age.
    """

    offsets: tuple[Fraction, ...]
    within: Fraction | None = None


@dataclass(frozen=True, slots=True)
class SideWindows:
    """``SIDE join SIDE``: a window on each side (16.6).

    ``left``, ``right``: both `Sliding` with an eviction alone, or both `Batched`.
    """

    left: Sliding | Batched
    right: Sliding | Batched


@dataclass(frozen=True, slots=True)
class Joined:
    """A window over both sides of a join. Its text is that of the window: ``--join`` says the rest.

    ``window``: `Around`, `At`, `SideWindows`, or a window of one input over the one sequence (16.7, ``union``).
    ``join``: of the request what windows depend on: its `Join`.
    """

    window: WindowSpec
    join: Join

    def __str__(self) -> str:
        return str(self.window)
