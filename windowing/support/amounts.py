"""Amounts as texts for people say them: counts of things, bytes, durations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SIZES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_SHORT = ((10**9, "G"), (10**6, "M"), (10**3, "k"))


def count_of(count: int, thing: str) -> str:
    """Return a count and its noun: ``1 row``, ``1,234 rows``."""
    return f"{count:,} {thing}" + ("" if count == 1 else "s")


def in_short(count: int) -> str:
    """Return a number with two or three digits and its unit: ``940``, ``4.1 M``, ``31 M``."""
    for unit, name in _SHORT:
        if count >= unit:
            return f"{count / unit:.1f} {name}" if count < 10 * unit else f"{count // unit} {name}"
    return str(count)


def size(nbytes: int) -> str:
    """Return a number of bytes in words: ``812 bytes``, ``1.4 GiB``."""
    unit, name = next(((unit, name) for unit, name in _SIZES if nbytes >= unit), (1, ""))
    return f"{nbytes / unit:.1f} {name}" if name else count_of(nbytes, "byte")


def ahead_words(told: Mapping[str, Any]) -> str:
    """Return what a manifest says of rows ahead: ``1 row ahead of its time: 2099-01-01 at a.csv, line 4``."""
    rows, first = told["rows"], told["first"]
    words = f"{count_of(rows, 'row')} ahead of {'its' if rows == 1 else 'their'} time"
    if first is None:
        return words
    return f"{words}{':' if rows == 1 else ', the first'} {first['value']} at {first['file']}, line {first['line']}"


def reason_counts(rejected: Mapping[str, int]) -> str:
    """Return counts by reason, sorted: ``late 3, null_key 1``."""
    return ", ".join(f"{reason} {count:,}" for reason, count in sorted(rejected.items()))


def distance(seconds: float) -> str:
    """Return how far two instants are apart, in its largest unit: ``72 years``, ``3 days``, ``2 h 5 min``."""
    size, unit = next(
        ((size, unit) for size, unit in ((31_557_600, "year"), (86_400, "day")) if seconds >= size), (1, "")
    )
    return count_of(int(seconds // size), unit) if unit else span(seconds)


def span(seconds: float) -> str:
    """Return a time in two units at most: ``40 s``, ``3 min 20 s``, ``2 h 5 min``."""
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"
