"""Where an axis has its labels, and what they say. The script of the page has the same rules for zooming."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..report import Axis
from .quantities import duration_text, number_text, time_text

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_STEPS = (
    *(factor * 10**power for power in range(6) for factor in (1, 2, 5)),
    *(_SECOND * n for n in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200)),
    *(_DAY * n for n in (1, 2, 3, 7, 14)),
)
_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 6000, 12_000)
_MONTH = 30.4 * _DAY
_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DURATIONS = (
    *(10.0**power for power in range(6)),
    *(_SECOND * n for n in (1, 10, 60, 600, 3600, 21_600)),
    *(_DAY * n for n in (1, 7, 30, 365, 3650, 36_500)),
)


@dataclass(frozen=True, slots=True)
class Tick:
    """A label of an axis.

    ``share``: where it stands, from 0 at the left to 1 at the right.
    ``text``: what it says.
    """

    share: float
    text: str


def axis_ticks(axis: Axis, low: float, high: float, most: int = 7) -> list[Tick]:
    """Return at most ``most`` labels, and one more, between two places."""
    if high <= low:
        return [Tick(0.5, time_text(low) if axis.scale == "time" else number_text(low))]
    return [*(_times(low, high, most) if axis.scale == "time" else _numbers(low, high, most))]


def log_ticks(unit: str, low: float, high: float) -> list[Tick]:
    """Return labels for a logarithmic axis between two values above 0."""
    if unit == "duration":
        values = [value for value in _DURATIONS if low <= value <= high]
        texts = [duration_text(value) for value in values]
    else:
        first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
        factors = (1, 2, 5) if last - first <= 3 else (1,)
        every = max(1, (last - first) // 8)
        found = (factor * 10.0**power for power in range(first, last + 1, every) for factor in factors)
        values = [value for value in found if low <= value <= high]
        texts = [number_text(value) for value in values]
    span = np.log(high / low)
    return [Tick(float(np.log(value / low) / span), text) for value, text in zip(values, texts, strict=True)]


def _times(low: float, high: float, most: int) -> Iterator[Tick]:
    step = next((step for step in _STEPS if (high - low) / step <= most), None)
    if step is None:
        yield from _months(low, high, most)
        return
    anchor = 4 * _DAY  # a Monday
    first = int(-((anchor - low) // step)) * step + anchor if step >= _DAY else int(-(-low // step)) * step
    first += step if first < low else 0
    before = ""
    for place in range(int(first), int(high) + 1, int(step)):
        day = _day(place)
        text = day if step >= _DAY else _clock(place, step)
        if step < _DAY and day != before:
            text = f"{day} {text}"
        yield Tick((place - low) / (high - low), text)
        before = day


def _months(low: float, high: float, most: int) -> Iterator[Tick]:
    step = next((months for months in _MONTHS if (high - low) / (months * _MONTH) <= most), _MONTHS[-1])
    first = int(np.datetime64(int(low), "us").astype("datetime64[M]").astype(np.int64))
    for month in range(-(-first // step) * step, 1 << 40, step):
        place = int(np.datetime64(month, "M").astype("datetime64[us]").astype(np.int64))
        if place > high:
            return
        if place >= low:
            year = 1970 + month // 12
            yield Tick((place - low) / (high - low), f"{year}" if step >= 12 else f"{_NAMES[month % 12]} {year}")


def _day(micros: int) -> str:
    return day_text(str(np.datetime64(micros, "us").astype("datetime64[D]")))


def day_text(label: str) -> str:
    """Return a date as an axis has it: ``2026-11-03`` is ``3 Nov``."""
    return f"{int(label[-2:])} {_NAMES[int(label[-5:-3]) - 1]}"


def _clock(micros: int, step: int) -> str:
    text = time_text(micros).partition(" ")[2]
    return text[:5] if step >= 60 * _SECOND else text


def _numbers(low: float, high: float, most: int) -> Iterator[Tick]:
    power = 10.0 ** np.floor(np.log10((high - low) / most))
    step = next(power * factor for factor in (1, 2, 5, 10) if (high - low) / (power * factor) <= most)
    for at in range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1):
        share = (at * step - low) / (high - low)
        yield Tick(min(max(share, 0.0), 1.0), number_text(float(f"{at * step:.12g}")))
