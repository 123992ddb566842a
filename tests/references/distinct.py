"""``--distinct`` row at a time: each row looks at all rows of its key that were let through (semantics section 20)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

Row = dict[str, Any]


def let_through(
    rows: Sequence[Row], columns: Sequence[str], is_near: Callable[[Row, Row], bool] | None, count: int | None
) -> list[Row]:
    """Return the rows of one key, given in order, that are no duplicates.

    ``is_near``: whether the first row is at most D before the second on the clock; None: at any distance.
    """
    passed: list[tuple[int, Row]] = []
    for place, row in enumerate(rows):
        values = [row[name] for name in columns]
        is_known = not any(value is None or (isinstance(value, float) and math.isnan(value)) for value in values)
        if is_known and any(
            [other[name] for name in columns] == values
            and (is_near is None or is_near(other, row))
            and (count is None or place - at <= count)
            for at, other in passed
        ):
            continue
        passed.append((place, row))
    return [row for _, row in passed]
