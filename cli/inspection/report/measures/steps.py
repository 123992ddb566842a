"""Counts along an axis in equal steps, which double or so as the axis grows: never more than a few hundred."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..report import Scale

_SECOND = 1_000_000
_TIMES = (
    *(10**power for power in range(6)),
    *(_SECOND * seconds for seconds in (1, 5, 15, 60, 300, 900, 3600, 10_800, 21_600, 43_200, 86_400)),
    *(_SECOND * 86_400 * days for days in (7, 28, 364, 3640, 36_400, 364_000)),
)
_WORDS = (
    *("microsecond", "10 microseconds", "100 microseconds", "millisecond", "10 milliseconds", "100 milliseconds"),
    *("second", "5 seconds", "15 seconds", "minute", "5 minutes", "15 minutes", "hour", "3 hours", "6 hours"),
    *("12 hours", "day", "week", "4 weeks", "52 weeks", "520 weeks", "5,200 weeks", "52,000 weeks"),
)
_MONDAY = 4 * 86_400 * _SECOND
"""The first Monday after 1970-01-01: steps of weeks begin on Mondays."""
_NUMBERS = tuple(mantissa * 10.0**power for power in range(-9, 300) for mantissa in (1, 5))
_WHOLE = tuple(mantissa * 10**power for power in range(18) for mantissa in (1, 5))
_MOST = 240
_EXACT = 2.0**52  # numbers of steps are whole numbers


class Steps:
    """Counts of several channels over steps of an axis. Each width of steps divides the next.

    ``first``: the number of the first step: it begins at ``first`` times the width.
    ``counts``: int64, shape (channels, steps).
    """

    def __init__(self, scale: Scale, channels: Sequence[str]) -> None:
        self.channels = list(channels)
        self.widths: Sequence[float] = {"time": _TIMES, "number": _NUMBERS, "window": _WHOLE}[scale]
        self.anchor = _MONDAY if scale == "time" else 0
        self.level = 0
        self.first = 0
        self.counts = np.zeros((len(self.channels), 0), np.int64)
        self.is_time = scale == "time"

    @property
    def width(self) -> float:
        """How far a step reaches."""
        return self.widths[self.level]

    @property
    def words(self) -> str:
        """What a step is."""
        return _WORDS[self.level] if self.is_time else f"{self.width:,g}"

    @property
    def begin(self) -> float:
        """Where the first step begins."""
        return self.first * self.width + self.anchor

    def add(self, values: np.ndarray, **weights: np.ndarray | int) -> None:
        """Count values, int64 or float64; ``weights``: channel to the weight of each, int64 of at least 0."""
        values = values[np.isfinite(values)] if values.dtype.kind == "f" else values
        if not len(values):
            return
        self._reach(values.min(), values.max())
        places = self._steps(values) - self.first
        for channel, weight in weights.items():
            row = self.counts[self.channels.index(channel)]
            np.add.at(row, places, weight)

    def sums(self, channel: str) -> np.ndarray:
        """Return the counts of a channel, a step each."""
        return self.counts[self.channels.index(channel)]

    def _steps(self, values: np.ndarray) -> np.ndarray:
        return np.floor_divide(values - self.anchor, self.width).astype(np.int64)

    def _reach(self, low: float, high: float) -> None:
        """Grow to hold these values, with wider steps where they would be too many."""
        while max(abs(low - self.anchor), abs(high - self.anchor)) / self.width > _EXACT:
            self._widen()
        while True:
            first, last = (int(step) for step in self._steps(np.array([low, high])))
            if self.counts.shape[1]:
                first, last = min(first, self.first), max(last, self.first + self.counts.shape[1] - 1)
            if last - first < _MOST:
                break
            self._widen()
        if self.counts.shape[1] and (first, last - first + 1) == (self.first, self.counts.shape[1]):
            return
        grown = np.zeros((len(self.channels), last - first + 1), np.int64)
        if self.counts.shape[1]:
            at = self.first - first
            grown[:, at : at + self.counts.shape[1]] = self.counts
        self.first, self.counts = first, grown

    def _widen(self) -> None:
        factor = round(self.widths[self.level + 1] / self.width)
        self.level += 1
        if not self.counts.shape[1]:
            return
        places = np.arange(self.first, self.first + self.counts.shape[1]) // factor
        merged = np.zeros((len(self.channels), int(places[-1] - places[0]) + 1), np.int64)
        for row, counts in zip(merged, self.counts, strict=True):
            np.add.at(row, places - places[0], counts)
        self.first, self.counts = int(places[0]), merged
