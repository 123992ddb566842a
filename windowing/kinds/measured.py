"""Attributes that are compared by an amount: ``delta`` and ``gap``, in tumbling and sliding windows."""

from __future__ import annotations

import pyarrow as pa

from ..columns.arrays import is_measurable
from ..errors import ClockError
from ..language.spec import Policy
from .contract import Explain


def check_measured(policy: Policy, name: str, dtype: pa.DataType, explain: Explain) -> None:
    """Raise `ClockError` where an attribute has no values that can be subtracted."""
    if is_measurable(dtype):
        return
    because = explain(name)
    raise ClockError(
        f"{policy} needs a number, a timestamp or a date, and column {name!r} is {dtype}"
        + (f": {because}" if because else ""),
        f'with --schema "{name}:timestamp" (or int64, float64) such rows are rejected'
        if because
        else "name another column, or cast it",
        name,
    )
