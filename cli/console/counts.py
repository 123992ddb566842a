"""Counts and values as messages write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def count_of(count: int, thing: str) -> str:
    """Return a count and its noun: ``1 row``, ``1,234 rows``."""
    return f"{count:,} {thing}" + ("" if count == 1 else "s")


def option_text(value: Any) -> str:
    """Return the text of an option's value, which is a plain JSON value: ``none``, ``a, b``, ``count(2)``."""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def reason_counts(rejected: Mapping[str, int]) -> str:
    """Return counts by reason, sorted: ``late 3, null_key 1``."""
    return ", ".join(f"{reason} {count:,}" for reason, count in sorted(rejected.items()))
