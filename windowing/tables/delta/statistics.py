"""What the log of a Delta table says of the columns of a file, so that readers can pass it over."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

from ..statistics import ColumnStatistics, FileStatistics

_LONGEST = 64
"""Characters of a text: of longer ones nothing is said, for a part of the largest would be less than it."""


def statistics_json(rows: int, statistics: FileStatistics) -> str:
    """Return the statistics of a file as the log has them.

    Floats have no bounds there: Parquet leaves NaN out of them, and readers of Delta take NaN for the largest.
    """
    columns = [each for each in statistics.columns if "." not in each.path]
    bounds = [(each.path, _value(each.least), _value(each.greatest)) for each in columns]
    known = [(name, least, greatest) for name, least, greatest in bounds if None not in (least, greatest)]
    return json.dumps(
        {
            "numRecords": rows,
            "minValues": {name: least for name, least, _ in known},
            "maxValues": {name: greatest for name, _, greatest in known},
            "nullCount": {each.path: each.nulls for each in columns if _has_count(each)},
        },
        ensure_ascii=False,
    )


def _has_count(column: ColumnStatistics) -> bool:
    return column.nulls is not None


def _value(value: Any) -> Any:
    """Return a bound as JSON has it; None where nothing is said."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        return value if len(value) <= _LONGEST else None
    if isinstance(value, dt.datetime):
        text = value.replace(tzinfo=None).isoformat(timespec="microseconds")
        return f"{text}Z" if value.tzinfo else text
    if isinstance(value, dt.date):
        return value.isoformat()
    return value if isinstance(value, int) else None
