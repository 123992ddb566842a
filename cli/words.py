"""Counts as they are told."""

from __future__ import annotations

from collections.abc import Mapping


def many(count: int, thing: str) -> str:
    """``1 row``, ``1,234 rows``."""
    return f"{count:,} {thing}" + ("" if count == 1 else "s")


def by_reason(rejected: Mapping[str, int]) -> str:
    """``late 3, null_key 1``."""
    return ", ".join(f"{reason} {count:,}" for reason, count in sorted(rejected.items()))
