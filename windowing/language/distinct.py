"""The rule of ``--distinct``: which rows repeat one before (semantics section 20)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from .tokens import Cursor, column_text, decimal_text

FORM: Final = "write it as COL,.. [within D] [count N], for example id within 1h"


@dataclass(frozen=True, slots=True)
class Distinct:
    """A request to leave out duplicates. Its ``str`` is its canonical text.

    ``columns``: those in which a duplicate equals a row that was let through before it.
    ``within``: the largest distance on the clock, inclusive, in seconds or units of a number; None: any.
    ``count``: the largest distance in rows of the key, inclusive; None: any.
    """

    columns: tuple[str, ...]
    within: Fraction | None = None
    count: int | None = None

    def __str__(self) -> str:
        within = "" if self.within is None else f" within {decimal_text(self.within)}"
        count = "" if self.count is None else f" count {self.count}"
        return f"{', '.join(map(column_text, self.columns))}{within}{count}"


def parse_distinct(text: str) -> Distinct:
    """Parse ``COL,.. [within D] [count N]``. Raises `SpecError` with the span at fault."""
    cursor = Cursor(text)
    names = list[str]()
    while not names or cursor.skip(","):
        names.append(cursor.column(cursor.take(), FORM))
        if names[-1] in names[:-1]:
            raise cursor.error(f"column {names[-1]!r} is there twice", cursor.last.span, "name it once")
    within = cursor.duration(cursor.take(), "write it as within 5m", zero=True) if cursor.skip("within") else None
    count = cursor.count(cursor.take(), "write it as count 1000") if cursor.skip("count") else None
    if cursor.peek().kind != "end":
        raise cursor.error(f"expected the end, found {cursor.peek()}", cursor.peek().span, FORM)
    return Distinct(tuple(names), within, count)
