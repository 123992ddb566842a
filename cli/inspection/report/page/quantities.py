"""Counts, durations, sizes and times as a page writes them."""

from __future__ import annotations

import numpy as np

from ..report import Axis, Distribution

_UNITS = ((86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "min"), (1_000_000, "s"))
_SMALL = ((1_000_000, "s"), (1_000, "ms"), (1, "µs"))
_BYTES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def duration_text(micros: float) -> str:
    """Return a duration in its two largest units: ``1 h 3 min``, ``12.5 s``, ``250 ms``."""
    if micros < 0:
        return f"-{duration_text(-micros)}"
    if micros < 60_000_000:
        size, unit = next(((size, unit) for size, unit in _SMALL if micros >= size), _SMALL[-1])
        return f"{micros / size:.3g} {unit}"
    at = next(at for at, (size, _) in enumerate(_UNITS) if micros >= size)
    (size, unit), (below, smaller) = _UNITS[at], _UNITS[at + 1]
    whole, rest = divmod(round(micros / below), size // below)
    if whole >= 100 or not rest:
        return f"{whole:,} {unit}"
    return f"{whole:,} {unit} {rest} {smaller}"


def seconds_text(seconds: float) -> str:
    """Return seconds as a duration."""
    return duration_text(seconds * 1_000_000)


def bytes_text(size: float) -> str:
    """Return a number of bytes in a unit of its size."""
    for unit, name in _BYTES:
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:,.0f} bytes"


def number_text(value: float) -> str:
    """Return a number with at most 6 digits that count; a whole number in full."""
    return f"{int(value):,}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.6g}"


def time_text(micros: float) -> str:
    """Return a time: ``2026-11-03 14:30:05.25``, digits behind the second as far as there are some."""
    text = str(np.datetime_as_string(np.datetime64(int(micros), "us"))).replace("T", " ")
    return text.rstrip("0").rstrip(".") if "." in text else text


def place_text(value: float, axis: Axis) -> str:
    """Return a place on an axis."""
    return time_text(value) + (" UTC" if axis.is_utc else "") if axis.scale == "time" else number_text(value)


def measure_text(value: float, unit: str) -> str:
    """Return a value of a distribution with its unit."""
    if unit == "duration":
        return duration_text(value)
    return number_text(value) + (f" row{'' if value == 1 else 's'}" if unit == "rows" else "")


def mean_of(found: Distribution) -> float:
    """Return the mean of a distribution."""
    return found.total / found.count


def share_text(part: float, whole: float) -> str:
    """Return a share in percent: three digits that count, and never 0 or 100 for what is not."""
    if not whole or not part:
        return "0 %"
    share = 100 * part / whole
    if share < 0.01:
        return "< 0.01 %"
    return "> 99.9 %" if 99.95 <= share < 100 else f"{share:.3g} %"
